"""Scripts of plans, run by a real shell with programs that only write down their arguments."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_step, a_vm, coded
from equipoise.adapters.shell_script import PLATFORMS, one_by_one, shell_script
from equipoise.errors import InvalidInput
from equipoise.model.action import (
    Action,
    EnterMaintenance,
    LeaveMaintenance,
    Migrate,
    PowerOff,
    PowerOn,
)
from equipoise.model.host import HostState
from equipoise.model.plan import Plan
from equipoise.model.quantity import HostId, PlanId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan import VerifiedPlan, verify

RECORDER = """#!/bin/sh
for word in {name} "$@"; do printf '%s\\0' "$word"; done >> "$LOG"
printf '\\n\\0' >> "$LOG"
"""
SSH = """#!/bin/sh
for word in ssh "$@"; do printf '%s\\0' "$word"; done >> "$LOG"
printf '\\n\\0' >> "$LOG"
for last; do :; done
sh -c "$last"
"""
QM = """#!/bin/sh
if [ "$1" = list ]; then
  printf 'VMID NAME STATUS\\n 117 other running\\n 118 %s running\\n' "$NAME"
  exit
fi
for word in qm "$@"; do printf '%s\\0' "$word"; done >> "$LOG"
printf '\\n\\0' >> "$LOG"
"""
NASTY = ["a;b", "$(touch x)", "`id`", "a'b", 'a"b', "a b", "*", "a&b", "a\nb", "#c", "~", "a\\b"]
NAMES = st.sampled_from(NASTY) | st.text("abc-_./@:+$`'\"\\ ;&|<>", min_size=1, max_size=8).map(
    lambda text: f"x{text}"
)


def run(script: tuple[str, ...], folder: Path, vm_name: str = "") -> list[list[str]]:
    """Run a script; return the words of each command that it started."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    for name in ("virsh", "openstack", "pvenode", "ha-manager", "systemctl"):
        (programs / name).write_text(RECORDER.format(name=name))
    (programs / "ssh").write_text(SSH)
    (programs / "qm").write_text(QM)
    for program in programs.iterdir():
        program.chmod(0o755)
    log = folder / "log"
    log.write_text("")
    # Through a pipe, as an operator may do it: no command may read the rest of the script.
    done = subprocess.run(
        ["sh"],
        input="\n".join(script) + "\n",
        env={"PATH": f"{programs}:{os.environ['PATH']}", "LOG": str(log), "NAME": vm_name},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [words.split("\0")[:-1] for words in log.read_text().split("\n\0")[:-1]]


def a_plan_of(*actions: Action) -> Plan:
    steps = tuple(a_step(f"s{n}", action, 0, 1000) for n, action in enumerate(actions, start=1))
    return one_by_one(Plan(id=PlanId("p"), steps=steps))


def a_move(vm: str, source: str, target: str) -> tuple[Snapshot, Plan]:
    state = a_cluster(a_host(source), a_host(target), vms=[a_vm(vm, source)])
    move = Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))
    return state, a_plan_of(move)


@settings(max_examples=20)
@given(NAMES, NAMES, NAMES)
def test_names_reach_the_commands_as_they_are(
    tmp_path_factory: pytest.TempPathFactory, vm: str, source: str, target: str
) -> None:
    if source == target or "\n" in vm + source + target:
        return
    folder = tmp_path_factory.mktemp("script")
    state, plan = a_move(vm, source, target)
    ((*_, server),) = run(shell_script(state, plan, "openstack"), folder)
    assert server == vm
    (words,) = run(shell_script(state, plan, "virsh"), folder)
    assert f"--domain={vm}" in words
    if " " not in vm and "\\" not in vm:  # a name of Proxmox has neither
        remote, move = run(shell_script(state, plan, "qm"), folder, vm)
        assert f"root@{source}" in remote
        assert move == ["qm", "migrate", "118", target, "--online", "1"]
    assert sorted(path.name for path in folder.iterdir()) == ["log", "programs"]


@pytest.mark.parametrize(("name", "number"), [("117", "117"), ("vm-118", "118"), ("qemu/9", "9")])
def test_a_vm_of_proxmox_that_is_a_number_needs_no_search(
    tmp_path: Path, name: str, number: str
) -> None:
    state, plan = a_move(name, "a", "b")
    remote, move = run(shell_script(state, plan, "qm"), tmp_path)
    assert "list" not in remote[-1]
    assert move == ["qm", "migrate", number, "b", "--online", "1"]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_name_that_a_command_reads_as_an_option_is_refused(platform: str) -> None:
    state, plan = a_move("-oProxyCommand=x", "a", "b")
    with pytest.raises(InvalidInput) as caught:
        shell_script(state, plan, platform)
    assert coded("unsupported-feature", "-oProxyCommand=x")(caught.value)


def test_a_comment_cannot_end_before_its_line() -> None:
    state, plan = a_move("a\ntouch x", "b", "c")
    lines = [line for line in shell_script(state, plan, "openstack") if line.startswith("# s1")]
    assert lines
    assert not any("\n" in line for line in lines)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_power_actions_are_commands_or_say_what_to_do(tmp_path: Path, platform: str) -> None:
    hosts = [a_host("up"), a_host("down", state=HostState.STANDBY)]
    hosts += [a_host("busy"), a_host("idle", state=HostState.MAINTENANCE)]
    plan = a_plan_of(
        PowerOn(host=HostId("down")),
        PowerOff(host=HostId("up")),
        EnterMaintenance(host=HostId("busy")),
        LeaveMaintenance(host=HostId("idle")),
    )
    script = shell_script(a_cluster(*hosts), plan, platform)
    # A real answer of the service that the script waits for.
    folder = tmp_path / "programs"
    folder.mkdir()
    commands = [line for line in script if line and not line.startswith(("#", " ", "}"))]
    assert any("wait_for down" in line for line in commands)
    if platform == "qm":
        assert shlex.join(["pvenode", "wakeonlan", "down"]) in commands
        assert "ha-manager crm-command node-maintenance enable busy" in commands
        assert "ha-manager crm-command node-maintenance disable idle" in commands
    if platform == "openstack":
        assert "openstack compute service set --disable up nova-compute" in commands
        assert "openstack compute service set --enable down nova-compute" in commands
    else:
        assert [line for line in commands if "root@up" in line and "poweroff" in line]


def test_every_step_says_what_it_waits_for_and_runs_after_it() -> None:
    state = a_cluster(a_host("a"), a_host("b"), vms=[a_vm("v", "a"), a_vm("w", "b")])
    plan = a_plan_of(
        Migrate(vm=VmId("v"), source=HostId("a"), target=HostId("b")),
        Migrate(vm=VmId("w"), source=HostId("b"), target=HostId("a")),
    )
    assert isinstance(verify(state, plan), VerifiedPlan)
    assert plan.steps[0].end_ms <= plan.steps[1].start_ms
    script = shell_script(state, plan, "virsh")
    (second,) = [line for line in script if line.startswith("# s2")]
    assert second.endswith("waits for s1")
    first_command = next(n for n, line in enumerate(script) if "--domain=v" in line)
    assert first_command < script.index(second)
