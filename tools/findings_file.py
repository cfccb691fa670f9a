"""Merges files that campaigns have saved into one findings file: a line for each kind and setting.

    equipoise fuzz btrplace --tests 40000 --save a.jsonl
    equipoise fuzz btrplace --tests 40000 --with repair=on --save b.jsonl
    python tools/findings_file.py a.jsonl b.jsonl > findings-VERSION.jsonl

The targets judge every case again: the guessed cause may depend on the plan of the target, and a
case that no longer shows its defect is left out. The file belongs into src/equipoise/adapters/NAME,
where a campaign looks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from equipoise.adapters.targets.scheduler import Scheduler, SchedulerEntry
from equipoise.fuzz.campaign.findings import kind_of
from equipoise.fuzz.registry import find_scheduler, make_scheduler
from equipoise.fuzz.trial.shrink import TrialSize
from equipoise.fuzz.trial.stored import StoredTrial, read_lines, trial_of, write_line


def main(paths: Iterable[str]) -> None:
    """Write the smallest case of each kind, in the order of constraint, mode and outcome."""
    smallest: dict[tuple[object, ...], StoredTrial] = {}
    for path in map(Path, paths):
        for line in read_lines(path.read_bytes(), str(path)):
            known = _known(line)
            kind = kind_of(_scheduler(known, line), line)
            if kind is None:
                sys.stderr.write(f"{path}: a {line.outcome} of {line.constraint} does not show\n")
                continue
            key = (line.target, _settings(line), kind)
            other = smallest.get(key)
            if other is None or TrialSize.of(trial_of(line)) < TrialSize.of(trial_of(other)):
                smallest[key] = line.but(target_version=known.version)
    for line in sorted(smallest.values(), key=_place):
        sys.stdout.buffer.write(write_line(line))


def _known(line: StoredTrial) -> SchedulerEntry:
    """The target of a case, in the version in which it was saved."""
    known = find_scheduler(line.target)
    if known is None or not line.is_of(known.version):
        sys.exit(f"{line.target} {line.target_version} is not installed")
    return known


def _scheduler(known: SchedulerEntry, line: StoredTrial) -> Scheduler:
    """It, set as it was when the case was saved."""
    usual = {name: values[0] for name, values in known.settings.items()}
    return make_scheduler(line.target, tuple(sorted({**usual, **line.settings}.items())))


def _settings(line: StoredTrial) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(line.settings.items()))


def _place(line: StoredTrial) -> tuple[object, ...]:
    about = (line.target, _settings(line), line.constraint, line.case.continuous, line.outcome)
    return (*about, line.message, line.seed, line.number)


if __name__ == "__main__":
    main(sys.argv[1:])
