"""A move that must be recommended several times before it is made."""

from __future__ import annotations

from builders import a_cluster, a_host, a_vm
from equipoise.balance.propose import BalanceDecider
from equipoise.model.action import Migrate
from equipoise.model.action_durations import Estimates
from equipoise.model.event import ProposalMade
from equipoise.model.plan import Proposal
from equipoise.model.policy.balance import BalancePolicy
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import StayOff
from equipoise.model.state import transition
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand


def uneven(passes: int, *rules: StayOff) -> Snapshot:
    vms = [a_vm(f"v{n}", "h1", demand=Demand(cpu_mhz=900, memory_mib=500)) for n in range(4)]
    policy = BalancePolicy(passes_seen=passes)
    return a_cluster(a_host("h1"), a_host("h2"), vms=vms, balance=policy, rules=rules)


def moved(proposal: Proposal) -> tuple[set[VmId], set[VmId]]:
    """The VMs that move now, and those that are only advised."""
    now, later = (
        {intent.action.vm for intent in intents if isinstance(intent.action, Migrate)}
        for intents in (proposal.intents, proposal.advised)
    )
    return now, later


def passes(state: Snapshot, count: int) -> list[tuple[set[VmId], set[VmId]]]:
    decider, found = BalanceDecider(Estimates()), []
    for _ in range(count):
        proposal = decider.propose(state)
        found.append(moved(proposal))
        state = transition.apply(state, ProposalMade(at_ms=state.at_ms, proposal=proposal))
    return found


def test_a_move_is_made_in_the_pass_that_recommends_it_for_the_nth_time() -> None:
    (now, later), *_ = passes(uneven(1), 1)
    assert now
    assert not later
    assert passes(uneven(3), 4) == [(set(), now), (set(), now), (now, set()), (now, set())]


def test_a_pass_without_the_recommendation_starts_the_count_again() -> None:
    state = uneven(2)
    decider = BalanceDecider(Estimates())
    first = decider.propose(state)
    state = transition.apply(state, ProposalMade(at_ms=0, proposal=first))
    nothing = Proposal(decider="balance", purpose=first.purpose)
    state = transition.apply(state, ProposalMade(at_ms=0, proposal=nothing))
    now, later = moved(decider.propose(state))
    assert not now
    assert later


def test_a_move_to_another_host_starts_the_count_again() -> None:
    state = uneven(2)
    proposal = BalanceDecider(Estimates()).propose(state)
    state = transition.apply(state, ProposalMade(at_ms=0, proposal=proposal))
    (vm,) = list(state.moves_seen)[:1]
    assert state.moves_seen[vm] == ("h2", 1)
    elsewhere = proposal.advised[0].but(
        action=Migrate(vm=vm, source=HostId("h1"), target=HostId("h3"))
    )
    other = proposal.but(advised=(elsewhere,))
    state = transition.apply(state, ProposalMade(at_ms=0, proposal=other))
    assert state.moves_seen[vm] == ("h3", 1)


def test_a_repair_does_not_wait() -> None:
    off = StayOff(id=RuleId("off"), vms=(VmId("v0"),), hosts=(HostId("h1"),))
    ((now, _),) = passes(uneven(5, off), 1)
    assert "v0" in now
