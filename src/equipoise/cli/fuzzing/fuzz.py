"""``equipoise fuzz``: find where a scheduler disagrees with the specification."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from equipoise.cli.answer import console, plain, print_json, progress_console, table
from equipoise.cli.fuzzing.document import document
from equipoise.cli.fuzzing.replay import replayed
from equipoise.cli.fuzzing.wishes import Order, Wishes, order_of
from equipoise.cli.read import read_bytes
from equipoise.cli.write import check_writable, write_file
from equipoise.errors import Bug, Interrupted, InvalidInput, Problem
from equipoise.fuzz.campaign import Report
from equipoise.fuzz.campaign.crew import crew_of, processes_in
from equipoise.fuzz.campaign.familiar import Familiar, familiar
from equipoise.fuzz.campaign.stop import interruptible
from equipoise.fuzz.campaign.words import told
from equipoise.fuzz.registry import registered
from equipoise.fuzz.reports import Account
from equipoise.fuzz.reports.replay import stored_of
from equipoise.fuzz.schedulers.known import Known
from equipoise.fuzz.trial import OracleBroke, Outcome
from equipoise.fuzz.trial.stored import Stored, case_of, read_lines, text_of, write_line
from equipoise.model.words import counted

BROKEN = Path("equipoise-oracle.jsonl")
"""Where a trial goes that the specification cannot judge, if nobody has said where to save."""


def run(target: str, wishes: Wishes, *, as_json: bool) -> int:
    """Run a campaign, or the trials of a file again; 1 if there are defects that are not known."""
    if wishes.save is not None:
        check_writable(wishes.save)
    wishes.files.check()
    processes_in(wishes.workers)
    order = order_of(target, wishes)
    with ExitStack() as stack:
        if wishes.replay is None:  # who judges cases again closes whom it has asked
            stack.callback(_close, order)
        with interruptible(_tell_that_it_is_heard):
            order, report, known = _carried_out(order, wishes, quiet=as_json)
    unusual = {name: value for name, value in order.settings.items() if not _is_usual(order, name)}
    if wishes.save is not None:
        lines = (
            write_line(
                stored_of(one, report).but(settings=unusual, target_version=order.known.version)
            )
            for one in report.findings
        )
        write_file(wishes.save, b"".join(lines))
    asked = order.campaign.constraints if wishes.replay is None else ()
    wishes.files.write(Account(report, asked, order.known.version, unusual))
    if as_json:
        print_json(document(report, order.known, order.settings, known))
    else:
        _show(report, known)
    if report.interrupted:
        raise Interrupted
    return 1 if _fails(report, known) else 0


def _carried_out(
    order: Order, wishes: Wishes, *, quiet: bool
) -> tuple[Order, Report, Familiar | None]:
    try:
        if wishes.replay is not None:
            stored = read_lines(read_bytes(wishes.replay), str(wishes.replay))
            return *replayed(order, stored, save=wishes.save is not None), None
        known = None if order.familiar is None else familiar(order.make(), order.familiar)
        if known is None and order.known.version:
            _tell_that_nothing_is_kept(order.known)
        with crew_of(wishes.workers) as crew:
            return order, order.campaign.run(None if quiet else _tell_progress, crew), known
    except OracleBroke as error:
        path = wishes.save or BROKEN
        demand = error.trial.demand
        kept = Stored(
            target=order.known.name, constraint=demand.name, outcome=Outcome.CRASH,
            message=error.why, seed=wishes.seed, specification=text_of(demand),
            case=case_of(error.trial),
        )  # fmt: skip
        write_file(path, write_line(kept))
        if demand.library_name is None:
            raise _own_fault(error, path) from error
        raise Bug(f"{error}; the case is in {path}: please tell us of it") from error


def _own_fault(error: OracleBroke, path: Path) -> InvalidInput:
    """What is wrong with a constraint of somebody's own that cannot judge a trial."""
    what = f"cannot judge every trial: {error.why}"
    cure = f"the case is in {path}"
    return InvalidInput("--spec", [Problem(key=error.trial.demand.name, what=what, cure=cure)])


def _close(order: Order) -> None:
    close = getattr(order.make(), "close", None)
    if close is not None:
        close()


def _is_usual(order: Order, name: str) -> bool:
    return order.settings[name] == order.known.settings[name][0]


def _fails(report: Report, known: Familiar | None) -> bool:
    if known is None:
        return report.defects > 0
    return bool(known.new(report) or known.gone)


def run_list(*, as_json: bool) -> int:
    """List the schedulers that can be put to the test, and what each supports."""
    found = list(registered())
    if as_json:
        print_json([_listed(one) for one in found])
        return 0
    rows = table("target", "what it is", "is asked", "constraints", "settings")
    for one in found:
        missing = one.missing()
        rows.add_row(
            one.name,
            plain(
                f"{one.about} {one.version}".strip() + (f" (missing: {missing})" if missing else "")
            ),
            one.question,
            str(len(one.constraints)) if one.constraints else "all",
            plain(_settings(one)),
        )
    console().print(rows)
    return 0


def _settings(known: Known) -> str:
    return " ".join(f"{name}={'|'.join(values)}" for name, values in known.settings.items())


def _listed(known: Known) -> dict[str, object]:
    return {
        "target": known.name,
        "about": known.about,
        "version": known.version,
        "question": known.question,
        "constraints": list(known.constraints),
        "settings": {name: list(values) for name, values in known.settings.items()},
        "missing": known.missing(),
    }


def _tell_progress(report: Report) -> None:
    defects = counted(report.defects, "defect")
    line = f"{report.tests:,} trials, {report.tests_per_s:,.0f} a second, {defects}"
    progress_console().print(line)


def _tell_that_it_is_heard() -> None:
    # Not by any stream: a signal may come in the middle of a line, and streams take no second one.
    os.write(2, b"interrupted: telling what was found so far; Ctrl-C again ends at once\n")


def _tell_that_nothing_is_kept(known: Known) -> None:
    line = f"no findings of {known.name} {known.version} are kept: every defect counts"
    progress_console().print(plain(line))


def _show(report: Report, known: Familiar | None) -> None:
    out = console()
    others = {
        outcome.value: count for outcome, count in report.outcomes.items() if outcome != "agree"
    }
    rest = "".join(f", {count:,} {word}" for word, count in sorted(others.items()))
    speed = f"{counted(report.tests, 'trial')}, {report.tests_per_s:,.0f} a second"
    ended = "; interrupted" if report.interrupted else ""
    out.print(f"{plain(report.target)}: {speed}; {report.agreed:,} agree{rest}{ended}")
    for line in told(report):
        if not line.startswith(" "):
            out.print()
        out.print(line, markup=False, soft_wrap=True)
    if known is not None:
        for line in _compared(report, known):
            out.print(line, markup=False, soft_wrap=True)


def _compared(report: Report, known: Familiar) -> Sequence[str]:
    new = known.new(report)
    found = counted(len(report.findings), "finding")
    gone = counted(len(known.gone), "known one")
    lines = ["", f"{found}, of which {len(new)} not known before; {gone} not seen any more"]
    lines += [f"new: {one.verdict.outcome}, {one.constraint}, {one.mode}" for one in new]
    lines += [f"gone: {one.outcome}, {one.constraint}" for one in known.gone]
    return lines
