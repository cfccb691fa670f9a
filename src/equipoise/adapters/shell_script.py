"""Plans as shell scripts: the commands of an operator for libvirt, Proxmox VE and OpenStack.

A script runs one command after the other, in the order of the plan, and stops at the first that
fails. Each command returns only when its action has ended, so the order alone keeps every step
behind those that it waits for. Names are quoted for the shell, and never read as options.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Final, Protocol
from urllib.parse import quote as quote_url

from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.action import (
    Action,
    EnterMaintenance,
    LeaveMaintenance,
    Migrate,
    PowerOff,
    PowerOn,
    describe,
)
from equipoise.model.plan import Plan, Step
from equipoise.model.quantity import format_count
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan.verify import Refusal, verify

WAIT_S: Final = 900
"""How long a script waits for a host to answer after it was powered on."""


def one_by_one(plan: Plan) -> Plan:
    """Return the plan with its steps one after the other, as a script runs them."""
    steps: list[Step] = []
    for step in plan.steps:
        start_ms = steps[-1].end_ms if steps else 0
        before = (*step.after, *(other.id for other in steps[-1:] if other.id not in step.after))
        steps.append(step.but(start_ms=start_ms, end_ms=start_ms + step.duration_ms, after=before))
    return plan.but(steps=tuple(steps))


def shell_script(snapshot: Snapshot, plan: Plan, platform: str) -> tuple[str, ...]:
    """Return the lines of a script that executes a plan; ``platform`` is a key of ``PLATFORMS``.

    :raises InvalidInput: if the gate refuses the plan when its steps run one by one.
    """
    writer = PLATFORMS[platform]
    _reject_option_names(plan)
    single = one_by_one(plan)
    verdict = verify(snapshot, single.but(base_version=snapshot.version))
    if isinstance(verdict, Refusal):
        what = f"the steps cannot run one by one: {verdict.violations[0].detail}"
        cure = "write the plan with -o, and execute it with concurrent actions"
        raise InvalidInput.of("--format", what, cure=cure, code="gate-refuses")
    steps = format_count(len(plan.steps), "step")
    lines = [
        "#!/bin/sh",
        f"# {steps}, one after the other; the first that fails ends the script.",
        "set -eu",
    ]
    if any(isinstance(step.action, PowerOn) for step in plan.steps):
        lines += [*_WAIT_FUNCTION, *writer.wait_command()]
    for step in plan.steps:
        waits = f"; waits for {', '.join(step.after)}" if step.after else ""
        lines += ["", f"# {step.id}: {_comment(describe(step.action))}{_comment(waits)}"]
        lines += writer.commands(step.action)
    return tuple(lines)


def _reject_option_names(plan: Plan) -> None:
    """Reject names that a command would read as options, whatever quotes they have."""
    touched = [step.footprint for step in plan.steps]
    names = {name for item in touched for name in (item.vm, *item.hosts, item.switched) if name}
    what, cure = "a command reads the name as an option", "rename it, or write the plan with -o"
    problems = [
        InputProblem(key=name, what=what, cure=cure, code="unsupported-feature")
        for name in sorted(map(str, names))
        if name.startswith("-")
    ]
    if problems:
        raise InvalidInput("--format", problems)


_WAIT_FUNCTION: Final = (
    "",
    "# Waits until a host answers.",
    "wait_for() {",
    f"  end=$(( $(date +%s) + {WAIT_S} ))",
    '  until answers "$1"; do',
    '    [ "$(date +%s)" -lt "$end" ] || { echo "no answer: $1" >&2; exit 1; }',
    "    sleep 5",
    "  done",
    "}",
)


def _comment(text: str) -> str:
    """Return text that cannot end the comment that it stands in."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _command(*words: str) -> str:
    return " ".join(map(quote, words))


def _on_host(host: str, *words: str) -> str:
    """Return a command for another host; its words pass two shells."""
    # Without -n, ssh would read the rest of a script that comes through a pipe.
    return _command("ssh", "-n", "-o", "BatchMode=yes", f"root@{host}", _command(*words))


class CommandWriter(Protocol):
    """The commands of one platform."""

    def commands(self, action: Action) -> Iterator[str]:
        """Yield the lines that execute an action and wait for its end."""
        ...

    def wait_command(self) -> Sequence[str]:
        """Return the shell function ``answers``, which says whether a host answers."""
        ...


_SSH_ANSWERS: Final = (
    'answers() { ssh -o BatchMode=yes -o ConnectTimeout=5 "root@$1" true </dev/null; }',
)


