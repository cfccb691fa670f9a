"""From an access file to ways that can be gone: finds keys and secrets, or says what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from equipoise.errors import InvalidInput
from equipoise.hosts.ansible.access import PORT, Access, HostAccess, whole
from equipoise.hosts.ansible.words import Manners, Way
from equipoise.model.files.findings import Findings
from equipoise.model.files.words import quoted
from equipoise.model.quantity import HostId


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where an access file lies, and what it may refer to."""

    source: str
    """What messages call the file."""
    folder: Path
    """What relative names of files are seen from."""
    environ: Mapping[str, str]


def ways_to(access: Access, names: Iterable[str], around: Surroundings) -> dict[str, Way]:
    """Find the ways to the named hosts. Raises ``InvalidInput`` with all that is missing."""
    found = Findings()
    made: dict[str, Way] = {}
    for name in dict.fromkeys(names):
        host = access.hosts.get(HostId(name))
        if host is None:
            found.add_unknown(("hosts",), "host", name, access.hosts)
            continue
        part = found.below("hosts", name)
        made[name] = _way(name, whole(access, host), around, part)
    if found:
        raise InvalidInput(around.source, found.problems())
    return made


def manners_of(access: Access, around: Surroundings) -> Manners:
    """Find what holds for all hosts. Raises ``InvalidInput`` if the host keys are not there."""
    found = Findings()
    known_hosts = _file(access.known_hosts, "known_hosts", around, found)
    if found:
        raise InvalidInput(around.source, found.problems())
    return Manners(
        known_hosts=known_hosts,
        connect_timeout_s=access.connect_timeout_s,
        timeout_s=access.timeout_s,
    )


def _way(name: str, host: HostAccess, around: Surroundings, found: Findings) -> Way:
    secrets = {}
    for variable, place in host.secrets.items():
        secrets[variable] = around.environ.get(place, "")
        if not secrets[variable]:
            how = "is empty" if place in around.environ else "is not set"
            what = f"the environment variable {place} {how}"
            found.add(("secrets", variable), what, "put the secret into it")
    return Way(
        host=name,
        address=host.address or name,
        port=host.port or PORT,
        user=host.user,
        key_file=_file(host.key_file, "key_file", around, found),
        python=host.python,
        is_root_needed=bool(host.become),
        variables=host.variables,
        secrets=secrets,
    )


def _file(name: str | None, key: str, around: Surroundings, found: Findings) -> Path | None:
    if name is None:
        return None
    path = (around.folder / Path(name).expanduser()).absolute()
    if not path.is_file():
        found.add((key,), f"there is no file {quoted(str(path))}", "check its name")
    return path
