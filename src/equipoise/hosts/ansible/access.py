"""The access file of upgrades: how each host is reached by SSH. Never holds a secret.

A secret is named by the environment variable in which it is found.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from equipoise.errors import InvalidInput
from equipoise.hosts.ansible.words import Scalar
from equipoise.model.files.findings import Enough, Findings
from equipoise.model.files.json_tree import read_json
from equipoise.model.files.shape import examine
from equipoise.model.files.text import Language, check_size_of, languages_of, text_of
from equipoise.model.files.tree import Tree
from equipoise.model.files.words import Path, quoted
from equipoise.model.files.yaml_tree import read_yaml
from equipoise.model.quantity import HostKey
from equipoise.model.value import Value

Text = Annotated[str, Meta(min_length=1)]
Port = Annotated[int, Meta(ge=1, le=65535)]
Seconds = Annotated[int, Meta(ge=1, le=86_400)]

PORT: Final = 22
OURS: Final = "equipoise_"
"""How the variables begin that the engine tells a playbook."""

_KEYS: Final = {
    "ansible_host": "address",
    "ansible_port": "port",
    "ansible_user": "user",
    "ansible_ssh_private_key_file": "key_file",
    "ansible_private_key_file": "key_file",
    "ansible_python_interpreter": "python",
    "ansible_become": "become",
}
"""Variables of Ansible that have a key of their own here."""
_FIXED: Final = frozenset(
    (
        "ansible_connection",
        "ansible_ssh_args",
        "ansible_ssh_common_args",
        "ansible_ssh_extra_args",
        "ansible_host_key_checking",
        "ansible_ssh_host_key_checking",
        "ansible_control_path",
        "ansible_ssh_control_path",
    )
)
"""What this room decides, because an outcome could not be trusted otherwise."""
_SECRET_WORDS: Final = (
    "password",
    "passwd",
    "passphrase",
    "ansible_become_pass",
    "ansible_ssh_pass",
)


class HostAccess(Value):
    """How one host is reached; what it leaves open is taken from ``defaults``."""

    address: Text | None = None
    """A name or an IP address; without it the name of the host."""
    port: Port | None = None
    user: Text | None = None
    """Without it SSH decides."""
    key_file: Text | None = None
    """The private key, seen from the folder of the access file; without it those that SSH finds."""
    python: Text | None = None
    """The interpreter on the host, if Ansible does not find the right one."""
    become: bool | None = None
    """Whether steps are taken as root although ``user`` is not root."""
    variables: Mapping[Text, Scalar] = {}
    """What playbooks are told about this host."""
    secrets: Mapping[Text, Text] = {}
    """The same, each by the environment variable that holds it."""


class Errands(Value):
    """Playbooks for what is not about a component, seen from the folder of the access file.

    Where none is named, nothing is done; only a VM cannot be moved by nothing.
    """

    activate: Text | None = None
    deactivate: Text | None = None
    isolate: Text | None = None
    release: Text | None = None
    link_on: Text | None = None
    link_off: Text | None = None
    move: Text | None = None
    """Moves a VM, and runs on the host that it leaves."""


class Access(Value):
    """How hosts are reached."""

    hosts: Mapping[HostKey, HostAccess]
    defaults: HostAccess = HostAccess()
    known_hosts: Text | None = None
    """A file of host keys, as SSH writes it; without it SSH's own. Other keys are refused."""
    connect_timeout_s: Seconds = 10
    timeout_s: Seconds = 1800
    """How long the run of a batch may take; what has not ended then is unknown."""
    errands: Errands = Errands()


def parse_access(content: bytes, source: str) -> Access:
    """Read an access file, or say all that is wrong with it; ``source`` is its name."""
    language = languages_of(content, source)[0]
    check_size_of(len(content), source, language)
    text = text_of(content, source)
    reader = read_json if language is Language.JSON else read_yaml
    return _judged(reader(text, source), source)


def whole(access: Access, host: HostAccess) -> HostAccess:
    """A host with what it left open."""
    spare = access.defaults
    return HostAccess(
        address=host.address,
        port=_first(host.port, spare.port, PORT),
        user=_first(host.user, spare.user),
        key_file=_first(host.key_file, spare.key_file),
        python=_first(host.python, spare.python),
        become=_first(host.become, spare.become, False),
        variables={**spare.variables, **host.variables},
        secrets={**spare.secrets, **host.secrets},
    )


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _judged(tree: Tree, source: str) -> Access:
    found = Findings(tree.findings)
    with suppress(Enough):
        examine(tree.root, Access, found)
        if not found:
            access = msgspec.convert(tree.root, Access)
            _check(access, found)
            if not found:
                return access
    raise InvalidInput(source, found.problems(tree.line_of))


def _check(access: Access, found: Findings) -> None:
    """Find what no reader of forms can see."""
    if not access.hosts:
        found.add(("hosts",), "there is no host", "list at least one")
    if access.defaults.address is not None:
        what = "hosts cannot share an address"
        found.add(("defaults", "address"), what, "give each host its own")
    _check_variables(access.defaults, found.below("defaults"))
    places: dict[tuple[str, int], str] = {}
    for name, host in access.hosts.items():
        _check_variables(host, found.below("hosts", name))
        path: Path = ("hosts", name)
        place = (host.address or name, whole(access, host).port or PORT)
        if place in places:
            what = f"{place[0]} port {place[1]} is also the address of"
            cure = "two names for one host would be upgraded as two"
            found.add(path, what, cure, ("hosts", places[place]))
        places.setdefault(place, name)


def _check_variables(host: HostAccess, found: Findings) -> None:
    for key, names in (("variables", host.variables), ("secrets", host.secrets)):
        for name in names:
            _check_name(name, (key, name), found)
    for name in host.variables:
        if any(word in name.lower() for word in _SECRET_WORDS):
            cure = f"secrets: {{{name}: NAME_OF_AN_ENVIRONMENT_VARIABLE}}"
            found.add(("variables", name), "a password does not stand in this file", cure)
        if name in host.secrets:
            found.add(("secrets", name), "is also given by", "leave out one", ("variables", name))
    for name, variable in host.secrets.items():
        if not (variable.isascii() and variable.isidentifier()):
            # Not shown, for it may be the secret itself.
            what = "this is no name of an environment variable"
            cure = "such as H1_TOKEN; the secret itself never stands in this file"
            found.add(("secrets", name), what, cure)


def _check_name(name: str, path: Path, found: Findings) -> None:
    if not (name.isascii() and name.isidentifier()):
        found.add(path, f"{quoted(name)} is no name of a variable", "letters, digits and _")
    elif name.startswith(OURS):
        found.add(path, f"what begins with {OURS} is told by the engine", "choose another name")
    elif name in _KEYS:
        found.add(path, "this variable has a key of its own", f"use {_KEYS[name]}")
    elif name in _FIXED:
        what = "how connections are made is not for variables to say"
        found.add(path, what, "use the keys of the host, known_hosts and connect_timeout_s")
