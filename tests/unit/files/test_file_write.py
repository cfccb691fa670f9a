"""The text of files that Equipoise writes."""

from __future__ import annotations

from builders import a_host, a_plan, a_step, a_vm, an_inventory
from equipoise.files import parse_inventory, parse_plan, to_json, to_yaml
from equipoise.model.action import Migrate
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepApart
from equipoise.model.vm import CpuSettings, MemorySettings

RACK = an_inventory(
    a_host("h1", labels={"rack": "on", "a b": "it's: #1\n"}),
    a_host("h2", state=HostState.STANDBY),
    name="little rack",
    vms=[
        a_vm("v1", "h1", cpu=CpuSettings(shares=500), memory=MemorySettings()),
        a_vm("1", "h1"),
    ],
    rules=(KeepApart(id=RuleId("r"), vms=(VmId("v1"), VmId("1"))),),
)


def test_an_inventory_is_written_as_yaml() -> None:
    assert (
        to_yaml(RACK)
        == """\
name: little rack
hosts:
  - id: h1
    cores: 4
    mhz_per_core: 1000
    memory_mib: 16384
    labels: {rack: "on", a b: "it's: #1\\n"}
  - id: h2
    cores: 4
    mhz_per_core: 1000
    memory_mib: 16384
    state: standby
vms:
  - id: v1
    vcpus: 1
    memory_mib: 1024
    host: h1
    cpu: {shares: 500}
  - id: "1"
    vcpus: 1
    memory_mib: 1024
    host: h1
rules:
  - kind: keep_apart
    id: r
    vms: [v1, "1"]
"""
    )


def test_a_plan_is_written_as_yaml() -> None:
    move = Migrate(vm=VmId("v1"), source=HostId("h1"), target=HostId("h2"))
    plan = a_plan(a_step("s1", move, 0, 5000), a_step("s2", move, 5000, 9000, "s1"))
    assert (
        to_yaml(plan)
        == """\
id: p
steps:
  - id: s1
    action: {do: migrate, vm: v1, source: h1, target: h2}
    end_ms: 5000
  - id: s2
    action: {do: migrate, vm: v1, source: h1, target: h2}
    start_ms: 5000
    end_ms: 9000
    after: [s1]
"""
    )


def test_an_empty_plan_is_written_and_read() -> None:
    assert to_yaml(a_plan()) == "id: p\nsteps: []\n"
    assert parse_plan(to_yaml(a_plan()).encode(), "p.yaml") == a_plan()


def test_a_long_list_has_one_line_per_entry() -> None:
    vms = tuple(VmId(f"machine-{n}") for n in range(20))
    rule = KeepApart(id=RuleId("r"), vms=vms)
    inventory = an_inventory(vms=[a_vm(name, "h1") for name in vms], rules=(rule,))
    text = to_yaml(inventory)
    assert "    vms:\n      - machine-0\n      - machine-1\n" in text
    assert parse_inventory(text.encode(), "x.yaml") == inventory


def test_json_is_indented_or_on_one_line() -> None:
    inventory = an_inventory(a_host("h1"))
    assert to_json(inventory, indent=0) == (
        '{"hosts":[{"id":"h1","cores":4,"mhz_per_core":1000,"memory_mib":16384}]}\n'
    )
    assert to_json(inventory).splitlines()[:3] == ["{", '  "hosts": [', "    {"]
