"""The access file of upgrades, which describes the SSH connection to each host.

The file never holds a secret: it names the environment variable that does. All missing keys and
secrets are reported at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta

from equipoise.adapters.access_file import FileContext, is_variable_name, read_access
from equipoise.adapters.ansible.job import HostConnection, RunOptions, Scalar
from equipoise.errors import InvalidInput
from equipoise.model.diagnostics import Diagnostics, KeyPath, quoted
from equipoise.model.quantity import HostId, HostKey
from equipoise.model.value import Value

Text = Annotated[str, Meta(min_length=1)]
Port = Annotated[int, Meta(ge=1, le=65535)]
Seconds = Annotated[int, Meta(ge=1, le=86_400)]

PORT: Final = 22
VARIABLE_PREFIX: Final = "equipoise_"
"""The prefix of the variables that the engine passes to a playbook."""

_KEY_OF_VARIABLE: Final = {
    "ansible_host": "address",
    "ansible_port": "port",
    "ansible_user": "user",
    "ansible_ssh_private_key_file": "key_file",
    "ansible_private_key_file": "key_file",
    "ansible_python_interpreter": "python",
    "ansible_become": "become",
}
"""Variables of Ansible that have a key of their own in the access file."""
_FIXED_VARIABLES: Final = frozenset(
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
"""Variables that only the engine sets, because the outcome of a run depends on them."""
_SECRET_WORDS: Final = (
    "password",
    "passwd",
    "passphrase",
    "ansible_become_pass",
    "ansible_ssh_pass",
)


class AnsibleHostAccess(Value):
    """The connection to one host; ``defaults`` provides what is not given here."""

    address: Text | None = None
    """A name or an IP address; without it the name of the host."""
    port: Port | None = None
    user: Text | None = None
    """Without it, the user that SSH chooses."""
    key_file: Text | None = None
    """The private key, relative to the access file; without it, the keys that SSH finds."""
    python: Text | None = None
    """The interpreter on the host, if Ansible does not find the right one."""
    become: bool | None = None
    """Whether steps run as root although ``user`` is not root."""
    variables: Mapping[Text, Scalar] = {}
    """Variables of this host for the playbooks."""
    secrets: Mapping[Text, Text] = {}
    """Secret variables for the playbooks, each with the environment variable that holds it."""


class TaskPlaybooks(Value):
    """Playbooks for tasks that do not concern a component, relative to the access file.

    A task without a playbook does nothing, except that a VM move needs one.
    """

    activate: Text | None = None
    deactivate: Text | None = None
    isolate: Text | None = None
    release: Text | None = None
    link_on: Text | None = None
    link_off: Text | None = None
    move: Text | None = None
    """Moves a VM; it runs on the host that the VM leaves."""


class AnsibleAccess(Value):
    """The contents of an access file."""

    hosts: Mapping[HostKey, AnsibleHostAccess]
    defaults: AnsibleHostAccess = AnsibleHostAccess()
    known_hosts: Text | None = None
    """A file of host keys in the format of SSH; without it, SSH's own. Other keys are refused."""
    connect_timeout_s: Seconds = 10
    timeout_s: Seconds = 1800
    """The time limit of the run of a batch; the outcome of jobs that run longer is unknown."""
    task_playbooks: TaskPlaybooks = TaskPlaybooks()


OLD_KEYS: Final = {"errands": "task_playbooks"}
"""Keys of files of earlier versions, which are still read."""


def parse_access(content: bytes, source: str) -> AnsibleAccess:
    """Read an access file; raise ``InvalidInput`` with all its problems."""
    return read_access(content, source, AnsibleAccess, _check, old_keys=OLD_KEYS)


def with_defaults(access: AnsibleAccess, host: AnsibleHostAccess) -> AnsibleHostAccess:
    """Return a host with the defaults of the file filled in."""
    defaults = access.defaults
    return AnsibleHostAccess(
        address=host.address,
        port=_first(host.port, defaults.port, PORT),
        user=_first(host.user, defaults.user),
        key_file=_first(host.key_file, defaults.key_file),
        python=_first(host.python, defaults.python),
        become=_first(host.become, defaults.become, False),
        variables={**defaults.variables, **host.variables},
        secrets={**defaults.secrets, **host.secrets},
    )


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _check(access: AnsibleAccess, found: Diagnostics) -> None:
    """Find the problems that types cannot express."""
    if not access.hosts:
        found.add(("hosts",), "the file lists no host", "list at least one", code="empty-value")
    if access.defaults.address is not None:
        what = "hosts cannot share an address"
        found.add(("defaults", "address"), what, "give each host its own", code="duplicate-name")
    _check_variables(access.defaults, found.below("defaults"))
    names: dict[tuple[str, int], str] = {}
    for name, host in access.hosts.items():
        _check_variables(host, found.below("hosts", name))
        path: KeyPath = ("hosts", name)
        address = (host.address or name, with_defaults(access, host).port or PORT)
        if address in names:
            what = f"{address[0]} port {address[1]} is also the address of"
            cure = "list each host once: two names would be upgraded as two hosts"
            found.add(path, what, cure, ("hosts", names[address]), code="duplicate-name")
        names.setdefault(address, name)


