"""MetaForge: an AI agent reaches real engineering tools, safely and fast."""

__version__ = "0.1.0"
