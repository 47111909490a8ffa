"""Where pip finds packages on this machine, told to the pip of a build: by secrets, which stay in no image.

Standard library only.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_TOLD = ("index-url", "extra-index-url", "trusted-host", "timeout", "default-timeout", "retries", "proxy")
_CERTIFICATES = ("cert",)
_CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
_INSIDE = "/build/certificates.pem"
"""Where Dockerfiles mount the secret `certificates`."""


def pip_settings() -> dict[str, str]:
    """Return what pip is told here, by files and by variables."""
    told = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    settings: dict[str, str] = {}
    for line in told.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            settings[name.rpartition(".")[2]] = str(ast.literal_eval(value))
    return settings


def secrets_of(settings: Mapping[str, str], folder: Path, environ: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """Write the secrets of a build into `folder` and return them by id: `pip`, and `certificates` where there are some.

    Addresses that are files of this machine mean nothing inside a build, and are left out.
    """
    chosen = {}
    for name in _TOLD:
        addresses = [part for part in settings.get(name, "").split() if not part.startswith(("file:", "/", "."))]
        if addresses:
            chosen[name.removeprefix("default-")] = "\n    ".join(addresses)
    own = [settings.get(name, "") for name in _CERTIFICATES] + [
        environ.get(name, "") for name in _CERTIFICATE_VARIABLES
    ]
    certificates = next((Path(path) for path in own if path and Path(path).is_file()), None)
    secrets = {"pip": folder / "pip.conf"}
    if certificates is not None:
        chosen["cert"] = _INSIDE
        secrets["certificates"] = certificates
    lines = ["[global]", "disable-pip-version-check = true", *(f"{name} = {value}" for name, value in chosen.items())]
    secrets["pip"].write_text("\n".join(lines) + "\n")
    secrets["pip"].chmod(0o600)
    return secrets
