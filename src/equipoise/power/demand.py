"""What units and hosts have asked for, over the spans of time that power decisions look at.

A *span* is some observations of the past and a number of standard deviations: what a host is
expected to need by it is their mean plus so many deviations, taken of the sum over its units. A
forecast is a span with one observation that has not come yet.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from equipoise.balance.levelling.assess import Assessment
from equipoise.model.policy.power import PowerPolicy
from equipoise.model.snapshot import HISTORY_MS
from equipoise.place.water import Floats, Ints


class Span(IntEnum):
    """The spans, in the order in which they are kept."""

    OFF = 0
    """Decides who may sleep."""
    ON = 1
    """Decides who must wake."""
    WORST = 2
    """The worst that may come."""
    AHEAD = 3
    """What is foretold, if anything is."""


class Asked(NamedTuple):
    """What was asked for: observations of all spans one after the other; CPU, then memory."""

    units: Floats
    """Per observation and unit, ..."""
    hosts: Floats
    """... and added up per host."""
    first: Ints
    """Where each span begins."""
    deviations: Floats
    """How many standard deviations each span counts."""


def asked(state: Assessment, policy: PowerPolicy, now_ms: int, ahead: Floats | None) -> Asked:
    """Read the spans; ``ahead`` is what each VM is foretold to ask for."""
    past, ceiling = state.history, _ceilings(state)
    spans = [
        (past.since(now_ms - 1000 * policy.off_window_s), policy.deviations),
        (past.since(now_ms - 1000 * policy.on_window_s), policy.deviations),
        (past.since(now_ms - HISTORY_MS), policy.worst_deviations),
    ]
    if ahead is not None:
        spans.append(([ahead], 0.0))
    known: dict[int, Floats] = {}
    for frame in (one for frames, _ in spans for one in frames):
        if id(frame) not in known:  # spans overlap, and an hour may be one frame many times
            known[id(frame)] = state.units(np.minimum(frame[:, :2], ceiling))
    units = np.stack([known[id(one)] for frames, _ in spans for one in frames])
    first = np.cumsum([0, *(len(frames) for frames, _ in spans)]).astype(np.int64)
    count, home = len(state.host_ids), state.field.home
    hosts = np.stack([_per_host(one, home, count) for one in units])
    return Asked(units, hosts, first, np.array([times for _, times in spans]))


def expected(asked: Asked, span: Span) -> Floats:
    """What each host is expected to need by a span; zero by one that is not there."""
    if span >= len(asked.deviations):
        return np.zeros(asked.hosts.shape[1:])
    seen = asked.hosts[asked.first[span] : asked.first[span + 1]]
    found: Floats = seen.mean(axis=0)
    if len(seen) > 1:
        found = found + asked.deviations[span] * seen.std(axis=0)
    return found


def _ceilings(state: Assessment) -> Floats:
    """Nobody can use more than its limit, nor more memory than it has."""
    vms = state.history.vms
    found = np.full((len(vms), 2), np.inf)
    for row, vm in enumerate(vms):
        if vm.cpu.limit_mhz is not None:
            found[row, 0] = vm.cpu.limit_mhz
        found[row, 1] = vm.memory_mib
        if vm.memory.limit_mib is not None:
            found[row, 1] = min(vm.memory_mib, vm.memory.limit_mib)
    return found


def _per_host(figures: Floats, home: Ints, count: int) -> Floats:
    columns = [np.bincount(home, weights=column, minlength=count) for column in figures.T]
    return np.stack(columns, axis=1)