def _check_variables(host: AnsibleHostAccess, found: Diagnostics) -> None:
    for key, names in (("variables", host.variables), ("secrets", host.secrets)):
        for name in names:
            _check_name(name, (key, name), found)
    for name in host.variables:
        if any(word in name.lower() for word in _SECRET_WORDS):
            cure = f"secrets: {{{name}: NAME_OF_AN_ENVIRONMENT_VARIABLE}}"
            what = "this file must not contain a password"
            found.add(("variables", name), what, cure, code="secret-in-file")
        if name in host.secrets:
            earlier: KeyPath = ("variables", name)
            found.add(
                ("secrets", name), "is also given by", "remove one", earlier, code="duplicate-name"
            )
    for name, variable in host.secrets.items():
        if not is_variable_name(variable):
            # The value is not shown: it may be the secret itself.
            what = "this is not the name of an environment variable"
            cure = "such as H1_TOKEN; this file never contains the secret itself"
            found.add(("secrets", name), what, cure, code="secret-in-file")


def _check_name(name: str, path: KeyPath, found: Diagnostics) -> None:
    if not is_variable_name(name):
        what = f"{quoted(name)} is not the name of a variable"
        found.add(path, what, "use letters, digits and _", code="invalid-name")
    elif name.startswith(VARIABLE_PREFIX):
        what = f"the engine sets the variables that begin with {VARIABLE_PREFIX}"
        found.add(path, what, "choose another name", code="reserved-word")
    elif name in _KEY_OF_VARIABLE:
        what, cure = "this variable has a key of its own", f"use {_KEY_OF_VARIABLE[name]}"
        found.add(path, what, cure, code="reserved-word")
    elif name in _FIXED_VARIABLES:
        what = "a variable cannot change how connections are made"
        cure = "use the keys of the host, known_hosts and connect_timeout_s"
        found.add(path, what, cure, code="reserved-word")


def connections_to(
    access: AnsibleAccess, names: Iterable[str], context: FileContext
) -> dict[str, HostConnection]:
    """Return the connections to the named hosts; raise ``InvalidInput`` with all problems."""
    found = Diagnostics()
    connections: dict[str, HostConnection] = {}
    for name in dict.fromkeys(names):
        host = access.hosts.get(HostId(name))
        if host is None:
            found.add_unknown(("hosts",), "host", name, access.hosts)
            continue
        part = found.below("hosts", name)
        connections[name] = _connection(name, with_defaults(access, host), context, part)
    if found:
        raise InvalidInput(context.source, found.problems())
    return connections


def run_options_of(access: AnsibleAccess, context: FileContext) -> RunOptions:
    """Return the options of all runs; raise ``InvalidInput`` if the host keys are missing."""
    found = Diagnostics()
    known_hosts = _file(access.known_hosts, "known_hosts", context, found)
    if found:
        raise InvalidInput(context.source, found.problems())
    return RunOptions(
        known_hosts=known_hosts,
        connect_timeout_s=access.connect_timeout_s,
        timeout_s=access.timeout_s,
    )


def _connection(
    name: str, host: AnsibleHostAccess, context: FileContext, found: Diagnostics
) -> HostConnection:
    secrets = {}
    for variable, environment_name in host.secrets.items():
        secrets[variable] = context.environ.get(environment_name, "")
        if not secrets[variable]:
            how = "is empty" if environment_name in context.environ else "is not set"
            what = f"the environment variable {environment_name} {how}"
            found.add(("secrets", variable), what, "set it to the secret", code="secret-missing")
    return HostConnection(
        host=name,
        address=host.address or name,
        port=host.port or PORT,
        user=host.user,
        key_file=_file(host.key_file, "key_file", context, found),
        python=host.python,
        is_root_needed=bool(host.become),
        variables=host.variables,
        secrets=secrets,
    )


def _file(name: str | None, key: str, context: FileContext, found: Diagnostics) -> Path | None:
    if name is None:
        return None
    path = (context.folder / Path(name).expanduser()).absolute()
    if not path.is_file():
        what = f"there is no file {quoted(str(path))}"
        found.add((key,), what, "check its name", code="file-not-readable")
    return path
