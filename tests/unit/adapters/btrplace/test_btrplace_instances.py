"""Instances of BtrPlace: what each part of them means here, and what is refused."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from builders import coded
from equipoise.api.loading import read_problem
from equipoise.errors import InvalidInput
from equipoise.files import parse_problem, to_json, to_yaml
from equipoise.model.host import HostState
from equipoise.model.plan import ConcurrencyLimits
from equipoise.model.problem import DesiredHostState, DesiredVmState, ObjectiveMeasure
from equipoise.model.problem.problem import ActionKind, ProblemDurations
from equipoise.model.quantity import ResourceName, RuleId, VmId
from equipoise.model.rule import Satisfy
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState
from unit.adapters.btrplace.sample_instances import (
    NETWORK,
    Record,
    check_sound,
    instance,
    read,
    resource,
    rules_of,
)

REAL = Path(__file__).parents[5] / "shared" / "data" / "btrplace"


def test_vms_and_hosts_are_where_the_mapping_says() -> None:
    problem = read(instance())
    check_sound(problem)
    assert [(host.id, host.state) for host in problem.cluster.hosts] == [
        ("node0", HostState.ON),
        ("node1", HostState.ON),
        ("node2", HostState.STANDBY),
    ]
    assert [(vm.id, vm.state, vm.host) for vm in problem.cluster.vms] == [
        ("vm0", VmState.RUNNING, "node0"),
        ("vm1", VmState.RUNNING, "node0"),
        ("vm2", VmState.SLEEPING, "node1"),
        ("vm3", VmState.READY, None),
    ]


def test_only_named_resources_count_and_nothing_else_is_limited() -> None:
    problem = read(instance())
    (size,) = {(host.cores, host.mhz_per_core, host.memory_mib) for host in problem.cluster.hosts}
    assert size == (10**5, 1, len(problem.cluster.vms)), "every host takes all VMs by their size"
    assert {(vm.vcpus, vm.memory_mib) for vm in problem.cluster.vms} == {(1, 1)}
    assert problem.cluster.limits == ConcurrencyLimits(actions_per_host=10**7, actions_total=10**7)
    assert (problem.horizon_s, problem.moves_max) == (3600, 2)


def test_a_resource_has_a_rule_and_amounts_for_all_hosts_and_vms() -> None:
    views = [resource("cpu"), resource("net.in", defCapacity=1, nodes={}, vms={"0": 0})]
    problem = read(instance(views=views))
    check_sound(problem)
    assert [dict(host.capacity) for host in problem.cluster.hosts] == [
        {"cpu_units": 8, "net.in": 1},
        {"cpu_units": 16, "net.in": 1},
        {"cpu_units": 8, "net.in": 1},
    ]
    assert [dict(vm.consumption) for vm in problem.cluster.vms] == [
        {"cpu_units": 1, "net.in": 0},
        {"cpu_units": 1, "net.in": 1},
        {"cpu_units": 3, "net.in": 1},
        {"cpu_units": 1, "net.in": 1},
    ]
    assert problem.cluster.vms[1].consumption is problem.cluster.vms[3].consumption
    assert problem.cluster.rules == tuple(
        Satisfy(
            id=RuleId(f"room-{name}"),
            constraint="ShareableResource",
            arguments={"id": name},
        )
        for name in ("cpu_units", "net.in")
    )


def test_names_become_labels() -> None:
    views = [
        {"id": "ns", "type": "vm", "map": {"web one": 1, "later": 9}},
        {"id": "ns", "type": "node", "map": {"@N1": 2}},
    ]
    problem = read(instance(views=views))
    check_sound(problem)
    assert {vm.id: dict(vm.labels) for vm in problem.cluster.vms if vm.labels} == {
        "vm1": {"name": "web one"},
        "vm9": {"name": "later"},
    }
    assert problem.cluster.hosts[2].labels == {"name": "@N1"}


def test_who_is_only_spoken_of_is_not_made_yet() -> None:
    attributes = {"vms": {"7": {"template": "small"}}, "nodes": {}}
    names = {"id": "ns", "type": "vm", "map": {"later": 5}}
    states = ("running", "ready", "sleeping", "killed")
    aims = [{"id": state, "vm": vm} for vm, state in enumerate(states, start=8)]
    spread = {"id": "spread", "vms": [0, *range(5, 12)], "continuous": False}
    views = [resource(vms={"6": 2}), names]
    problem = read(instance(spread, *aims, views=views, attributes=attributes))
    check_sound(problem)
    new = problem.cluster.vms[4:]
    assert [vm.id for vm in new] == [f"vm{number}" for number in range(5, 12)]
    assert {vm.state for vm in new} == {VmState.INIT}
    assert [vm.template for vm in new[:4]] == [None, None, "small", None]
    assert [vm.consumption[ResourceName("cpu_units")] for vm in new[:4]] == [1, 2, 1, 1]


def test_attributes_say_how_long_things_take() -> None:
    keys = ("forge", "boot", "shutdown", "migrate", "suspend", "resume", "allocate", "kill")
    vm = {key: place for place, key in enumerate(keys, start=2)}
    attributes = {
        "vms": {"0": vm | {"halt": 99, "memUsed": 2048, "clone": True}, "1": {"boot": 50}},
        "nodes": {"2": {"boot": 60, "shutdown": 30, "entropy_id": "N3"}},
    }
    problem = read(instance(attributes=attributes))
    check_sound(problem)
    assert {duration.ms for duration in problem.durations.values()} == {1000}
    told = {str(kind): dict(duration.of) for kind, duration in problem.durations.items()}
    assert told["boot"] == {"vm0": 3000, "vm1": 50_000}
    for place, key in enumerate(keys, start=2):
        assert told[key]["vm0"] == 1000 * place
    assert (told["power_on"], told["power_off"]) == ({"node2": 60_000}, {"node2": 30_000})
    assert set(problem.durations) == set(ActionKind) - {
        ActionKind.ENTER_MAINTENANCE,
        ActionKind.LEAVE_MAINTENANCE,
        ActionKind.REINSTANTIATE,  # which takes what its parts take
    }
    assert [vm.memory_mib for vm in problem.cluster.vms] == [2048, 1, 1, 1]


def test_a_network_with_and_without_bounds() -> None:
    problem = read(instance(views=[NETWORK]))
    check_sound(problem)
    assert problem.network is not None
    assert [(switch.id, switch.capacity_mbps) for switch in problem.network.switches] == [
        ("switch0", None),
        ("switch1", 500),
    ]
    assert [
        (link.id, link.switch, link.host, link.to, link.capacity_mbps)
        for link in problem.network.links
    ] == [
        ("link0", "switch0", "node0", None, 10),
        ("link1", "switch0", "node1", None, 10**9),
        ("link2", "switch1", "node2", None, 30),
        ("link3", "switch0", None, "switch1", 10**9),
    ]


def test_over_a_network_a_migration_takes_what_copying_takes_or_what_is_said_of_the_vm() -> None:
    attributes = {"vms": {"0": {"memUsed": 1192}, "1": {"memUsed": 1, "migrate": 7}}, "nodes": {}}
    problem = read(instance(views=[NETWORK], attributes=attributes))
    durations = ProblemDurations(problem, Snapshot.of(problem.cluster))
    assert durations.move_ms(VmId("vm0"), 1000) == 10_000, "1,250 MB at 1,000 Mbit/s"
    assert durations.move_ms(VmId("vm1"), 1000) == 7_000


RULES: list[tuple[Record, str, Record, bool]] = [
    ({"id": "spread", "vms": [0, 1, 0]}, "Spread", {"vs": ("vm0", "vm1")}, True),
    ({"id": "gather", "vms": [0, 1]}, "Gather", {"vs": ("vm0", "vm1")}, True),
    ({"id": "lonely", "vms": [0, 1]}, "Lonely", {"vs": ("vm0", "vm1")}, True),
    (
        {"id": "split", "parts": [[0], [1, 2], [0]]},
        "Split",
        {"parts": (("vm0",), ("vm1", "vm2"))},
        True,
    ),
    (
        {"id": "among", "vms": [0], "parts": [[0, 1], [2]]},
        "Among",
        {"vs": ("vm0",), "parts": (("node0", "node1"), ("node2",))},
        True,
    ),
    (
        {"id": "splitAmong", "vParts": [[0], [1]], "pParts": [[0], [1]]},
        "SplitAmong",
        {"vs": (("vm0",), ("vm1",)), "parts": (("node0",), ("node1",))},
        True,
    ),
    (
        {"id": "fence", "vm": 0, "nodes": [0, 1]},
        "Fence",
        {"v": "vm0", "ns": ("node0", "node1")},
        True,
    ),
    ({"id": "ban", "vm": 0, "nodes": [2]}, "Ban", {"v": "vm0", "ns": ("node2",)}, True),
    (
        {"id": "maxOnline", "nodes": [0, 1], "amount": 1},
        "MaxOnline",
        {"ns": ("node0", "node1"), "nb": 1},
        True,
    ),
    (
        {"id": "runningCapacity", "nodes": [0], "amount": 1},
        "RunningCapacity",
        {"ns": ("node0",), "nb": 1},
        True,
    ),
    (
        {"id": "resourceCapacity", "nodes": [0], "rc": "cpu", "amount": 9},
        "ResourceCapacity",
        {"ns": ("node0",), "id": "cpu_units", "qty": 9},
        True,
    ),
    (
        {"id": "preserve", "vm": 1, "rc": "cpu", "amount": 5},
        "Preserve",
        {"v": "vm1", "id": "cpu_units", "amount": 5},
        False,
    ),
    ({"id": "seq", "vms": [1, 0]}, "Seq", {"vs": ("vm1", "vm0")}, False),
    ({"id": "noDelay", "vm": 1}, "NoDelay", {"v": "vm1"}, False),
    ({"id": "Sync", "vms": [0, 1]}, "Sync", {"vs": ("vm0", "vm1")}, False),
    ({"id": "Serialize", "vms": [0, 1]}, "Serialize", {"vs": ("vm0", "vm1")}, False),
    (
        {"id": "Precedence", "vm1": 1, "vm2": 0},
        "Precedence",
        {"before": "vm1", "after": "vm0"},
        False,
    ),
    (
        {"id": "Deadline", "vm": 0, "timestamp": "+0:01:05"},
        "Deadline",
        {"v": "vm0", "ms": 65_000},
        False,
    ),
]
"""What a constraint becomes, and whether it can be continuous."""


@pytest.mark.parametrize(("constraint", "name", "arguments", "both"), RULES)
def test_a_constraint_becomes_the_rule_of_its_name(
    constraint: Record, name: str, arguments: Record, both: bool
) -> None:
    first = {"id": "ban", "vm": 0, "nodes": [2], "continuous": False}
    for continuous in (True, False):
        _, rule = rules_of(first, constraint | {"continuous": continuous})
        assert rule.constraint == name
        assert rule.arguments == arguments
        assert rule.continuous == (both and continuous)
        assert rule.hard
        assert rule.id == f"{name[0].lower()}{name[1:]}-1"
    check_sound(read(instance(constraint | {"continuous": True})))


def test_some_constraints_are_always_continuous() -> None:
    root, quarantine = rules_of({"id": "root", "vm": 0}, {"id": "quarantine", "node": 1})
    assert (root.constraint, root.arguments, root.continuous) == ("Root", {"v": "vm0"}, True)
    assert (quarantine.constraint, quarantine.arguments) == ("Quarantine", {"n": "node1"})
    assert quarantine.continuous
    assert (root.id, quarantine.id) == ("root-0", "quarantine-1")


def test_states_become_aims_and_what_is_said_twice_counts_once() -> None:
    states = [
        {"id": "running", "vm": 3, "continuous": False},
        {"id": "ready", "vm": 0},
        {"id": "sleeping", "vm": 1},
        {"id": "killed", "vm": 2},
        {"id": "online", "node": 2, "continuous": False},
        {"id": "offline", "node": 1},
    ]
    problem = read(instance(*states, *states))
    check_sound(problem)
    assert problem.vms == {
        "vm3": DesiredVmState.RUNNING,
        "vm0": DesiredVmState.READY,
        "vm1": DesiredVmState.SLEEPING,
        "vm2": DesiredVmState.KILLED,
    }
    assert problem.hosts == {"node2": DesiredHostState.ONLINE, "node1": DesiredHostState.OFFLINE}
    assert [rule.id for rule in problem.cluster.rules] == ["room-cpu_units"]


def test_a_second_aim_is_not_lost() -> None:
    states = [
        {"id": "running", "vm": 3},
        {"id": "killed", "vm": 3},
        {"id": "online", "node": 2},
        {"id": "offline", "node": 2},
        {"id": "running", "vm": 3},
    ]
    problem = read(instance(*states))
    check_sound(problem)
    assert problem.vms == {"vm3": DesiredVmState.RUNNING}
    assert problem.hosts == {"node2": DesiredHostState.ONLINE}
    told = [rule for rule in problem.cluster.rules[1:] if isinstance(rule, Satisfy)]
    assert [(rule.id, rule.constraint, rule.arguments) for rule in told] == [
        ("killed-1", "Killed", {"v": "vm3"}),
        ("offline-3", "Offline", {"n": "node2"}),
    ]


def test_an_overbooked_host_has_as_much_as_it_may_give() -> None:
    given = {"id": "overbook", "rc": "cpu", "continuous": True}
    problem = read(
        instance(
            given | {"node": 0, "ratio": 1.45}, given | {"node": 1, "ratio": 3},
            given | {"node": 1, "ratio": 2}, given | {"node": 2, "ratio": 1},
        )
    )  # fmt: skip
    check_sound(problem)
    has = [host.capacity[ResourceName("cpu_units")] for host in problem.cluster.hosts]
    assert has == [11, 32, 8]
    assert len(problem.cluster.rules) == 1


@pytest.mark.parametrize(
    ("written", "measure"),
    [
        ("minimizeMTTR", ObjectiveMeasure.MTTR),
        ("minimizeMTTRMig", ObjectiveMeasure.MTTR),
        ("minimizeMTTRMigrationScheduling", ObjectiveMeasure.MTTR),
        ("minimizeMigrations", ObjectiveMeasure.MIGRATIONS),
    ],
)
def test_objectives(written: str, measure: ObjectiveMeasure) -> None:
    assert read(instance() | {"objective": {"id": written}}).objective == (measure,)


@pytest.mark.parametrize(
    ("written", "ms"),
    [("+1:00:00", 3_600_000), ("+02:03", 123_000), ("+90", 90_000), ("90", 90_000), (90, 90_000)],
)
def test_moments_that_count_from_the_start(written: str | int, ms: int) -> None:
    (rule,) = rules_of({"id": "Deadline", "vm": 0, "timestamp": written})
    assert rule.arguments == {"v": "vm0", "ms": ms}


def test_a_packed_instance_is_read_as_a_problem(tmp_path: Path) -> None:
    content = json.dumps(instance()).encode()
    for name, written in (("i.json", content), ("i.json.gz", gzip.compress(content))):
        (tmp_path / name).write_bytes(written)
        assert read_problem(tmp_path / name) == read(instance())


def test_an_instance_cut_short_is_reported_as_truncated(tmp_path: Path) -> None:
    file = tmp_path / "i"
    file.write_bytes(json.dumps(instance()).encode()[:-1])
    with pytest.raises(InvalidInput, check=coded("syntax-error")):
        read_problem(file)


def test_an_instance_survives_our_own_form() -> None:
    spread = {"id": "spread", "vms": [0, 1], "continuous": True}
    problem = read(instance(spread, {"id": "running", "vm": 3}, views=[resource(), NETWORK]))
    assert parse_problem(to_json(problem).encode(), "p.json") == problem
    assert parse_problem(to_yaml(problem).encode(), "p.yaml") == problem


class Expected(NamedTuple):
    """What is in a file, as counted by the research."""

    hosts: int
    vms: int
    ready: int
    offline: int
    running_aims: int
    rules: dict[str, int]


ROOMS = {"ShareableResource": 2}
MANY = {"Spread": 2556, "Among": 852}
FILES = {
    "li3": Expected(5000, 15_000, 0, 0, 0, ROOMS | {"Preserve": 1362}),
    "li3-c100": Expected(5000, 15_000, 0, 0, 0, ROOMS | MANY | {"Preserve": 1362}),
    "li4": Expected(5000, 20_000, 0, 0, 0, ROOMS | {"Preserve": 1849}),
    "li6": Expected(5000, 30_000, 0, 0, 0, ROOMS | {"Preserve": 2979}),
    "nr3": Expected(5000, 15_000, 753, 250, 753, ROOMS),
    "nr3-c100": Expected(5000, 15_000, 753, 250, 753, ROOMS | MANY),
    "nr4": Expected(5000, 20_000, 1014, 250, 1014, ROOMS),
    "nr6": Expected(5000, 30_000, 1496, 250, 1496, ROOMS),
    "issue-100": Expected(32, 6688, 0, 0, 0, {"ShareableResource": 4, "ResourceCapacity": 3}),
}


@pytest.mark.parametrize("name", FILES)
def test_a_real_instance(name: str) -> None:
    file = REAL / f"{name}.json.gz"
    if not file.exists():
        pytest.skip(f"the instances of BtrPlace are not part of the project: no {file.name}")
    problem = read_problem(file)
    hosts, vms = problem.cluster.hosts, problem.cluster.vms
    kinds = Counter(rule.constraint for rule in problem.cluster.rules if isinstance(rule, Satisfy))
    found = Expected(
        hosts=len(hosts),
        vms=len(vms),
        ready=sum(vm.state is VmState.READY for vm in vms),
        offline=sum(host.state is HostState.STANDBY for host in hosts),
        running_aims=len(problem.vms),
        rules=dict(kinds),
    )
    assert found == FILES[name]
    assert Counter(problem.hosts.values()) == (
        {}
        if name == "issue-100"
        else {
            DesiredHostState.ONLINE: 5000 - found.offline,
            DesiredHostState.OFFLINE: found.offline,
        }
        if found.offline
        else {DesiredHostState.ONLINE: 5000}
    )
    assert (problem.network is not None) == (name == "issue-100")
    if len(vms) <= 15_000 and not name.endswith("c100"):  # larger ones take long
        check_sound(problem)
        assert parse_problem(to_json(problem, indent=0).encode(), "p.json") == problem
