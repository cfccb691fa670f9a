"""Makes a findings file of what campaigns have saved: a line for each sort of defect and setting.

    equipoise fuzz btrplace --tests 40000 --save a.jsonl
    equipoise fuzz btrplace --tests 40000 --with repair=on --save b.jsonl
    python tools/findings_file.py a.jsonl b.jsonl > btrplace-VERSION.findings.jsonl

The file belongs into src/equipoise/fuzz/targets, where a campaign looks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from equipoise.fuzz.campaign.findings import sort_of
from equipoise.fuzz.trial import Verdict
from equipoise.fuzz.trial.size import Size
from equipoise.fuzz.trial.stored import Stored, read_lines, trial_of, write_line


def main(paths: Iterable[str]) -> None:
    """Write the smallest case of each sort, in the order of constraint, mode and outcome."""
    smallest: dict[tuple[object, ...], Stored] = {}
    for path in map(Path, paths):
        for line in read_lines(path.read_bytes(), str(path)):
            key = _key(line)
            other = smallest.get(key)
            if other is None or Size.of(trial_of(line)) < Size.of(trial_of(other)):
                smallest[key] = line
    for line in sorted(smallest.values(), key=_place):
        sys.stdout.buffer.write(write_line(line))


def _key(line: Stored) -> tuple[object, ...]:
    trial = trial_of(line)
    valid, broken = not trial.objections, trial.is_broken_at_first
    sort = sort_of(trial, Verdict(line.outcome, line.message, valid, broken))
    return (line.target, line.target_version, tuple(sorted(line.settings.items())), *sort)


def _place(line: Stored) -> tuple[object, ...]:
    settings = tuple(sorted(line.settings.items()))
    mode = line.case.continuous
    return (line.target, settings, line.constraint, mode, line.outcome, line.message, line.seed)


if __name__ == "__main__":
    main(sys.argv[1:])
