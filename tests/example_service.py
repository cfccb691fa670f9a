"""The small service of ``examples/upgrade``, as hosts run it before an upgrade."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from sshd import Sshd

PLAYBOOKS = Path(__file__).parent.parent / "examples" / "upgrade" / "playbooks"
_ASK = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('socket'); print(s.recv(99))"


def home_of(host: Sshd) -> Path:
    """Where the service of a host lives."""
    return host.home / "greeter"


def install(host: Sshd, **settings: str) -> None:
    """Install version 1.0 on a host and start it, without a playbook."""
    home = home_of(host)
    shutil.copytree(PLAYBOOKS / "files" / "greeter-1.0", home / "releases" / "1.0")
    (home / "settings.json").write_text(json.dumps(settings))
    (home / "current").symlink_to("releases/1.0")
    start = "setsid nohup python3 current/greeter.py . >log 2>&1 </dev/null & echo $! >pid"
    host.ask(f"cd {home} && {{ {start}; }}; until [ -S socket ]; do sleep 0.05; done")


def greeted(host: Sshd) -> str:
    """Return the answer of the service over SSH, and its current release."""
    return host.ask(f'cd {home_of(host)} && python3 -c "{_ASK}" && readlink current')


def releases(host: Sshd) -> list[str]:
    """Which releases lie on a host."""
    return host.ask(f"ls {home_of(host)}/releases").split()
