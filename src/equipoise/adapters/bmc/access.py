"""The access file of hosts with a management controller (BMC), and the power controls it describes.

The file never holds a password: it names an environment variable or a file that does. All missing
passwords are reported at once. The protocols of a host are tried in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import urlsplit

from msgspec import Meta

from equipoise.adapters.access_file import FileContext, is_variable_name, read_access
from equipoise.adapters.bmc import host_power
from equipoise.adapters.bmc.host_power import (
    BmcOperation,
    BmcPowerControl,
    BmcRequest,
    PowerAccepted,
    PowerControl,
    PowerReading,
    PowerRefusal,
    WaitClock,
)
from equipoise.adapters.bmc.wake_on_lan import (
    PortCheckedControl,
    WakeOnLan,
    parse_endpoint,
    parse_mac,
)
from equipoise.errors import InvalidInput, MissingExtra
from equipoise.model.diagnostics import Diagnostics, KeyPath, format_value, quoted
from equipoise.model.quantity import HostId, HostKey
from equipoise.model.value import Value

Text = Annotated[str, Meta(min_length=1)]
Port = Annotated[int, Meta(ge=1, le=65535)]

IPMI_USER_MAX: Final = 16
IPMI_PASSWORD_MAX: Final = 20
"""In bytes; the fields of the protocol are not longer."""


class RedfishAccess(Value):
    """A management controller with Redfish, over HTTPS."""

    url: Text
    """Without a path: ``https://h1-bmc.example``."""
    user: Text
    password_env: Text | None = None
    """The environment variable that holds the password."""
    password_file: Text | None = None
    """The file whose first line is the password, relative to the access file."""
    system: Text | None = None
    """The system of the controller that is the host; not needed if there is only one."""
    ca_file: Text | None = None
    """The CA certificate of the controller, if it is not a public one."""
    check: Text | None = None
    """A port such as ``h1:22``. A host with power counts as on when this port answers."""


class IpmiAccess(Value):
    """A management controller with IPMI over LAN."""

    address: Text
    user: Text
    port: Port = 623
    password_env: Text | None = None
    """The environment variable that holds the password."""
    password_file: Text | None = None
    """The file whose first line is the password, relative to the access file."""
    check: Text | None = None
    """A port such as ``h1:22``. A host with power counts as on when this port answers."""


class WakeOnLanAccess(Value):
    """A network card that wakes its host on a magic packet. It cannot put a host in standby."""

    mac: Text
    check: Text
    """A port such as ``h1:22`` that answers when the host is on."""
    broadcast: Text = "255.255.255.255"
    port: Port = 9


class BmcHostAccess(Value):
    """The protocols of one host. They are tried in this order until one works."""

    redfish: RedfishAccess | None = None
    ipmi: IpmiAccess | None = None
    wol: WakeOnLanAccess | None = None


class BmcAccess(Value):
    """The contents of an access file."""

    hosts: Mapping[HostKey, BmcHostAccess]


def parse_access(content: bytes, source: str) -> BmcAccess:
    """Read an access file; raise ``InvalidInput`` with all its problems."""
    return read_access(content, source, BmcAccess, _check, valid_part=_valid_hosts)


def _valid_hosts(root: Any, found: Diagnostics) -> Any | None:
    """Return the hosts without a problem so far; ``None`` if there are none."""
    invalid_hosts = {
        path[1] if path[:1] == ("hosts",) and len(path) > 1 else None for path in found.paths
    }
    hosts = {} if None in invalid_hosts else root["hosts"]
    valid = {name: host for name, host in hosts.items() if name not in invalid_hosts}
    return {"hosts": valid} if valid else None


def _check(access: BmcAccess, found: Diagnostics) -> None:
    """Find the problems that types cannot express."""
    if not access.hosts:
        found.add(("hosts",), "the file lists no host", "list at least one", code="empty-value")
    for name, host in access.hosts.items():
        path: KeyPath = ("hosts", name)
        if host.redfish is not None:
            _check_url(host.redfish.url, (*path, "redfish", "url"), found)
            _check_controller(host.redfish, (*path, "redfish"), found)
        if host.ipmi is not None:
            _check_user(host.ipmi.user, (*path, "ipmi", "user"), found)
            _check_controller(host.ipmi, (*path, "ipmi"), found)
        if host.wol is not None:
            _check_mac(host.wol.mac, (*path, "wol", "mac"), found)
            _check_endpoint(host.wol.check, (*path, "wol", "check"), found)
        if host == BmcHostAccess():
            what, cure = "this host has no protocol", "give it redfish, ipmi or wol"
            found.add(path, what, cure, code="missing-key")


