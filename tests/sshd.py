"""Real SSH servers for tests, one per pretended host, each on a loopback address of its own.

A host is a folder: it is the home directory of every login, so that hosts are separate and no
start-up file of the real home runs. (Ansible's ``~`` is not that home: it looks up the user.)
Servers listen on loopback only and end with the test.
"""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

_PLACES = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
_SETTINGS = """
ListenAddress {address}:{port}
HostKey {keys}/host
PidFile none
AuthorizedKeysFile {keys}/authorized
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PermitUserRC no
MaxStartups 100
PrintMotd no
Subsystem sftp internal-sftp
SetEnv HOME={home}
LogLevel VERBOSE
"""
START_S = 30.0


@dataclass(frozen=True)
class Sshd:
    """One host: its address, and the folder that is its home."""

    name: str
    address: str
    port: int
    home: Path
    keys: Path
    server: subprocess.Popen[bytes]
    log: Path

    def ask(self, command: str) -> str:
        """Log in, run a command, and return its output."""
        done = subprocess.run(
            [
                *("ssh", "-F", "none", "-i", str(self.keys / "id"), "-p", str(self.port)),
                *("-o", f"UserKnownHostsFile={self.keys / 'known'}", "-o", "BatchMode=yes"),
                *("-o", "ControlPath=none", self.address, command),
            ],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, f"{self.name}: {done.stderr}"
        return done.stdout

    def logins(self) -> int:
        """The number of logins."""
        return self.log.read_text().count("Accepted publickey")

    def stop(self) -> None:
        """Refuse all further logins; a second call has no effect."""
        self.server.terminate()
        self.server.wait(10)


@dataclass(frozen=True)
class Rack:
    """Several hosts with one key."""

    folder: Path
    hosts: Sequence[Sshd]

    @property
    def keys(self) -> Path:
        return self.folder / "keys"


@contextmanager
def rack(count: int = 3, first: int = 21) -> Iterator[Rack]:
    """Start servers at 127.0.0.21 and so on, or skip the test if that is impossible here."""
    program = _needed("sshd", "openssh-server")
    _needed("ssh", "openssh-client")
    folder = Path(tempfile.mkdtemp(prefix="eq-ssh-"))
    addresses = [f"127.0.0.{first + place}" for place in range(count)]
    hosts: list[Sshd] = []
    try:
        port = _free_port(addresses)
        _make_keys(folder / "keys", addresses, port)
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # else the server refuses to start
        for place, address in enumerate(addresses):
            hosts.append(_start(program, folder, f"h{place + 1}", address, port))
        for host in hosts:
            _wait_for(host)
        yield Rack(folder=folder, hosts=tuple(hosts))
    finally:
        for host in hosts:
            host.stop()
            _end_all_in(host.home)
        shutil.rmtree(folder)


def _needed(program: str, package: str) -> str:
    found = shutil.which(program, path=_PLACES)
    if found is None:
        pytest.skip(f"{package} is not installed: no {program} in {_PLACES}")
    return found


def _make_keys(keys: Path, addresses: Sequence[str], port: int) -> None:
    keys.mkdir()
    for name in ("id", "host"):
        line = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(keys / name)]
        subprocess.run(line, check=True)
    shutil.copy(keys / "id.pub", keys / "authorized")
    public = (keys / "host.pub").read_text()
    known = "".join(f"[{address}]:{port} {public}" for address in addresses)
    (keys / "known").write_text(known)


def _start(program: str, folder: Path, name: str, address: str, port: int) -> Sshd:
    home, settings, log = folder / name, folder / f"{name}.conf", folder / f"{name}.log"
    home.mkdir()
    log.touch()
    settings.write_text(
        _SETTINGS.format(address=address, port=port, keys=folder / "keys", home=home)
    )
    server = subprocess.Popen(
        [program, "-D", "-f", str(settings), "-E", str(log)], stdin=subprocess.DEVNULL
    )
    return Sshd(name, address, port, home, folder / "keys", server, log)


def _wait_for(host: Sshd) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        if host.server.poll() is not None:
            pytest.skip(f"sshd does not start here: {host.log.read_text().strip()}")
        with suppress(OSError), socket.create_connection((host.address, host.port), 1):
            return
        time.sleep(0.02)
    pytest.skip(f"sshd does not listen after {START_S:g} s: {host.log.read_text().strip()}")


def _free_port(addresses: Sequence[str]) -> int:
    """A port that is free at all the addresses."""
    for _attempt in range(20):
        with socket.socket() as probe:
            probe.bind((addresses[0], 0))
            port: int = probe.getsockname()[1]
        try:
            for address in addresses:
                with socket.socket() as probe:
                    probe.bind((address, port))
        except OSError as error:
            if error.errno not in (98, 48):  # taken: try another one
                pytest.skip(f"{address} is not a loopback address here: {error.strerror}")
        else:
            return port
    pytest.skip(f"no port is free at {', '.join(addresses)}")


def _end_all_in(home: Path) -> None:
    """Kill the processes of a host, found by its home folder."""
    mark = f"HOME={home}".encode()
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (place / "environ").read_bytes().split(b"\0"):
                os.kill(int(place.name), signal.SIGKILL)


def user() -> str:
    """The user of the tests, because a server without root rights accepts no other user."""
    return getpass.getuser()
