"""What was counted of a VM: each figure with those that it needs, and none in two ways."""

from __future__ import annotations

from typing import Final

from equipoise.model.files.findings import Findings
from equipoise.model.files.words import Path
from equipoise.model.usage import Usage
from equipoise.model.vm import Vm

_TIMES: Final = ("cpu_run_ms", "cpu_sleep_ms", "cpu_ready_ms")
_PAGES: Final = ("pages_sampled", "pages_touched")
_NEEDED: Final = (
    (_TIMES, _TIMES, "the three times are of one interval: give all, or none"),
    ((*_TIMES, "cpu_stall_pct"), ("cpu_used_mhz",), "give what it used, on the average"),
    (_PAGES, _PAGES, "give both, or none"),
    (("memory_stall_pct",), ("memory_used_mib",), "give what it had in memory"),
)
"""Who has one of the first needs all of the second."""
_EITHER: Final = (
    ("cpu_stall_pct", _TIMES),
    ("memory_used_mib", _PAGES),
    ("memory_stall_pct", _PAGES),
)
"""Who has the first has none of the second."""


def check_usage(vm: Vm, usage: Usage, path: Path, found: Findings) -> None:
    """Find figures that are not enough, too many or contradict each other."""
    if vm.demand.cpu_mhz or vm.demand.memory_mib:
        what = "the VM has a demand as well"
        found.add(path, what, "leave demand out: it follows from what was counted")
    _check_company(usage, path, found)
    sampled, touched, used = usage.pages_sampled, usage.pages_touched, usage.memory_used_mib
    if sampled is not None and touched is not None and touched > sampled:
        what = f"{touched} is more than pages_sampled {sampled}"
        found.add((*path, "pages_touched"), what, f"at most {sampled}")
    if used is not None and used > vm.memory_mib:
        what = f"{used} is above the configured memory_mib {vm.memory_mib}"
        cure = f"at most {vm.memory_mib}, or raise memory_mib"
        found.add((*path, "memory_used_mib"), what, cure)


def _check_company(usage: Usage, path: Path, found: Findings) -> None:
    given = [key for key in Usage.__struct_fields__ if getattr(usage, key) is not None]
    missing: set[str] = set()
    for some, needed, cure in _NEEDED:
        reason = next((key for key in some if key in given), None)
        for key in needed:
            if reason is not None and key not in given and key not in missing:
                missing.add(key)
                found.add((*path, key), f"is missing, though {reason} is given", cure)
    for key, others in _EITHER:
        other = next((one for one in others if one in given), None)
        if key in given and other is not None:
            what = f"the same is told by {other}"
            found.add((*path, key), what, f"leave one of them out: {key} or {', '.join(others)}")
