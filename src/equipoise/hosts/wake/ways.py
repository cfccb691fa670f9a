"""From an access file to hosts that can be woken: finds the passwords, and tries ways in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from equipoise.errors import InvalidInput, MissingExtra
from equipoise.hosts.wake import bmc
from equipoise.hosts.wake.access import (
    IPMI_PASSWORD_MAX,
    Access,
    HostAccess,
    Ipmi,
    Redfish,
    Wol,
)
from equipoise.hosts.wake.bmc import Controlled
from equipoise.hosts.wake.lan import Checked, WakeOnLan, endpoint, mac_bytes
from equipoise.hosts.wake.port import Accepted, Clock, Refusal, Seen, Waker
from equipoise.hosts.wake.talk.words import Question, Verb
from equipoise.model.files.findings import Findings
from equipoise.model.files.words import Path as Key
from equipoise.model.files.words import quoted
from equipoise.model.quantity import HostId

A = TypeVar("A", Accepted, Seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where an access file lies, and what it may refer to."""

    source: str
    """What messages call the file."""
    folder: Path
    """What relative names of files are seen from."""
    environ: Mapping[str, str]


class InTurn:
    """Several ways to one host: the next is tried when one refuses.

    The way that answered last is asked first, so that a long wait is not spent on a dead one.
    """

    def __init__(self, ways: Iterable[Waker]) -> None:
        self._ways = list(ways)
        assert self._ways, "a host without a way is refused with its file"

    def wake(self) -> Accepted | Refusal:
        """Ask it to switch on."""
        return self._first(lambda way: way.wake())

    def sleep(self) -> Accepted | Refusal:
        """Ask it to shut down."""
        return self._first(lambda way: way.sleep())

    def state(self) -> Seen | Refusal:
        """Look whether it is on."""
        return self._first(lambda way: way.state())

    def _first(self, ask: Callable[[Waker], A | Refusal]) -> A | Refusal:
        refusals: list[Refusal] = []
        for way in list(self._ways):
            answer = ask(way)
            if not isinstance(answer, Refusal):
                self._ways.sort(key=lambda other: other is not way)
                return replace(answer, tried=tuple(refusals))
            refusals.append(answer)
        return replace(refusals[-1], tried=tuple(refusals[:-1]))


def wakers(
    access: Access, names: Iterable[str], around: Surroundings, clock: Clock
) -> dict[HostId, Waker]:
    """Make the named hosts ready to be woken, or all of them if none is named.

    Only their passwords are looked for. Raises ``InvalidInput`` with all that is missing.
    """
    found = Findings()
    chosen = list(dict.fromkeys(names)) or list(access.hosts)
    made: dict[HostId, Waker] = {}
    for name in chosen:
        host = HostId(name)
        if host not in access.hosts:
            found.add_unknown(("hosts",), "host", name, access.hosts)
            continue
        path: Key = ("hosts", name)
        made[host] = InTurn(_ways(access.hosts[host], around, clock, found.below(*path)))
    if found:
        raise InvalidInput(around.source, found.problems())
    return made


def _ways(host: HostAccess, around: Surroundings, clock: Clock, found: Findings) -> Iterator[Waker]:
    if host.redfish is not None:
        _need("sushy", "reaching a host by Redfish")
        question = _redfish(host.redfish, around, found.below("redfish"))
        yield _checked(Controlled(question=question, clock=clock, ask=bmc.ask), host.redfish.check)
    if host.ipmi is not None:
        _need("pyghmi", "reaching a host by IPMI")
        question = _ipmi(host.ipmi, around, found.below("ipmi"))
        yield _checked(Controlled(question=question, clock=clock, ask=bmc.ask), host.ipmi.check)
    if host.wol is not None:
        yield _wake_on_lan(host.wol)


def _need(library: str, what_for: str) -> None:
    # The library itself is imported by the process that asks, where its absence would be a crash.
    if find_spec(library) is None:
        raise MissingExtra("power", what_for)


def _checked(waker: Waker, check: str | None) -> Waker:
    place = None if check is None else endpoint(check)
    return waker if place is None else Checked(inner=waker, check=place)


def _redfish(way: Redfish, around: Surroundings, found: Findings) -> Question:
    ca_file = None
    if way.ca_file is not None:
        ca_file = str(around.folder / way.ca_file)
        if not Path(ca_file).is_file():
            found.add(("ca_file",), f"there is no file {quoted(ca_file)}", "check its name")
    return Question(
        by="redfish",
        verb=Verb.STATE,
        user=way.user,
        password=_password(way, around, found),
        url=way.url,
        system=way.system,
        ca_file=ca_file,
    )


def _ipmi(way: Ipmi, around: Surroundings, found: Findings) -> Question:
    password = _password(way, around, found)
    if len(password.encode()) > IPMI_PASSWORD_MAX:
        key = "password_env" if way.password_env is not None else "password_file"
        what = "the password that it names is too long for IPMI"
        found.add((key,), what, f"at most {IPMI_PASSWORD_MAX} bytes")
    return Question(
        by="ipmi",
        verb=Verb.STATE,
        user=way.user,
        password=password,
        address=way.address,
        port=way.port,
    )


def _wake_on_lan(way: Wol) -> WakeOnLan:
    mac, check = mac_bytes(way.mac), endpoint(way.check)
    assert mac is not None
    assert check is not None
    return WakeOnLan(mac=mac, broadcast=way.broadcast, port=way.port, check=check)


def _password(way: Redfish | Ipmi, around: Surroundings, found: Findings) -> str:
    """Find the password, or note that it is missing; what was found is never said."""
    if way.password_env is not None:
        password = around.environ.get(way.password_env, "")
        if not password:
            how = "is empty" if way.password_env in around.environ else "is not set"
            what = f"the environment variable {way.password_env} {how}"
            found.add(("password_env",), what, "put the password of the controller into it")
        return password
    assert way.password_file is not None
    path = around.folder / way.password_file
    try:
        password = next(iter(path.read_text(encoding="utf-8").splitlines()), "")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        what = f"the file {quoted(str(path))} cannot be read: {str(why).lower()}"
        found.add(("password_file",), what, "is the name right, and may you read it?")
        return ""
    if not password:
        what = f"the file {quoted(str(path))} starts with an empty line"
        found.add(("password_file",), what, "its first line is the password")
    return password
