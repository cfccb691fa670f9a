"""Power advice: hosts to put into standby or to wake, why the others stay, and the intents."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from equipoise.balance.advice import IntentBuilder, Transfer, switch_step_id
from equipoise.model.action import PowerOff, PowerOn
from equipoise.model.action_durations import Estimates
from equipoise.model.plan import Intent
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.power.utilisation import UtilisationScores


class PowerCode(StrEnum):
    """Why a host is switched or not. The values are stable and are keys of ``CODES``."""

    # The host is switched.
    SLEEP = "sleep"
    """Its capacity is not needed."""
    WAKE_BUSY = "wake-busy"
    """Hosts are above the target utilisation."""
    WAKE_RULE = "wake-rule"
    """A rule stays broken without it."""
    WAKE_MINIMUM = "wake-minimum"
    """Fewer hosts are on than ``hosts_on_min``."""
    WAKE_WINDOW = "wake-window"
    """The policy is off now, so every host is on."""

    # The policy prevents the switch.
    POLICY_OFF = "power-policy-off"
    """Power management is off now, by the policy or by a window of it."""
    STAYS_ON = "stays-on"
    """The policy keeps the host on."""
    LEFT_ALONE = "left-alone"
    """The policy excludes the host."""
    THRESHOLD = "power-threshold"
    """The threshold of the policy is 1."""
    OBSERVING = "observing"
    """Demand was not observed for long enough."""
    COOLDOWN = "cooldown"
    """A host was woken recently."""
    MINIMUM = "hosts-on-minimum"
    """Fewer hosts than ``hosts_on_min`` would be on."""
    MOVE_LIMIT = "move-limit"
    """``moves_per_pass`` is reached."""
    CAP = "power-cap"
    """The cluster could exceed its power cap."""

    # The state of the host prevents the switch.
    NO_FIGURES = "no-power-figures"
    """The host has no power figures, or standby saves nothing."""
    WAKE_FAILED = "wake-failed"
    """The last wake of the host failed."""
    RESTING = "vms-rest"
    """A VM of the host stays where it is, because it has moved or its migrations fail."""
    REQUESTED = "state-requested"
    """The operator has requested a state for the host."""
    IN_USE = "in-use"
    """An action or another evacuation uses the host."""
    PINNED = "vms-pinned"
    """A VM cannot leave the host."""
    ROLES = "holds-roles"
    """The host holds roles, or a role needs it."""

    # The switch is of no use.
    BUSY = "hosts-busy"
    """Hosts are, or would be, above the target utilisation."""
    NOT_LOW = "utilisation-not-low"
    """No host is below the target utilisation."""
    NO_CAPACITY = "no-capacity"
    """The VMs of the host fit on no other host."""
    NO_BENEFIT = "no-benefit"
    """The scores would not improve."""
    SAVING = "saving-too-small"
    """The other hosts would draw almost as much more as the standby saves."""
    RULE = "breaks-rule"
    """A rule or a failover reserve needs the host."""
    COST_EXCEEDS_BENEFIT = "cost-exceeds-benefit"
    """The benefit is too small for the cost and the risk."""
    GATE = "gate-refuses"
    """The gate refuses the plan."""
    NOT_NEEDED = "not-needed"
    """The host is in standby, and its capacity is not needed."""


@dataclass(frozen=True, slots=True)
class SkippedHost:
    """A host that is not switched, with the reason."""

    host: HostId
    code: PowerCode
    sentence: str


@dataclass(frozen=True, slots=True)
class EvacuationMove:
    """A VM that leaves a host, and its target."""

    vm: VmId
    target: HostId


@dataclass(frozen=True, slots=True, kw_only=True)
class StandbyAdvice:
    """A host that should be evacuated and put into standby."""

    host: HostId
    evacuations: tuple[EvacuationMove, ...]
    priority: int
    """1 if the power cap needs it, else 2 to 5: a larger benefit is more urgent."""
    reason: str
    gain: Mapping[str, float]
    """Watts saved, unused capacity over time, and benefit divided by cost."""
    cost: Mapping[str, float]
    automatic: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeAdvice:
    """A host that should be woken."""

    host: HostId
    code: PowerCode
    priority: int
    """1 for a rule, the minimum, a window or unmet demand; else 2 or 3."""
    reason: str
    gain: Mapping[str, float]
    automatic: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerAdvice:
    """The result of one power pass."""

    standbys: tuple[StandbyAdvice, ...] = ()
    wakes: tuple[WakeAdvice, ...] = ()
    skipped: tuple[SkippedHost, ...] = ()
    """Why each other host is not switched."""
    moves: tuple[Transfer, ...] = ()
    """Moves to hosts that are woken for a rule.

    They belong to the same plan, because the rule must hold at its end.
    """
    repairs: tuple[RuleId, ...] = ()
    """The continuous rules that are broken now and hold after the plan."""
    before: UtilisationScores
    after: UtilisationScores
    """The scores before and after."""
    summary: str = ""


class PowerIntentBuilder:
    """Builds intents from power advice."""

    def __init__(self, snapshot: Snapshot, estimates: Estimates) -> None:
        self._builder = IntentBuilder(snapshot, estimates)

    def standby(self, standby: StandbyAdvice) -> tuple[Intent, ...]:
        """Return the intents that evacuate a host and put it into standby."""
        moves = tuple(
            self._builder.move(
                Transfer(move.vm, standby.host, move.target),
                f"{standby.host} goes into standby",
            )
            for move in standby.evacuations
        )
        step, off = switch_step_id(standby.host), PowerOff(host=standby.host)
        after = (move.id for move in moves)
        return (*moves, self._builder.of(step, off, standby.reason, after))

    def move(self, move: Transfer, woken: Collection[HostId]) -> Intent:
        """Return the intent that moves a VM, after its target is on."""
        after = (switch_step_id(move.target),) if move.target in woken else ()
        return self._builder.move(move, "a rule is broken on its host", after)

    def wake(self, wake: WakeAdvice) -> Intent:
        """Return the intent that powers a host on."""
        return self._builder.of(switch_step_id(wake.host), PowerOn(host=wake.host), wake.reason)