def _check_controller(
    protocol: RedfishAccess | IpmiAccess, path: KeyPath, found: Diagnostics
) -> None:
    if protocol.check is not None:
        _check_endpoint(protocol.check, (*path, "check"), found)
    if protocol.password_env is None and protocol.password_file is None:
        cure = "name an environment variable, or a file with password_file"
        found.add((*path, "password_env"), "is missing", cure, code="missing-key")
    elif protocol.password_env is not None and protocol.password_file is not None:
        what = "password_env and password_file both name the password"
        found.add((*path, "password_file"), what, "remove one of them", code="contradiction")
    elif protocol.password_env is not None and not is_variable_name(protocol.password_env):
        # The value is not shown: it may be the password itself.
        what = "this is not the name of an environment variable"
        cure = "such as H1_BMC; this file never contains the password itself"
        found.add((*path, "password_env"), what, cure, code="secret-in-file")


def _check_url(url: str, path: KeyPath, found: Diagnostics) -> None:
    cure = "such as https://h1-bmc.example"
    if "@" in url:  # the value is not shown: it may contain a password
        what, cure = "the URL contains a user or a password", "use user and password_env"
        found.add(path, what, cure, code="secret-in-file")
        return
    try:
        parts = urlsplit(url)
        _port = parts.port  # urlsplit checks the port only when it is read
    except ValueError:
        found.add(path, f"{format_value(url)} is not a URL", cure)
        return
    if parts.scheme not in ("https", "http") or not parts.hostname:
        found.add(path, f"{format_value(url)} is not a URL with https", cure)
    elif parts.path.strip("/") or parts.query or parts.fragment:
        found.add(path, f"{format_value(url)} has a path", "remove the path; see system")


def _check_user(user: str, path: KeyPath, found: Diagnostics) -> None:
    if len(user.encode()) > IPMI_USER_MAX:
        what = f"{format_value(user)} is too long for IPMI"
        found.add(path, what, f"at most {IPMI_USER_MAX} bytes", code="out-of-range")


def _check_mac(mac: str, path: KeyPath, found: Diagnostics) -> None:
    if parse_mac(mac) is None:
        found.add(path, f"{format_value(mac)} is not a MAC address", "such as 52:54:00:12:34:56")


def _check_endpoint(text: str, path: KeyPath, found: Diagnostics) -> None:
    if parse_endpoint(text) is None:
        found.add(path, f"{format_value(text)} is not a host and a port", "such as h1:22")


A = TypeVar("A", PowerAccepted, PowerReading)


class FallbackControl:
    """Several protocols for one host: the next is tried when one fails.

    The protocol that worked last is tried first, so that no time is lost on a dead one.
    """

    def __init__(self, controls: Iterable[PowerControl]) -> None:
        self._controls = list(controls)
        assert self._controls, "the check of the file refuses a host without a protocol"

    def wake(self) -> PowerAccepted | PowerRefusal:
        """Switch the host on."""
        return self._first(lambda control: control.wake())

    def sleep(self) -> PowerAccepted | PowerRefusal:
        """Shut the host down."""
        return self._first(lambda control: control.sleep())

    def state(self) -> PowerReading | PowerRefusal:
        """Read the power of the host."""
        return self._first(lambda control: control.state())

    def _first(self, call: Callable[[PowerControl], A | PowerRefusal]) -> A | PowerRefusal:
        refusals: list[PowerRefusal] = []
        for control in list(self._controls):
            answer = call(control)
            if not isinstance(answer, PowerRefusal):
                # The sort is stable, so the other protocols keep their order.
                self._controls.sort(key=lambda other: other is not control)
                return replace(answer, tried=tuple(refusals))
            refusals.append(answer)
        return replace(refusals[-1], tried=tuple(refusals[:-1]))


