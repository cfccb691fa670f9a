"""Explanations: what a pass does with each VM and host, or why it does nothing.

The codes are stable and machine-readable; the sentence is for the operator.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from equipoise.balance.rebalance.cluster_arrays import NO_GAIN, NO_OBSTACLE
from equipoise.balance.rebalance.greedy import HostRating
from equipoise.balance.rebalance.rebalancer import OBSTACLE_CODES
from equipoise.balance.rules import pinned_vms
from equipoise.balance.run_pass import PassResult
from equipoise.model.host import HostState
from equipoise.model.plan import Rejection
from equipoise.model.policy.balance import HostOverride
from equipoise.model.quantity import HostId, VmId, format_count
from equipoise.model.vm import VmState

EVEN_LOAD_TOLERANCE: Final = 0.02
"""A host whose load differs from the mean by at most this has an average load."""


class Explanation(NamedTuple):
    """The explanation for one VM or host."""

    subject: str
    code: str
    sentence: str


class BalanceExplainer:
    """Explains the result of a pass, VM by VM and host by host."""

    def __init__(self, result: PassResult) -> None:
        self._pass, self._snapshot = result, result.snapshot
        self._policy = result.snapshot.settings.balance
        self._moves = {move.vm: move for move in result.advice.moves}
        self._pinned = pinned_vms(result.snapshot)
        self._unit = {
            vm: unit
            # An incoming VM is a second unit at the end. Reversed, so that the unit on the present
            # host is the one that stays in the map.
            for unit, names in reversed(list(enumerate(result.assessment.members)))
            for vm in names
        }
        self._row = {host: row for row, host in enumerate(result.assessment.host_ids)}
        self._before = result.search.measure_imbalance()
        state = result.assessment
        excess = state.overload().any(axis=1)
        self._overloaded = {state.host_ids[row] for row in state.hosts[excess]}

    def vm(self, name: VmId) -> Explanation:
        """Return why a VM moves or stays."""
        vm = self._snapshot.vms[name]
        if name in self._moves:
            move = self._moves[name]
            return Explanation(name, "moves", f"moves to {move.target}: {move.reason}")
        if vm.state is not VmState.RUNNING:
            return Explanation(name, "not-running", f"it is {vm.state}; only running VMs move")
        faults = self._pass.advice.faults
        fault = next(
            (fault for fault in faults if fault.subject == name or name in fault.vms), None
        )
        if fault is not None:
            return Explanation(name, fault.code, fault.detail)
        if name in self._pinned:
            return Explanation(name, *self._pinned[name])
        if self._policy.rules_only:
            return Explanation(
                name, "rules-only", "no rule requires a move, and the policy is rules_only"
            )
        return self._why_not_moved(name)

    def host(self, name: HostId) -> Explanation:
        """Return the load of a host, the moves from and to it, or why there are none."""
        host = self._snapshot.hosts[name]
        if host.state is not HostState.ON:
            return Explanation(name, "host-off", f"it is {host.state}, not on")
        leaving = [move.vm for move in self._pass.advice.moves if move.source == name]
        arriving = [move.vm for move in self._pass.advice.moves if move.target == name]
        if host.requested is not None:
            vms = self._snapshot.vms
            residents = self._snapshot.residents[name]
            remaining = [vm for vm in residents if vm not in leaving and not vms[vm].agent]
            staying = f"; {len(remaining)} cannot leave" if remaining else ""
            sentence = (
                f"it goes into {host.requested}; {format_count(len(leaving), 'VM')} leave{staying}"
            )
            return Explanation(name, "evacuated", sentence)
        if self._policy.hosts.get(name) is HostOverride.OFF:
            return Explanation(name, "policy-override", "the balance policy excludes it")
        if self._row[name] not in self._pass.assessment.hosts:
            return Explanation(
                name, "kept-free", "rules keep all VMs off it, or it has no capacity"
            )
        sentence, side = self._load(name)
        if leaving or arriving:
            moves = [f"{len(leaving)} VMs leave"] * bool(leaving)
            moves += [f"{len(arriving)} VMs arrive"] * bool(arriving)
            code = "source" if len(leaving) >= len(arriving) else "target"
            return Explanation(name, code, f"{sentence}; {' and '.join(moves)}")
        return Explanation(name, *self._why_no_moves(name, sentence, side))

    def _load(self, name: HostId) -> tuple[str, float]:
        """Return the load of a host after the pass in words, and its distance from the mean."""
        state = self._pass.assessment
        row = self._row[name]
        loads = state.arrays.host_load[row] * state.arrays.inverse[row]
        totals = self._pass.search.totals
        mean = totals.sums / totals.host_count.clip(min=1)
        words = f"load after the pass {loads[0]:.0%} CPU and {loads[1]:.0%} memory"
        others = f"mean {mean[0]:.0%} and {mean[1]:.0%}"
        return f"{words}, {others}", float((totals.weight * (loads - mean)).sum())

    def _why_no_moves(self, name: HostId, sentence: str, side: float) -> tuple[str, str]:
        if self._policy.rules_only:
            return "rules-only", f"{sentence}; the policy is rules_only"
        if name in self._overloaded:
            return "host-overloaded", f"{sentence}; its demand exceeds its capacity"
        if self._before <= self._policy.imbalance_target:
            target = f"{self._policy.imbalance_target:g}"
            return "balanced", f"{sentence}; the imbalance is within the target of {target}"
        if abs(side) <= EVEN_LOAD_TOLERANCE:
            return "average-load", f"{sentence}; its load is close to the mean"
        if side > 0:
            # A host above the mean has no moves because its VMs cannot leave: their reasons are its
            # reason.
            explanations = [self.vm(vm) for vm in self._snapshot.residents[name]]
            causes = ", ".join(sorted({item.code for item in explanations})) or "it has no VM"
            return "vms-pinned", f"{sentence}; no VM leaves it ({causes})"
        closed = self._policy.hosts.get(name) is HostOverride.CLOSED
        if closed:
            return "host-closed", f"{sentence}; the balance policy closes it"
        code, cause = self._why_not_chosen("moves to it would reduce the imbalance")
        # The move limit is a statement about one VM. For a host the question is whether any move to
        # it pays.
        if code == "not-selected":
            code, cause = "no-useful-move", "no move to it is worth its cost"
        return code, f"{sentence}; {cause}"

    def _why_not_moved(self, name: VmId) -> Explanation:
        """Return why a VM that may move stays: its best host, and what prevents the move."""
        host = self._snapshot.vms[name].host
        if host in self._overloaded and self._rejection_of(name) is None:
            if not self._pass.assessment.arrays.movable[self._unit[name]]:
                return self._why_pinned(name, self._unit[name])
            sentence = f"{host} is overloaded, and no host can take it without being overloaded"
            return Explanation(name, "no-relief", sentence)
        if self._before <= self._policy.imbalance_target:
            target = f"{self._policy.imbalance_target:g}"
            sentence = f"the imbalance is {self._before:.3f}, within the target of {target}"
            return Explanation(name, "balanced", sentence)
        # A move that was found and dropped comes before the ratings: those describe the state after
        # the pass, in which the dropped move may look possible.
        rejection = self._rejection_of(name)
        if rejection is not None:
            return Explanation(name, rejection.code, f"{rejection.subject}: {rejection.detail}")
        unit = self._unit[name]
        if not self._pass.assessment.arrays.movable[unit]:
            return self._why_pinned(name, unit)
        ratings = self._pass.search.ratings(unit, self._before)
        # Ratings are sorted by gain, so the first useful one names the host that the VM would
        # prefer.
        useful = [rating for rating in ratings if rating.gain > 0 and rating.code != NO_GAIN]
        if not useful:
            return Explanation(
                name, "no-gain", "a move to another host would not reduce the imbalance"
            )
        return self._why_blocked(name, useful[0])

    def _why_pinned(self, name: VmId, unit: int) -> Explanation:
        """Return why a VM is pinned, by itself or by a VM it must stay together with."""
        for member in self._pass.assessment.members[unit]:
            if member in self._pinned:
                code, why = self._pinned[member]
                return Explanation(name, code, f"it must stay together with {member}: {why}")
            if member in self._pass.resting.vms:
                code, why = self._pass.resting.vms[member]
                other = f"it must stay together with {member}: " if member != name else ""
                return Explanation(name, code, f"{other}{why}")
        return Explanation(
            name, "recently-moved", "a rule moves it, or a VM it must stay together with"
        )

    def _why_blocked(self, name: VmId, best: HostRating) -> Explanation:
        host, obstacle = self._pass.assessment.host_ids[best.host], best.code
        preferred = f"the best host is {host} (imbalance {-best.gain:+.4f})"
        if obstacle == NO_OBSTACLE:
            return Explanation(name, *self._why_not_chosen(preferred))
        placement_state = self._pass.repair.placement_state
        code, why = OBSTACLE_CODES[obstacle]
        for member in self._pass.assessment.members[self._unit[name]]:
            subject = "it" if member == name else member
            if code == "rule-forbids" and placement_state.banning_rules(member, host):
                why = f"rule {placement_state.banning_rules(member, host)[0]} keeps {subject} off"
            elif code == "keep-apart" and placement_state.conflicts(member, host):
                rule, other = placement_state.conflicts(member, host)[0]
                why = f"rule {rule} keeps {subject} apart from {other}"
        return Explanation(name, code, f"{preferred}, but {why}")

    def _why_not_chosen(self, preferred: str) -> tuple[str, str]:
        """Return why a useful move is not recommended."""
        if any(rejection.code == "below-threshold" for rejection in self._pass.advice.rejected):
            threshold = self._policy.threshold
            return (
                "below-threshold",
                f"{preferred}, but the priority is below the threshold {threshold}",
            )
        return (
            "not-selected",
            f"{preferred}, but the gain is too small or the move limit is reached",
        )

    def _rejection_of(self, name: VmId) -> Rejection | None:
        start = f"move {name} from "
        matching = (
            rejection
            for rejection in self._pass.advice.rejected
            if rejection.subject.startswith(start)
        )
        return next(matching, None)
