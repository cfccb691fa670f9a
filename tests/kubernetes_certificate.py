"""A certificate for a server on this machine, made by openssl."""

from __future__ import annotations

import subprocess
from pathlib import Path


def certificate(folder: Path) -> tuple[bytes, bytes]:
    """Make a certificate that signs itself, and its key."""
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 2"
        " -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem"
    )
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return (folder / "cert.pem").read_bytes(), (folder / "key.pem").read_bytes()