def power_controls(
    access: BmcAccess, names: Iterable[str], context: FileContext, clock: WaitClock
) -> dict[HostId, PowerControl]:
    """Return the power controls of the named hosts; of all hosts if none is named.

    Only the passwords of these hosts are read. Raises ``InvalidInput`` with all missing ones.
    """
    found = Diagnostics()
    chosen = list(dict.fromkeys(names)) or list(access.hosts)
    controls: dict[HostId, PowerControl] = {}
    for name in chosen:
        host = HostId(name)
        if host not in access.hosts:
            found.add_unknown(("hosts",), "host", name, access.hosts)
            continue
        path: KeyPath = ("hosts", name)
        controls[host] = FallbackControl(
            _host_controls(access.hosts[host], context, clock, found.below(*path))
        )
    if found:
        raise InvalidInput(context.source, found.problems())
    return controls


def _host_controls(
    host: BmcHostAccess, context: FileContext, clock: WaitClock, found: Diagnostics
) -> Iterator[PowerControl]:
    if host.redfish is not None:
        _need("sushy", "reaching a host by Redfish")
        request = _redfish_request(host.redfish, context, found.below("redfish"))
        yield _with_port_check(
            BmcPowerControl(request=request, clock=clock, send=host_power.send_request),
            host.redfish.check,
        )
    if host.ipmi is not None:
        _need("pyghmi", "reaching a host by IPMI")
        request = _ipmi_request(host.ipmi, context, found.below("ipmi"))
        yield _with_port_check(
            BmcPowerControl(request=request, clock=clock, send=host_power.send_request),
            host.ipmi.check,
        )
    if host.wol is not None:
        yield _wake_on_lan(host.wol)


def _need(library: str, purpose: str) -> None:
    # Only the worker process imports the library. There, a missing one would look like a crash.
    if find_spec(library) is None:
        raise MissingExtra("power", purpose)


def _with_port_check(control: PowerControl, check: str | None) -> PowerControl:
    endpoint = None if check is None else parse_endpoint(check)
    return control if endpoint is None else PortCheckedControl(inner=control, check=endpoint)


def _redfish_request(
    protocol: RedfishAccess, context: FileContext, found: Diagnostics
) -> BmcRequest:
    ca_file = None
    if protocol.ca_file is not None:
        ca_file = str(context.folder / protocol.ca_file)
        if not Path(ca_file).is_file():
            what = f"there is no file {quoted(ca_file)}"
            found.add(("ca_file",), what, "check its name", code="file-not-readable")
    return BmcRequest(
        by="redfish",
        operation=BmcOperation.STATE,
        user=protocol.user,
        password=_password(protocol, context, found),
        url=protocol.url,
        system=protocol.system,
        ca_file=ca_file,
    )


def _ipmi_request(protocol: IpmiAccess, context: FileContext, found: Diagnostics) -> BmcRequest:
    password = _password(protocol, context, found)
    if len(password.encode()) > IPMI_PASSWORD_MAX:
        key = "password_env" if protocol.password_env is not None else "password_file"
        what = "the password is too long for IPMI"
        found.add((key,), what, f"at most {IPMI_PASSWORD_MAX} bytes", code="out-of-range")
    return BmcRequest(
        by="ipmi",
        operation=BmcOperation.STATE,
        user=protocol.user,
        password=password,
        address=protocol.address,
        port=protocol.port,
    )


def _wake_on_lan(protocol: WakeOnLanAccess) -> WakeOnLan:
    mac, check = parse_mac(protocol.mac), parse_endpoint(protocol.check)
    assert mac is not None
    assert check is not None
    return WakeOnLan(mac=mac, broadcast=protocol.broadcast, port=protocol.port, check=check)


def _password(
    protocol: RedfishAccess | IpmiAccess, context: FileContext, found: Diagnostics
) -> str:
    """Return the password, or add the problem that it is missing. No message shows it."""
    if protocol.password_env is not None:
        password = context.environ.get(protocol.password_env, "")
        if not password:
            how = "is empty" if protocol.password_env in context.environ else "is not set"
            what = f"the environment variable {protocol.password_env} {how}"
            cure = "set it to the password of the controller"
            found.add(("password_env",), what, cure, code="secret-missing")
        return password
    assert protocol.password_file is not None
    path = context.folder / protocol.password_file
    try:
        password = next(iter(path.read_text(encoding="utf-8").splitlines()), "")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        what = f"the file {quoted(str(path))} cannot be read: {str(why).lower()}"
        found.add(
            ("password_file",), what, "check its path and its permissions", code="file-not-readable"
        )
        return ""
    if not password:
        what = f"the first line of the file {quoted(str(path))} is empty"
        found.add(
            ("password_file",),
            what,
            "write the password into the first line",
            code="secret-missing",
        )
    return password
