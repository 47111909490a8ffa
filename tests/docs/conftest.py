"""The page runner lies in scripts/, where `make docs` uses it too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
