"""Utilisation of hosts over time windows, and its distance from the target range.

A window is a set of past observations and a number of standard deviations: the expected demand of a
host is their mean plus so many deviations, of the sum over its units. A forecast is a window with
one future observation. The scores are equations 5 and 6 of the DRS paper.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from equipoise.balance.rebalance.assess import Assessment
from equipoise.capacity.waterfill import Floats, Ints
from equipoise.model.policy.power import PowerMeasure, PowerPolicy
from equipoise.model.state.snapshot import HISTORY_MS


class DemandWindow(IntEnum):
    """The windows, in the order in which their observations are stored."""

    OFF = 0
    """Decides which hosts may go into standby."""
    ON = 1
    """Decides which hosts must wake."""
    WORST = 2
    """The worst case."""
    AHEAD = 3
    """The forecast, if there is one."""


class WindowDemand(NamedTuple):
    """The observed demand in all windows, one after the other; CPU, then memory."""

    units: Floats
    """Per observation and unit."""
    hosts: Floats
    """Per observation and host, the sum over its units."""
    first: Ints
    """The first observation of each window."""
    deviations: Floats
    """How many standard deviations each window adds."""


def observe_demand(
    state: Assessment, policy: PowerPolicy, now_ms: int, ahead: Floats | None, speed_mhz: int = 0
) -> WindowDemand:
    """Return the observations of all windows; ``ahead`` is the forecast demand of each VM.

    ``speed_mhz`` is the speed of the fastest core, for a policy that counts configured sizes.
    """
    past, ceiling = state.history, _ceilings(state)
    configured = policy.measure is PowerMeasure.CONFIGURATION
    if configured:
        vcpus = np.array([vm.vcpus for vm in past.vms], dtype=float)
        ceiling[:, 0] = np.minimum(ceiling[:, 0], vcpus * speed_mhz)
    windows = [
        (past.since(now_ms - 1000 * policy.off_window_s), policy.deviations),
        (past.since(now_ms - 1000 * policy.on_window_s), policy.deviations),
        (past.since(now_ms - HISTORY_MS), policy.worst_deviations),
    ]
    if ahead is not None:
        windows.append(([ahead], 0.0))
    known: dict[int, Floats] = {}
    for frame in (item for frames, _ in windows for item in frames):
        if id(frame) not in known:  # windows overlap, and a quiet hour repeats one frame
            counted = ceiling if configured else np.minimum(frame[:, :2], ceiling)
            known[id(frame)] = state.units(counted)
    units = np.stack([known[id(item)] for frames, _ in windows for item in frames])
    first = np.cumsum([0, *(len(frames) for frames, _ in windows)]).astype(np.int64)
    count, unit_host = len(state.host_ids), state.arrays.unit_host
    hosts = np.stack([_per_host(sample, unit_host, count) for sample in units])
    return WindowDemand(units, hosts, first, np.array([times for _, times in windows]))


def expected_demand(observed: WindowDemand, window: DemandWindow) -> Floats:
    """Return the expected demand on each host in a window; zero for a window without samples."""
    if window >= len(observed.deviations):
        return np.zeros(observed.hosts.shape[1:])
    samples = observed.hosts[observed.first[window] : observed.first[window + 1]]
    expected: Floats = samples.mean(axis=0)
    if len(samples) > 1:
        expected = expected + observed.deviations[window] * samples.std(axis=0)
    return expected


def _ceilings(state: Assessment) -> Floats:
    """Return the maximum demand of each VM: its limit, and its configured memory."""
    vms = state.history.vms
    ceilings = np.full((len(vms), 2), np.inf)
    for row, vm in enumerate(vms):
        if vm.cpu.limit_mhz is not None:
            ceilings[row, 0] = vm.cpu.limit_mhz
        # A VM never holds more memory than it was configured with, whatever was measured.
        ceilings[row, 1] = vm.memory_mib
        if vm.memory.limit_mib is not None:
            ceilings[row, 1] = min(vm.memory_mib, vm.memory.limit_mib)
    return ceilings


def _per_host(figures: Floats, unit_host: Ints, count: int) -> Floats:
    columns = [np.bincount(unit_host, weights=column, minlength=count) for column in figures.T]
    return np.stack(columns, axis=1)


SCORE_TOLERANCE: Final = 1e-9
"""A smaller difference of scores is rounding."""


class UtilisationScores(NamedTuple):
    """How far hosts are above and below the target range, of CPU and of memory."""

    high: tuple[float, float]
    low: tuple[float, float]

    @property
    def is_high(self) -> bool:
        """Whether some host is above the target range."""
        return max(self.high) > SCORE_TOLERANCE

    @property
    def is_low(self) -> bool:
        """Whether hosts are below the target range, by CPU and by memory."""
        # Both: a cluster that is full by memory cannot lose a host, however idle its CPUs are.
        return min(self.low) > SCORE_TOLERANCE


def score_utilisation(on: Floats, off: Floats, high: float, low: float) -> UtilisationScores:
    """Return the scores for the utilisation in the wake window (``on``) and the standby window.

    Distances are added as squares (equations 5 and 6 of the DRS paper): one host that is far off
    counts more than many that are slightly off, and no host makes up for another.
    """
    above = _length(np.maximum(0.0, on - high))
    below = _length(np.maximum(0.0, low - off))
    return UtilisationScores(above, below)


def _length(distances: Floats) -> tuple[float, float]:
    cpu, memory = np.sqrt((distances**2).sum(axis=0)).tolist()
    return cpu, memory


def is_raised(before: tuple[float, float], after: tuple[float, float]) -> bool:
    """Return whether a score of CPU or memory has risen."""
    return any(new > old + SCORE_TOLERANCE for old, new in zip(before, after, strict=True))


def is_lowered(before: tuple[float, float], after: tuple[float, float]) -> bool:
    """Return whether one score has fallen and none has risen."""
    return not is_raised(before, after) and is_raised(after, before)
