"""A trial as questions to one of Nova's filters: may this VM come to this host?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from equipoise.fuzz.schedulers.scheduler import Unsupported
from equipoise.fuzz.targets.nova_coming import Coming, Life, Lying, When, comings_of
from equipoise.fuzz.targets.nova_words import EXTRA_SPECS, WHEN, Words, teller
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.quantity import HostId, VmId

_STATES: Final[Mapping[Life, Mapping[str, str]]] = {
    Life.RUNS: {"vm_state": "active"},
    Life.SLEEPS: {"vm_state": "suspended"},
    Life.IS_BOOTED: {"vm_state": "building"},
    Life.IS_MIGRATED: {"vm_state": "active", "task_state": "migrating"},
}


class Question(NamedTuple):
    """What the worker is told."""

    told: dict[str, Any]
    odd: str = ""
    """Why an answer would be about something else; that Nova breaks is a crash all the same."""


def encode(trial: Trial, *, extra_specs: str = EXTRA_SPECS[0]) -> list[Question]:
    """Put a trial into Nova's words, a question for each VM that comes, in their order.

    Raise ``Unsupported`` if it has none for it.
    """
    tell = teller(trial, extra_specs)
    when = WHEN.get(trial.demand.name, When.LAST)
    if when is When.DURING and not trial.demand.continuous:
        raise Unsupported("the filter counts while VMs are booted; ask for it to hold all the time")
    if trial.demand.continuous and when is not When.DURING:
        raise Unsupported("the filter is asked before a VM comes, and not what is in between")
    return [_question(coming, tell(coming)) for coming in comings_of(trial, when)]


def _question(coming: Coming, words: Words) -> Question:
    host = {"id": coming.host.id, "instances": list(instances(coming.lying, coming.host.id))}
    told = {
        "filter": words.filter,
        "vm": {"id": coming.vm.id, **words.vm},
        "hosts": [{**host, **words.host}],
        "config": words.config,
        "group": words.group,
    }
    return Question(told, words.odd)


def instances(lying: Mapping[VmId, Lying], host: HostId) -> Iterator[dict[str, str]]:
    """The VMs that Nova has on a host."""
    for vm, one in lying.items():
        if one.host == host:
            yield {"id": vm, **_STATES[one.life]}