class LibvirtCommands:
    """Commands of ``virsh``; hosts are reached over SSH."""

    def commands(self, action: Action) -> Iterator[str]:
        """Yield the lines that execute an action and wait for its end."""
        match action:
            case Migrate():
                yield _command(
                    "virsh",
                    f"--connect={_libvirt_url(action.source)}",
                    *("migrate", "--live", "--persistent", "--undefinesource"),
                    f"--domain={action.vm}",
                    f"--desturi={_libvirt_url(action.target)}",
                )
            case PowerOff():
                yield _on_host(action.host, "systemctl", "poweroff")
            case PowerOn():
                yield "# libvirt cannot power a host on: use 'equipoise wake' or the BMC now."
                yield _command("wait_for", action.host)
            case _:
                yield _manual(action)

    def wait_command(self) -> Sequence[str]:
        """Return the shell function ``answers``."""
        return _SSH_ANSWERS


def _libvirt_url(host: str) -> str:
    return f"qemu+ssh://root@{quote_url(host, safe=':')}/system"


class ProxmoxCommands:
    """Commands of Proxmox VE: ``qm``, ``pvenode`` and ``ha-manager``."""

    def commands(self, action: Action) -> Iterator[str]:
        """Yield the lines that execute an action and wait for its end."""
        match action:
            case Migrate():
                yield self._migrate(action)
            case PowerOff():
                yield _on_host(action.host, "systemctl", "poweroff")
            case PowerOn():
                yield _command("pvenode", "wakeonlan", action.host)
                yield _command("wait_for", action.host)
            case EnterMaintenance():
                yield self._maintenance("enable", action.host)
            case LeaveMaintenance():
                yield self._maintenance("disable", action.host)
            case _:
                yield _manual(action)

    def wait_command(self) -> Sequence[str]:
        """Return the shell function ``answers``."""
        return _SSH_ANSWERS

    def _migrate(self, action: Migrate) -> str:
        # ``qm`` knows VMs by their number and runs on the node of the VM.
        number = _number(action.vm)
        if number is not None:
            return _on_host(action.source, "qm", "migrate", number, action.target, "--online", "1")
        find = f"qm list | awk -v name={quote(action.vm)} '$2 == name {{ print $1 }}'"
        move = f'qm migrate "$id" {quote(action.target)} --online 1'
        script = f'id=$({find}); test -n "$id" && {move}'
        return _command("ssh", "-n", "-o", "BatchMode=yes", f"root@{action.source}", script)

    def _maintenance(self, verb: str, host: str) -> str:
        return _command("ha-manager", "crm-command", "node-maintenance", verb, host)


def _number(vm: str) -> str | None:
    """Return the number of a VM whose name is a number, or a number after ``vm-`` or ``qemu/``."""
    for prefix in ("", "vm-", "qemu/"):
        rest = vm.removeprefix(prefix)
        if vm.startswith(prefix) and rest.isascii() and rest.isdecimal():
            return rest
    return None


class OpenStackCommands:
    """Commands of the OpenStack client; hosts are compute services."""

    def commands(self, action: Action) -> Iterator[str]:
        """Yield the lines that execute an action and wait for its end."""
        match action:
            case Migrate():
                yield _command(
                    # From this version on, the scheduler checks the host that is named.
                    *("openstack", "--os-compute-api-version", "2.30"),
                    *("server", "migrate", "--live-migration", f"--host={action.target}"),
                    *("--wait", action.vm),
                )
            case EnterMaintenance():
                yield self._service("--disable", action.host)
            case LeaveMaintenance():
                yield self._service("--enable", action.host)
            case PowerOff():
                yield self._service("--disable", action.host)
                yield "# OpenStack cannot power a compute host off: use the BMC now."
            case PowerOn():
                yield "# OpenStack cannot power a compute host on: use the BMC now."
                yield _command("wait_for", action.host)
                yield self._service("--enable", action.host)
            case _:
                yield _manual(action)

    def wait_command(self) -> Sequence[str]:
        """Return the shell function ``answers``."""
        return (
            "answers() {",
            '  openstack compute service list --service nova-compute --host "$1" \\',
            "    -f value -c State | grep -qx up",
            "}",
        )

    def _service(self, option: str, host: str) -> str:
        words = ("openstack", "compute", "service", "set", option, host, "nova-compute")
        return _command(*words)


def _manual(action: Action) -> str:
    return f"# No command: {_comment(describe(action))} by hand now."


PLATFORMS: Final[Mapping[str, CommandWriter]] = {
    "virsh": LibvirtCommands(),
    "qm": ProxmoxCommands(),
    "openstack": OpenStackCommands(),
}
"""The formats of ``recommend --format``."""


def check_platform(name: str) -> None:
    """Reject a format that does not exist."""
    if name not in PLATFORMS:
        what, cure = f"there is no format {name!r}", f"use one of {', '.join(PLATFORMS)}"
        problem = InputProblem(key="--format", what=what, cure=cure, code="unknown-name")
        raise InvalidInput("--format", [problem])
