"""What a hypervisor counts of a VM, and the demand that follows from it.

Nobody can count what a VM would use if nobody else were there; only what it used and what it
waited for. Hypervisors tell the waiting as times (ESX) or as pressure stall (Linux), and active
memory by a sample of its pages or, with pressure stall, by what is resident.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from equipoise.model.quantity import Count, CountPresent, Mhz, Mib, Milliseconds
from equipoise.model.value import Value

if TYPE_CHECKING:  # a VM has a usage, so that it cannot be had here when the program runs
    from equipoise.model.vm import Demand, Vm

StallPct = Annotated[float, Meta(ge=0, le=99.99)]
"""Of 100 nothing follows: who got nothing may have asked for anything."""

_MHZ_MAX: Final = 10**9


class Usage(Value):
    """Figures of one interval; what is left out is not known."""

    cpu_used_mhz: Mhz | None = None
    """What it used, on the average of the interval."""
    cpu_run_ms: Milliseconds | None = None
    """How long its vCPUs ran, added up, as are the next two."""
    cpu_sleep_ms: Milliseconds | None = None
    """How long its vCPUs had nothing to do."""
    cpu_ready_ms: Milliseconds | None = None
    """How long its vCPUs had something to do and waited for a CPU."""
    cpu_stall_pct: StallPct | None = None
    """Instead of the times: pressure stall of the CPU ("some"), the part of the time it waited."""
    pages_sampled: CountPresent | None = None
    """How many of its pages were watched."""
    pages_touched: Count | None = None
    """How many of these it has touched."""
    memory_used_mib: Mib | None = None
    """Instead of the pages: what it had in memory."""
    memory_stall_pct: StallPct | None = None
    """Pressure stall of the memory ("some"), the part of the time it waited for pages."""


def demand_of(usage: Usage, vm: Vm, mhz_per_core: int | None) -> Demand:
    """What a VM asks for by what was counted; ``mhz_per_core`` is its host's speed, if known.

    Never less than was used. What was only reckoned is never more than the VM could use.
    """
    return vm.demand.but(
        cpu_mhz=_cpu_mhz(usage, vm, mhz_per_core), memory_mib=_memory_mib(usage, vm)
    )


def _cpu_mhz(usage: Usage, vm: Vm, mhz_per_core: int | None) -> int:
    used = usage.cpu_used_mhz or 0
    most = _MHZ_MAX if vm.cpu.limit_mhz is None else vm.cpu.limit_mhz
    if mhz_per_core is not None:
        most = min(most, vm.vcpus * mhz_per_core)
    if usage.cpu_stall_pct is not None:
        asked = _unstalled(used, usage.cpu_stall_pct)
    else:
        asked = _unqueued(usage, used, used if mhz_per_core is None else most)
    return max(used, round(min(asked, most)))


def _unqueued(usage: Usage, used: int, most: int) -> float:
    """Equation 1 of the DRS paper: used + run / (run + sleep) * ready, in MHz.

    While it was not queued, it ran for run / (run + sleep) of the time, and so it would have in the
    time it was. The equation adds times, but what was used is told in MHz: those that it had while
    it ran, used * (run + sleep + ready) / run. So many MHz for that part of the ready time is
    used * ready / (run + sleep) on the average of the interval, whatever the speed of the CPU.

    Who has not run but slept at times would have gone on sleeping. Who did neither was queued all
    the time; with ever less of sleep the equation comes to all that the VM can use.
    """
    run, sleep, ready = usage.cpu_run_ms or 0, usage.cpu_sleep_ms or 0, usage.cpu_ready_ms or 0
    if run:
        return used * (1 + ready / (run + sleep))
    return most if ready and not sleep else used


def _memory_mib(usage: Usage, vm: Vm) -> int:
    size, limit = vm.memory_mib, vm.memory.limit_mib
    if usage.pages_sampled is not None:
        return round(size * min(1.0, (usage.pages_touched or 0) / usage.pages_sampled))
    used = usage.memory_used_mib or 0
    most = size if limit is None else min(size, limit)
    return max(used, round(min(_unstalled(used, usage.memory_stall_pct or 0), most)))


def _unstalled(used: float, stall_pct: float) -> float:
    """Who was stalled a tenth of the time got nine tenths of what it asked for.

    "Some" counts the time in which any of its tasks was stalled, and so rather too much for a VM of
    several vCPUs: better a little too much than to take a starving VM for a content one.
    """
    return 100 * used / (100 - stall_pct)
