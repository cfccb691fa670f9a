"""Compares the decisions of a built-in policy with those of a recorded scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from equipoise.adapters.batsim.schedule.decider import PolicyDecider
from equipoise.adapters.batsim.v5.session import canonical
from equipoise.sim.jobs.policies import HostAwarePolicy

_DECISIONS: Final = frozenset({"EXECUTE_JOB", "REJECT_JOB"})


@dataclass(frozen=True, slots=True)
class DecisionComparison:
    """How many replies are equal, up to the first that differs."""

    equal: int
    difference: str = ""


def compare_decisions(
    exchange: Iterable[Mapping[str, Any]], make_policy: Callable[[int], HostAwarePolicy]
) -> DecisionComparison:
    """Feed recorded messages to a policy; compare starts, hosts and rejections of each reply.

    A reply that differs ends the comparison, because later messages follow from the recorded one.
    """
    decider = PolicyDecider(make_policy)
    ours: list[tuple[str, str, str]] = []
    equal, now_s = 0, 0.0
    for entry in exchange:
        if entry["from"] == "batsim":
            ours, now_s = _decisions(decider.answer(entry["msg"])), entry["msg"]["now"]
            continue
        theirs = _decisions(entry["msg"])
        if ours != theirs:
            only = [start for start in ours if start not in theirs]
            missing = [start for start in theirs if start not in ours]
            return DecisionComparison(equal, f"at {now_s:g} s: {only} instead of {missing}")
        equal += 1
    return DecisionComparison(equal)


def _decisions(reply: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return sorted(
        (event["type"], event["data"]["job_id"], canonical(event["data"].get("alloc", "")))
        for event in reply["events"]
        if event["type"] in _DECISIONS
    )
