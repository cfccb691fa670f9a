"""Performs a batch of tasks: one run of Ansible for all of them, and what came of each."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from equipoise.hosts.ansible.layout import files_of, groups_of, settings_of
from equipoise.hosts.ansible.run import Listener, need_ansible, run
from equipoise.hosts.ansible.verdict import verdicts
from equipoise.hosts.ansible.words import Manners, Outcome, Task, Verdict, Way

NOT_BEGUN: Final = "the batch was interrupted before its turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of a batch, task by task in the order of the batch."""

    verdicts: tuple[Verdict, ...]
    is_interrupted: bool = False
    """Whether somebody wanted it to end (Ctrl-C): who asked for the batch should end too."""


def perform(
    tasks: Sequence[Task],
    ways: Mapping[str, Way],
    manners: Manners,
    listener: Listener = lambda _event: None,
) -> Report:
    """Let Ansible do all the tasks; whatever comes of it is a value.

    One run does for the batch, unless all hosts of one playbook fail: then Ansible leaves out the
    playbooks that follow, and they are done by another run.
    """
    need_ansible()
    assert all(task.host in ways for task in tasks), "the ways are found before the batch"
    found: dict[int, Verdict] = {}
    left, is_interrupted = dict(enumerate(tasks)), False
    while left and not is_interrupted:
        groups = groups_of(left)
        heard = run(
            files_of(groups, ways, manners),
            settings_of(groups, manners, os.environ),
            manners.timeout_s,
            listener,
        )
        secrets = [text for task in left.values() for text in ways[task.host].secrets.values()]
        for entry, verdict in verdicts(groups, heard, secrets):
            if verdict is not None:
                found[entry.place] = verdict
        rest = {place: task for place, task in left.items() if place not in found}
        assert len(rest) < len(left), "a run that decides nothing would be run for ever"
        left, is_interrupted = rest, heard.is_interrupted
    for place, task in left.items():
        found[place] = Verdict(task=task, outcome=Outcome.UNKNOWN, reason=NOT_BEGUN)
    ordered = tuple(found[place] for place in range(len(tasks)))
    return Report(verdicts=ordered, is_interrupted=is_interrupted)
