"""The access file: how each host is reached to be woken. Never holds a password.

A password is named by where it is found: an environment variable or a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from equipoise.errors import InvalidInput
from equipoise.hosts.wake.lan import endpoint, mac_bytes
from equipoise.model.files.findings import Enough, Findings
from equipoise.model.files.json_tree import read_json
from equipoise.model.files.shape import examine
from equipoise.model.files.text import Language, check_size_of, languages_of, text_of
from equipoise.model.files.tree import Tree
from equipoise.model.files.words import Path, shown
from equipoise.model.files.yaml_tree import read_yaml
from equipoise.model.quantity import HostKey
from equipoise.model.value import Value

Text = Annotated[str, Meta(min_length=1)]
Port = Annotated[int, Meta(ge=1, le=65535)]

IPMI_USER_MAX: Final = 16
IPMI_PASSWORD_MAX: Final = 20
"""In bytes; the protocol has no room for more."""


class Redfish(Value):
    """A management controller that is asked over HTTPS."""

    url: Text
    """Without a path: ``https://h1-bmc.example``."""
    user: Text
    password_env: Text | None = None
    """The environment variable that holds the password."""
    password_file: Text | None = None
    """The file whose first line is the password, seen from the folder of the access file."""
    system: Text | None = None
    """Which of the controller's systems the host is; needless if there is only one."""
    ca_file: Text | None = None
    """Who vouches for the controller's certificate, if no public authority does."""
    check: Text | None = None
    """A port such as ``h1:22``; until it answers, a host that has power is not on."""


class Ipmi(Value):
    """A management controller that is asked by IPMI over LAN."""

    address: Text
    user: Text
    port: Port = 623
    password_env: Text | None = None
    """The environment variable that holds the password."""
    password_file: Text | None = None
    """The file whose first line is the password, seen from the folder of the access file."""
    check: Text | None = None
    """A port such as ``h1:22``; until it answers, a host that has power is not on."""


class Wol(Value):
    """A network card that waits for a magic packet. It cannot put a host to sleep."""

    mac: Text
    check: Text
    """A port such as ``h1:22`` that answers when the host is on."""
    broadcast: Text = "255.255.255.255"
    port: Port = 9


class HostAccess(Value):
    """The ways to one host. They are tried in this order until one works."""

    redfish: Redfish | None = None
    ipmi: Ipmi | None = None
    wol: Wol | None = None


class Access(Value):
    """How hosts are reached."""

    hosts: Mapping[HostKey, HostAccess]


def parse_access(content: bytes, source: str) -> Access:
    """Read an access file, or say all that is wrong with it; ``source`` is its name."""
    language = languages_of(content, source)[0]
    check_size_of(len(content), source, language)
    text = text_of(content, source)
    reader = read_json if language is Language.JSON else read_yaml
    return _judged(reader(text, source), source)


def _judged(tree: Tree, source: str) -> Access:
    found = Findings(tree.findings)
    with suppress(Enough):
        examine(tree.root, Access, found)
        access = msgspec.convert(_sound(tree.root, found), Access)
        if access.hosts or not found:
            _check(access, found)
        if not found:
            return access
    raise InvalidInput(source, found.problems(tree.line_of))


def _sound(root: Any, found: Findings) -> Any:
    """What can be read: all of it, or else the hosts in which nothing is wrong so far."""
    if not found:
        return root
    spoilt = {path[1] if path[:1] == ("hosts",) and len(path) > 1 else None for path in found.paths}
    hosts = {} if None in spoilt else root["hosts"]
    return {"hosts": {name: host for name, host in hosts.items() if name not in spoilt}}


def _check(access: Access, found: Findings) -> None:
    """Find what no reader of forms can see."""
    if not access.hosts:
        found.add(("hosts",), "there is no host", "list at least one")
    for name, host in access.hosts.items():
        path: Path = ("hosts", name)
        if host.redfish is not None:
            _check_url(host.redfish.url, (*path, "redfish", "url"), found)
            _check_controller(host.redfish, (*path, "redfish"), found)
        if host.ipmi is not None:
            _check_user(host.ipmi.user, (*path, "ipmi", "user"), found)
            _check_controller(host.ipmi, (*path, "ipmi"), found)
        if host.wol is not None:
            _check_mac(host.wol.mac, (*path, "wol", "mac"), found)
            _check_endpoint(host.wol.check, (*path, "wol", "check"), found)
        if host == HostAccess():
            found.add(path, "no way leads to this host", "give it redfish, ipmi or wol")


def _check_controller(way: Redfish | Ipmi, path: Path, found: Findings) -> None:
    if way.check is not None:
        _check_endpoint(way.check, (*path, "check"), found)
    if way.password_env is None and way.password_file is None:
        cure = "name an environment variable, or a file with password_file"
        found.add((*path, "password_env"), "is missing", cure)
    elif way.password_env is not None and way.password_file is not None:
        what = "the password is said to be in two places"
        found.add((*path, "password_file"), what, "leave out this or password_env")
    elif way.password_env is not None and not _is_variable(way.password_env):
        # Not shown, for it may be the password itself.
        what = "this is no name of an environment variable"
        cure = "such as H1_BMC; the password itself never stands in this file"
        found.add((*path, "password_env"), what, cure)


def _is_variable(name: str) -> bool:
    return name.isascii() and name.isidentifier()


def _check_url(url: str, path: Path, found: Findings) -> None:
    cure = "such as https://h1-bmc.example"
    if "@" in url:  # not shown, for a password may stand in it
        found.add(path, "a user or password stands in the URL", "use user and password_env")
        return
    try:
        parts = urlsplit(url)
        _port = parts.port  # it is read here only, and may be out of range
    except ValueError:
        found.add(path, f"{shown(url)} is not a URL", cure)
        return
    if parts.scheme not in ("https", "http") or not parts.hostname:
        found.add(path, f"{shown(url)} is not a URL with https", cure)
    elif parts.path.strip("/") or parts.query or parts.fragment:
        found.add(path, f"{shown(url)} goes on behind the host", "end it there; see system")


def _check_user(user: str, path: Path, found: Findings) -> None:
    if len(user.encode()) > IPMI_USER_MAX:
        what = f"{shown(user)} is too long for IPMI"
        found.add(path, what, f"at most {IPMI_USER_MAX} bytes")


def _check_mac(mac: str, path: Path, found: Findings) -> None:
    if mac_bytes(mac) is None:
        found.add(path, f"{shown(mac)} is not a hardware address", "such as 52:54:00:12:34:56")


def _check_endpoint(text: str, path: Path, found: Findings) -> None:
    if endpoint(text) is None:
        found.add(path, f"{shown(text)} is not a host and a port", "such as h1:22")
