"""Explanations: for every VM and host, what a pass does with it, or why it does nothing.

The codes are stable and meant for machines; the sentence is meant for people.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from equipoise.balance.advise import Pass
from equipoise.balance.levelling.climber import Verdict
from equipoise.balance.levelling.field import FINE, USELESS
from equipoise.balance.levelling.reasons import NAMES
from equipoise.balance.stuck import stuck_vms
from equipoise.model.host import HostState
from equipoise.model.plan import Rejection
from equipoise.model.policy import HostOverride
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import VmState

EVEN: Final = 0.02
"""A host that is no further from the mean than this is about as loaded as the others."""


class Told(NamedTuple):
    """What is to be said about a VM or a host."""

    subject: str
    code: str
    sentence: str


class Explainer:
    """Answers questions about a pass."""

    def __init__(self, done: Pass) -> None:
        self._pass, self._snapshot = done, done.snapshot
        self._policy = done.snapshot.settings.balance
        self._moves = {move.vm: move for move in done.advice.moves}
        self._stuck = stuck_vms(done.snapshot)
        self._unit = {
            vm: unit
            for unit, names in reversed(list(enumerate(done.state.members)))
            for vm in names
        }
        self._row = {host: row for row, host in enumerate(done.state.host_ids)}
        self._before = done.climber.measure()

    def vm(self, name: VmId) -> Told:
        """Say why a VM moves, or why it does not."""
        vm = self._snapshot.vms[name]
        if name in self._moves:
            move = self._moves[name]
            return Told(name, "moves", f"goes to {move.target}: {move.reason}")
        if vm.state is not VmState.RUNNING:
            return Told(name, "not_running", f"it is {vm.state}, and only running VMs are moved")
        faults = self._pass.advice.faults
        fault = next((one for one in faults if one.subject == name or name in one.vms), None)
        if fault is not None:
            return Told(name, fault.code, fault.detail)
        if name in self._stuck:
            return Told(name, *self._stuck[name])
        if self._policy.rules_only:
            return Told(name, "rules_only", "no rule needs it elsewhere, and nothing else is done")
        return self._stays(name)

    def host(self, name: HostId) -> Told:
        """Say how a host is doing, who leaves and who comes, or why nobody does."""
        host = self._snapshot.hosts[name]
        if host.state is not HostState.ON:
            return Told(name, "host_off", f"it is {host.state}, not on")
        gone = [move.vm for move in self._pass.advice.moves if move.source == name]
        come = [move.vm for move in self._pass.advice.moves if move.target == name]
        if host.requested is not None:
            vms = self._snapshot.vms
            there = self._snapshot.residents[name]
            left = [vm for vm in there if vm not in gone and not vms[vm].agent]
            staying = f"; {len(left)} cannot leave" if left else ""
            sentence = f"it is to go into {host.requested}; {len(gone)} leave{staying}"
            return Told(name, "evacuated", sentence)
        if self._policy.hosts.get(name) is HostOverride.OFF:
            return Told(name, "override", "it is left alone by the policy")
        if self._row[name] not in self._pass.state.hosts:
            return Told(
                name, "kept_free", "it takes no part: all are kept off by a rule, or it has nothing"
            )
        sentence, side = self._load(name)
        if gone or come:
            moves = [f"{len(gone)} leave"] * bool(gone) + [f"{len(come)} come"] * bool(come)
            code = "source" if len(gone) >= len(come) else "target"
            return Told(name, code, f"{sentence}; {' and '.join(moves)}")
        return Told(name, *self._quiet(name, sentence, side))

    def _load(self, name: HostId) -> tuple[str, float]:
        """How loaded a host is in the end, in words, and how far above the others."""
        state = self._pass.state
        row = self._row[name]
        loads = state.field.host_load[row] * state.field.inverse[row]
        scale = self._pass.climber.scale
        mean = scale.sums / scale.there.clip(min=1)
        words = f"{loads[0]:.0%} CPU and {loads[1]:.0%} memory in the end"
        others = f"the mean is {mean[0]:.0%} and {mean[1]:.0%}"
        return f"{words}, {others}", float((scale.weight * (loads - mean)).sum())

    def _quiet(self, name: HostId, sentence: str, side: float) -> tuple[str, str]:
        if self._policy.rules_only:
            return "rules_only", f"{sentence}; only rules are mended"
        if self._before <= self._policy.imbalance_target:
            target = f"{self._policy.imbalance_target:g}"
            return "balanced", f"{sentence}; the imbalance is at most {target}, the target"
        if abs(side) <= EVEN:
            return "even", f"{sentence}; it is about as loaded as the others"
        if side > 0:
            why = [self.vm(vm) for vm in self._snapshot.residents[name]]
            causes = ", ".join(sorted({told.code for told in why})) or "it has no VM"
            return "nobody_leaves", f"{sentence}; nobody leaves it ({causes})"
        closed = self._policy.hosts.get(name) is HostOverride.CLOSED
        if closed:
            return "closed", f"{sentence}; it is closed by the policy"
        code, cause = self._not_taken("moves to it would be good")
        if code == "too_little":
            code, cause = "nobody_comes", "no move to it is good and worth it"
        return code, f"{sentence}; {cause}"

    def _stays(self, name: VmId) -> Told:
        """Why a VM that could move does not: by its best host, or what keeps it from there."""
        if self._before <= self._policy.imbalance_target:
            said = f"the imbalance is {self._before:.3f}, at most the target"
            return Told(name, "balanced", f"{said} of {self._policy.imbalance_target:g}")
        given_up = self._given_up(name)
        if given_up is not None:
            return Told(name, given_up.code, f"{given_up.subject}: {given_up.detail}")
        unit = self._unit[name]
        if not self._pass.state.field.movable[unit]:
            return self._held(name, unit)
        verdicts = self._pass.climber.verdicts(unit, self._before)
        useful = [one for one in verdicts if one.gain > 0 and one.code != USELESS]
        if not useful:
            return Told(name, "no_gain", "no other host would make the cluster more even")
        return self._hindered(name, useful[0])

    def _held(self, name: VmId, unit: int) -> Told:
        """Why a VM is held where it is, by itself or by those it must be together with."""
        for other in self._pass.state.members[unit]:
            if other in self._stuck:
                code, why = self._stuck[other]
                return Told(name, code, f"it stays together with {other}: {why}")
        return Told(name, "just_came", "it, or one it stays together with, moved a moment ago")

    def _hindered(self, name: VmId, best: Verdict) -> Told:
        host, code = self._pass.state.host_ids[best.host], best.code
        wish = f"{host} would be best (imbalance {-best.gain:+.4f})"
        if code == FINE:
            return Told(name, *self._not_taken(wish))
        standing = self._pass.mended.standing
        word, why = NAMES[code]
        for one in self._pass.state.members[self._unit[name]]:
            who = "it" if one == name else one
            if word == "rule" and standing.barred_by(one, host):
                why = f"rule {standing.barred_by(one, host)[0]} keeps {who} off"
            elif word == "keep_apart" and standing.clashes(one, host):
                rule, other = standing.clashes(one, host)[0]
                why = f"{rule} keeps {who} apart from {other}"
        return Told(name, word, f"{wish}, but {why}")

    def _not_taken(self, wish: str) -> tuple[str, str]:
        """Why a move that is good in itself is not made."""
        if any(one.code == "below_threshold" for one in self._pass.advice.rejected):
            threshold = self._policy.threshold
            return "below_threshold", f"{wish}, but not urgent enough for the threshold {threshold}"
        return "too_little", f"{wish}, but that is too little, or there are enough moves"

    def _given_up(self, name: VmId) -> Rejection | None:
        start = f"move {name} from "
        found = (one for one in self._pass.advice.rejected if one.subject.startswith(start))
        return next(found, None)
