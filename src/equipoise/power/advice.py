"""Advice: which hosts should sleep or wake, and for every other host why it should not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from equipoise.balance.mending.mend import Transfer
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.power.score import Scores


class Code(StrEnum):
    """Why something is, or is not, recommended. Stable, for machines."""

    SLEEP = "sleep"
    """It is not needed."""
    WAKE_BUSY = "wake_busy"
    """Others have too much to do."""
    WAKE_RULE = "wake_rule"
    """A rule needs it."""
    WAKE_MINIMUM = "wake_minimum"
    """Too few hosts are on."""
    WAKE_WINDOW = "wake_window"
    """It is a time in which no host sleeps."""
    OFF = "off"
    """Power management is off now, by the policy or by a window of it."""
    STAYS_ON = "stays_on"
    LEFT_ALONE = "left_alone"
    NO_FIGURES = "no_figures"
    WAKE_FAILED = "wake_failed"
    REQUESTED = "requested"
    IN_USE = "in_use"
    STUCK = "stuck"
    ROLES = "roles"
    """It carries roles, or is needed for them."""
    THRESHOLD = "threshold"
    OBSERVING = "observing"
    COOLDOWN = "cooldown"
    MINIMUM = "minimum"
    BUSY = "busy"
    """Hosts have too much to do already."""
    NOT_LOW = "not_low"
    """Too few hosts have little to do."""
    NO_ROOM = "no_room"
    """Its VMs fit nowhere else."""
    USELESS = "useless"
    """Nothing would be the better for it."""
    RULE = "rule"
    NOT_WORTH_IT = "not_worth_it"
    LATER = "later"
    GATE = "gate"
    CAP = "cap"
    NOT_NEEDED = "not_needed"


@dataclass(frozen=True, slots=True)
class Told:
    """Why nothing is done with a host."""

    host: HostId
    code: Code
    sentence: str


@dataclass(frozen=True, slots=True)
class Going:
    """A VM that has to go elsewhere."""

    vm: VmId
    target: HostId


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep:
    """A host that should be emptied and put to sleep."""

    host: HostId
    going: tuple[Going, ...]
    priority: int
    """2 to 5: the more it is worth, the more urgent; 1 if a cap asks for it."""
    reason: str
    gain: Mapping[str, float]
    """Watts saved, what is not used meanwhile, and how often that is worth the cost."""
    cost: Mapping[str, float]
    automatic: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """A host that should be woken."""

    host: HostId
    code: Code
    priority: int
    """1 if a rule, the minimum or a window asks for it, or if demand is not met; up to 3."""
    reason: str
    gain: Mapping[str, float]
    automatic: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerAdvice:
    """What one look at the power of a cluster has found."""

    sleeps: tuple[Sleep, ...] = ()
    wakes: tuple[Wake, ...] = ()
    told: tuple[Told, ...] = ()
    """Why nothing is done with each other host."""
    moves: tuple[Transfer, ...] = ()
    """VMs that go to hosts that are woken for the rules, in the same plan: a rule that is broken
    must hold at its end."""
    mends: tuple[RuleId, ...] = ()
    """The continuous rules that are broken now and will not be."""
    before: Scores
    after: Scores
    """The scores, as things are and as they would be."""
    summary: str = ""
