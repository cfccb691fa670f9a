"""The benchmark of the specification language: small cases by the thousand, and one huge plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from random import Random
from time import perf_counter
from typing import Any, Final

from equipoise.bench.measure import BenchmarkRow, best_time_s, even_cluster
from equipoise.model.action import Action, Boot, Migrate, PowerOff, Resume, Shutdown, Suspend
from equipoise.model.host import Host, HostState
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, RuleId, StepId, VmId
from equipoise.model.rule import KeepApart, Rule, Satisfy, StayWithin
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState
from equipoise.spec.batch.judge import CHUNK_CASES, CaseBatch
from equipoise.spec.judge import SpecificationJudge
from equipoise.spec.library import library_constraints
from equipoise.spec.moments import moments
from equipoise.spec.requirement import Case, Requirement
from equipoise.spec.rules import requirements_of

CASES: Final = 8 * CHUNK_CASES
ONE_BY_ONE: Final = 200
HOSTS: Final = [HostId(f"h{number}") for number in range(10)]
VMS: Final = [VmId(f"v{number}") for number in range(10)]
CORE: Final = ("noVMsOnOfflineNodes", "toRunning", "toReady", "toSleeping", "Spread")
PLACEMENT: Final = ("Spread", "Lonely", "Fence", "MaxOnline", "RunningCapacity")

Arguments = Mapping[str, Any]


def rows() -> Iterator[BenchmarkRow]:
    """Measure."""
    rng = Random(7)
    cases = [_case(rng) for _ in range(CASES)]
    for label, names in (("the core and Spread", CORE), ("placement", PLACEMENT)):
        asked = [(name, [_arguments(name, rng) for _ in cases]) for name in names]
        yield BenchmarkRow(
            f"judge cases of 10 VMs x 10 hosts, 5 continuous constraints: {label}",
            best_time_s(partial(_batches, cases, asked), tries=3),
            "one case at a time",
            # Extrapolated from a part: all cases one at a time would take minutes.
            _one_by_one(cases, asked) * CASES / ONE_BY_ONE,
            count=CASES,
        )
    yield from _large_plan_row()


def _batches(cases: Sequence[Case], asked: Sequence[tuple[str, Sequence[Arguments]]]) -> None:
    """Judge all cases in arrays, with the encoding of the values."""
    known = library_constraints()
    for first in range(0, len(cases), CHUNK_CASES):
        batch = CaseBatch(cases[first : first + CHUNK_CASES])
        for name, arguments in asked:
            some = arguments[first : first + CHUNK_CASES]
            batch.judge(known[name], name, some, continuous=True)


def _one_by_one(cases: Sequence[Case], asked: Sequence[tuple[str, Sequence[Arguments]]]) -> float:
    """The judge of the gate, which looks at each moment once for all constraints."""
    known = library_constraints()
    began = perf_counter()
    for place, case in enumerate(cases[:ONE_BY_ONE]):
        requirements = [Requirement(known[name], name, every[place], True) for name, every in asked]
        _judge(requirements, case)
    return perf_counter() - began


def _judge(requirements: Sequence[Requirement], case: Case) -> int:
    court = SpecificationJudge(requirements, case.steps)
    return sum(1 for moment in moments(*case) for _ in court(moment))


def _case(rng: Random) -> Case:
    """A random cluster, and a plan with an action of most VMs."""
    states = rng.choices([HostState.ON, HostState.STANDBY], weights=(9, 1), k=len(HOSTS))
    hosts = [
        Host(id=host, cores=8, mhz_per_core=2400, memory_mib=32768, state=state)
        for host, state in zip(HOSTS, states, strict=True)
    ]
    awake = [host.id for host in hosts if host.state is HostState.ON] or HOSTS
    vms, steps = [], [_step("s", PowerOff(host=awake[0]), rng)]
    for vm in VMS:
        kinds = [VmState.READY, VmState.SLEEPING, VmState.RUNNING]
        (state,) = rng.choices(kinds, weights=(20, 5, 75))
        host = rng.choice(awake) if state.has_host else None
        vms.append(Vm(id=vm, vcpus=1, memory_mib=1024, state=state, host=host))
        if rng.randrange(5):
            steps.append(_step(f"s-{vm}", _action(rng, vm, state, host), rng))
    return Case(Snapshot.of(Inventory(hosts=tuple(hosts), vms=tuple(vms))), tuple(steps))


def _action(rng: Random, vm: VmId, state: VmState, host: HostId | None) -> Action:
    target = rng.choice(HOSTS)
    if host is None:
        return Boot(vm=vm, target=target)
    if state is VmState.SLEEPING:
        return Resume(vm=vm, source=host, target=host)
    moves: list[Action] = [Migrate(vm=vm, source=host, target=target)] * 4
    return rng.choice([*moves, Shutdown(vm=vm, source=host), Suspend(vm=vm, source=host)])


def _step(name: str, action: Action, rng: Random) -> Step:
    start_ms = rng.randrange(10)
    end_ms = start_ms + rng.randrange(1, 6)
    return Step(id=StepId(name), action=action, start_ms=start_ms, end_ms=end_ms)


def _arguments(name: str, rng: Random) -> Arguments:
    match name:
        case "Spread" | "Lonely":
            return {"vs": frozenset(rng.sample(VMS, 4))}
        case "Fence":
            return {"v": rng.choice(VMS), "ns": frozenset(rng.sample(HOSTS, 5))}
        case "MaxOnline" | "RunningCapacity":
            return {"ns": frozenset(rng.sample(HOSTS, 6)), "nb": 5}
        case _:
            return {}


def _large_plan_row() -> Iterator[BenchmarkRow]:
    """3,000 moves on 5,000 hosts with 30,000 VMs, under 10,000 rules of every kind."""
    inventory = even_cluster(5000, 30_000)
    steps = _moves(inventory)
    ruled = inventory.but(rules=tuple(_rules(inventory, 10_000)))
    snapshot = Snapshot.of(ruled)
    requirements = requirements_of(snapshot.settings, snapshot).valid

    began = perf_counter()
    first_look = SpecificationJudge(requirements, steps)
    broken = sum(1 for _ in first_look(next(moments(snapshot, steps))))
    assert not broken, "the rules hold at the start"
    seconds = perf_counter() - began
    yield BenchmarkRow(
        "judge 3,000 moves by 10,000 rules, every moment (5,000 hosts, 30,000 VMs)",
        best_time_s(partial(_judge, requirements, Case(snapshot, tuple(steps))), tries=2),
        "all rules evaluated at each moment",
        # A plan has two moments per step: its start and its end.
        seconds * 2 * len(steps),
    )


def _moves(inventory: Inventory) -> list[Step]:
    names = [host.id for host in inventory.hosts]
    return [
        Step(
            id=StepId(f"s{number}"),
            action=Migrate(
                vm=VmId(f"vm-{number:06d}"),
                source=names[number % 5000],
                target=names[(number + 2500) % 5000],
            ),
            start_ms=number * 10,
            end_ms=number * 10 + 20_000 + number,
        )
        for number in range(3000)
    ]


def _rules(inventory: Inventory, count: int) -> Iterator[Rule]:
    """Rules that hold at the start and nearly all the time."""
    rng = Random(11)
    vms, hosts = [vm.id for vm in inventory.vms], [host.id for host in inventory.hosts]
    home = {vm.id: vm.host for vm in inventory.vms if vm.host is not None}
    for number in range(count):
        some = tuple({home[vm]: vm for vm in rng.sample(vms, 4)}.values())
        where = (home[some[0]], *rng.sample(hosts, 8))
        name, continuous = RuleId(f"r{number}"), number % 2 == 0
        match number % 5:
            case 0:
                yield KeepApart(id=name, vms=some, continuous=continuous)
            case 1:
                yield StayWithin(id=name, vms=some[:1], hosts=where, continuous=continuous)
            case 2:
                arguments: dict[str, Any] = {"vs": some, "nb": 3}
                yield _satisfy(name, "MaxPerHost", arguments, continuous=continuous)
            case 3:
                arguments = {"ns": where[:2], "id": "memory", "qty": 150_000}
                yield _satisfy(name, "ResourceCapacity", arguments, continuous=continuous)
            case _:
                arguments = {"ns": where, "nb": 100}
                yield _satisfy(name, "RunningCapacity", arguments, continuous=continuous)


def _satisfy(name: RuleId, constraint: str, arguments: Arguments, *, continuous: bool) -> Satisfy:
    return Satisfy(id=name, constraint=constraint, arguments=arguments, continuous=continuous)
