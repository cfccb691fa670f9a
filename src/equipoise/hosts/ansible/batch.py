"""Performs a batch of chores: one run of Ansible for all of them, and what came of each."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from equipoise.hosts.ansible.brake import Brake
from equipoise.hosts.ansible.layout import files_of, groups_of, settings_of
from equipoise.hosts.ansible.run import Listener, need_ansible, run
from equipoise.hosts.ansible.verdict import verdicts
from equipoise.hosts.ansible.words import Chore, Manners, Outcome, Verdict, Way

NOT_BEGUN: Final = "the batch was interrupted before its turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of a batch, chore by chore in the order of the batch."""

    verdicts: tuple[Verdict, ...]
    is_interrupted: bool = False
    """Whether somebody wanted it to end (Ctrl-C): who asked for the batch should end too."""


def perform(
    chores: Sequence[Chore],
    ways: Mapping[str, Way],
    manners: Manners,
    brake: Brake | None = None,
    listener: Listener = lambda _event: None,
) -> Report:
    """Let Ansible do all the chores; whatever comes of it is a value.

    One run does for the batch, unless all hosts of one playbook fail: then Ansible leaves out the
    playbooks that follow, and they are done by another run.
    """
    need_ansible()
    assert all(chore.host in ways for chore in chores), "the ways are found before the batch"
    brake = brake or Brake()
    found: dict[int, Verdict] = {}
    left, is_interrupted = dict(enumerate(chores)), brake.is_pulled
    while left and not is_interrupted:
        groups = groups_of(left)
        heard = run(
            files_of(groups, ways, manners),
            settings_of(groups, manners, os.environ),
            manners.timeout_s,
            listener,
            brake,
        )
        secrets = [text for chore in left.values() for text in ways[chore.host].secrets.values()]
        for entry, verdict in verdicts(groups, heard, secrets):
            if verdict is not None:
                found[entry.place] = verdict
        rest = {place: chore for place, chore in left.items() if place not in found}
        assert len(rest) < len(left), "a run that decides nothing would be run for ever"
        left, is_interrupted = rest, heard.is_interrupted
    for place, chore in left.items():
        found[place] = Verdict(
            chore=chore, outcome=Outcome.UNKNOWN, reason=NOT_BEGUN, is_begun=False
        )
    ordered = tuple(found[place] for place in range(len(chores)))
    return Report(verdicts=ordered, is_interrupted=is_interrupted)
