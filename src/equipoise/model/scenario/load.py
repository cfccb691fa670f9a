"""Loads: the demand of VMs over time, as a sum of simple parts.

All parts of a resource are added. The sum is never below zero and, for memory, never above the
size of the VM. Each part is constant between two of its changes.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from equipoise.model.quantity import PositiveCount, Seconds
from equipoise.model.value import Value

Number = Annotated[float, Meta(ge=-(10**12), le=10**12)]
NonNegative = Annotated[float, Meta(ge=0, le=10**12)]
PeriodSeconds = Annotated[int, Meta(ge=1, le=10**9)]
"""Seconds from one change to the next; at least 1, so that a run has finitely many changes."""
LoadName = Annotated[str, Meta(min_length=1)]


class Distribution(Value):
    """A random number: one of a list, uniform in a range, or normally distributed."""

    # One record with all keys, so that a file needs no tag; the check reports what excludes what.
    one_of: tuple[Number, ...] = ()
    low: Number | None = None
    high: Number | None = None
    mean: Number | None = None
    sd: NonNegative | None = None


NumberSpec = Number | Distribution
"""A number, or the distribution of a random number."""


class _LoadPartBase(Value, tag_field="kind"):
    together: LoadName | None = None
    """VMs whose parts have the same word here draw the same random numbers."""


class ConstantLoad(_LoadPartBase, tag="constant"):
    """A constant level. A random level is drawn once per VM."""

    level: NumberSpec


# Files carry the tag, so that it keeps its old name.
class CyclicLoad(_LoadPartBase, tag="pattern"):
    """Alternating high and low phases."""

    high: NumberSpec
    high_s: PeriodSeconds
    low: NumberSpec
    low_s: PeriodSeconds
    phase_s: Seconds | None = None
    """Position in the cycle at the start. Without it, each VM draws a random one."""
    redraw_s: PeriodSeconds | None = None
    """Time between two draws of the level within a phase; without it, once per phase."""


class LoadPoint(Value):
    """A level from a time on."""

    at_s: Seconds
    level: NumberSpec


class StepLoad(_LoadPartBase, tag="steps"):
    """A level that changes at given times; zero before the first one."""

    points: Annotated[tuple[LoadPoint, ...], Meta(min_length=1)]


class DiurnalLoad(_LoadPartBase, tag="diurnal"):
    """A sine wave between low and high with a period of a day, sampled every ``every_s``."""

    low: Number
    high: Number
    peak_s: Seconds = 14 * 3600
    """Time of the peak, counted from the start; by default two in the afternoon."""
    period_s: PeriodSeconds = 24 * 3600
    every_s: PeriodSeconds = 600


class NoiseLoad(_LoadPartBase, tag="noise"):
    """A random level that is drawn again in every period."""

    level: NumberSpec
    period_s: PeriodSeconds
    phase_s: Seconds | None = None
    """Position in the period at the start. Without it, each VM draws a random one."""


class SpikeLoad(_LoadPartBase, tag="spike"):
    """A level for some time, zero before and after; once, or every ``every_s``."""

    level: NumberSpec
    at_s: Seconds
    for_s: PeriodSeconds
    every_s: PeriodSeconds | None = None


class TraceLoad(_LoadPartBase, tag="trace"):
    """A measured trace from a CSV or Parquet file; its path is relative to the scenario."""

    file: Annotated[str, Meta(min_length=1)]
    value: Annotated[str, Meta(min_length=1)] = "value"
    """The column of the level."""
    time: Annotated[str, Meta(min_length=1)] = "at_s"
    """The column of the time; the first row is the start of the run."""
    time_per_s: PositiveCount = 1
    """Units of the time column per second, e.g. 1000 for milliseconds."""
    scale: Number = 1.0
    """Factor of the level."""
    gap_s_max: PeriodSeconds = 3600
    """Longest allowed gap between two rows; a longer one is an error of the trace."""
    repeat: bool = False
    """Whether the trace starts again at its end; without it, the last level stays."""


LoadPart = ConstantLoad | CyclicLoad | StepLoad | DiurnalLoad | NoiseLoad | SpikeLoad | TraceLoad


class Load(Value):
    """The demand of a VM over time. A resource without parts keeps the ``demand`` of the VM."""

    cpu_mhz: tuple[LoadPart, ...] = ()
    memory_mib: tuple[LoadPart, ...] = ()
    """Active memory in MiB."""
    memory_pct: tuple[LoadPart, ...] = ()
    """Active memory in percent of the size of the VM, instead of ``memory_mib``."""
