"""Loads: what VMs ask for over time, put together from simple parts.

All parts of a resource are added; the sum is never below zero and, for memory, never above the
size of the VM. Each part stays as it is between two of its changes.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from equipoise.model.quantity import CountPresent, Seconds
from equipoise.model.value import Value

Number = Annotated[float, Meta(ge=-(10**12), le=10**12)]
Positive = Annotated[float, Meta(ge=0, le=10**12)]
Period = Annotated[int, Meta(ge=1, le=10**9)]
"""Seconds from one change to the next; a load that changes all the time would never end."""
LoadName = Annotated[str, Meta(min_length=1)]


class Spread(Value):
    """A number drawn anew each time: one of a list, evenly from a range, or from a bell curve."""

    one_of: tuple[Number, ...] = ()
    low: Number | None = None
    high: Number | None = None
    mean: Number | None = None
    sd: Positive | None = None


Level = Number | Spread
"""A number, or how to draw one."""


class _Part(Value, tag_field="kind"):
    together: LoadName | None = None
    """VMs whose parts have the same word here draw the same numbers: they rise and fall as one."""


class Constant(_Part, tag="constant"):
    """Always the same; a drawn level is drawn once per VM."""

    level: Level


class Pattern(_Part, tag="pattern"):
    """High for a while, low for a while, and again."""

    high: Level
    high_s: Period
    low: Level
    low_s: Period
    phase_s: Seconds | None = None
    """How far into the cycle the VM is at the start. Left out, each VM draws its own."""
    redraw_s: Period | None = None
    """Draw the level anew so often within a phase; left out, once per phase."""


class Point(Value):
    """From this moment on, this level."""

    at_s: Seconds
    level: Level


class Steps(_Part, tag="steps"):
    """A level from each moment on; nothing before the first."""

    points: Annotated[tuple[Point, ...], Meta(min_length=1)]


class Diurnal(_Part, tag="diurnal"):
    """A smooth wave between low and high, one per day, taken every few minutes."""

    low: Number
    high: Number
    peak_s: Seconds = 14 * 3600
    """When it is highest, counted from the start; two in the afternoon by default."""
    period_s: Period = 24 * 3600
    every_s: Period = 600


class Noise(_Part, tag="noise"):
    """A new draw every period."""

    level: Level
    period_s: Period
    phase_s: Seconds | None = None
    """How far into the period the VM is at the start. Left out, each VM draws its own."""


class Spike(_Part, tag="spike"):
    """A level for some time, and nothing before and after; once or again and again."""

    level: Level
    at_s: Seconds
    for_s: Period
    every_s: Period | None = None


class Trace(_Part, tag="trace"):
    """What was measured somewhere, from a CSV or Parquet file beside the scenario."""

    file: Annotated[str, Meta(min_length=1)]
    value: Annotated[str, Meta(min_length=1)] = "value"
    """The column of the level."""
    time: Annotated[str, Meta(min_length=1)] = "at_s"
    """The column of the time; the first row is the start of the run."""
    time_per_s: CountPresent = 1
    """How many units of that column make a second, e.g. 1000 for milliseconds."""
    scale: Number = 1.0
    """What the level is multiplied by."""
    gap_s_max: Period = 3600
    """A longer silence between two rows is taken for a fault of the trace, and refused."""
    repeat: bool = False
    """Whether to begin again at the end; else the last level stays."""


Part = Constant | Pattern | Steps | Diurnal | Noise | Spike | Trace


class Load(Value):
    """What a VM asks for. What is left out stays as the VM's ``demand`` says."""

    cpu_mhz: tuple[Part, ...] = ()
    memory_mib: tuple[Part, ...] = ()
    """Active memory in MiB ..."""
    memory_pct: tuple[Part, ...] = ()
    """... or in percent of the VM's size; not both."""
