"""A finding in a page: what is wrong, a picture of the case that shows it, and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from equipoise.fuzz.campaign import Finding
from equipoise.fuzz.campaign.placed import flag_of, particulars, wires
from equipoise.fuzz.campaign.words import call_of
from equipoise.fuzz.reports.account import Account
from equipoise.fuzz.reports.replay import replay_line
from equipoise.fuzz.trial import Trial
from equipoise.model.action import describe
from equipoise.model.host import Host
from equipoise.model.vm import Vm
from equipoise.model.words import counted
from equipoise.report.chart.markup import EMPTY, Markup, joined, tag, text
from equipoise.report.placement import course_of, draw, lines
from equipoise.report.placement.words import NO_HOST, seconds
from equipoise.report.section import listed
from equipoise.report.words import shortened

_ROWS_MAX: Final = 100
_WIDE_MAX: Final = 400
_WHY_MAX: Final = 2_000
_CALL_MAX: Final = 1_000
_REPLAY_MAX: Final = 20_000


def case_of_finding(account: Account, place: int, finding: Finding) -> Markup:
    """All about one finding."""
    trial, name = finding.shown, f"finding-{place}"
    course = course_of(trial.initial, trial.steps, trial.network)
    flag = flag_of(trial, course)
    title = f"{place}. {finding.constraint}: {finding.verdict.outcome}"
    return tag(
        "article",
        tag("h3", text(title)),
        tag("p", text(_facts(account, finding)), class_="facts"),
        tag("p", text(shortened(_sentence(finding.why), _WHY_MAX)), class_="why"),
        _constraint(trial),
        draw(course, name, flag),
        _letters(lines(course, None if flag is None else flag.period)),
        *_tables(trial),
        _replay(account, finding),
        id=name,
    )


def _facts(account: Account, finding: Finding) -> str:
    verdict = finding.verdict
    known = (
        finding.mode,
        verdict.harm,
        f"seen {counted(account.seen(finding), 'time')}",
        f"first by trial {finding.number:,}",
        "broken before the plan begins" if verdict.broken_at_first and not verdict.harm else "",
        f"looks like cause {finding.cause.letter}" if finding.cause.letter else "",
        "" if verdict.input_valid else "machines could not carry the plan out",
    )
    return "; ".join(one for one in known if one)


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _constraint(trial: Trial) -> Markup:
    declared = trial.demand.specification.constraints[trial.demand.name]
    call = tag("code", text(shortened(call_of(trial.demand), _CALL_MAX)))
    doc = text(f" {' '.join(declared.doc.split())}") if declared.doc else EMPTY
    return tag("p", call, doc, class_="about")


def _tables(trial: Trial) -> Iterator[Markup]:
    rows = [
        [text(one) for one in (seconds(step.start_ms), seconds(step.end_ms), describe(step.action))]
        for step in sorted(trial.steps, key=lambda one: (one.start_ms, one.end_ms))
    ]
    if rows:
        yield _table(("from s", "to s", "step"), rows, right=("from s", "to s"))
    else:
        yield tag("p", text("A plan without steps."), class_="note")
    hosts, vms = trial.initial.hosts.values(), trial.initial.vms.values()
    if hosts:
        yield _table(("host", "is", "has"), map(_host, hosts))
    if vms:
        yield _table(("VM", "is", "on", "has"), map(_vm, vms))
    if trial.network is not None:
        parts = [list(map(text, one)) for one in wires(trial.network)]
        yield _table(("link or switch", "between", "Mbit/s"), parts, right=("Mbit/s",))


def _table(
    columns: tuple[str, ...], rows: Iterable[list[Markup]], right: tuple[str, ...] = ()
) -> Markup:
    known = list(rows)
    left = len(known) - _ROWS_MAX
    more = tag("p", text(f"and {left:,} more"), class_="note") if left > 0 else EMPTY
    return joined([listed(columns, known[:_ROWS_MAX], right=right), more])


def _host(host: Host) -> list[Markup]:
    size = f"{host.cores} x {host.mhz_per_core:,} MHz, {host.memory_mib:,} MiB"
    return [text(one) for one in (host.id, host.state, _has(size, host))]


def _vm(vm: Vm) -> list[Markup]:
    size = f"{counted(vm.vcpus, 'vCPU')}, {vm.memory_mib:,} MiB"
    return [text(one) for one in (vm.id, vm.state, vm.host or NO_HOST, _has(size, vm))]


def _has(size: str, machine: Host | Vm) -> str:
    more = particulars(machine)
    return f"{size}, {more}" if more else size


def _letters(drawn: Sequence[str]) -> Markup:
    """The picture in letters, unless it is too wide for any screen."""
    if max(map(len, drawn)) > _WIDE_MAX:
        return EMPTY
    content = joined(joined([text(line), Markup("\n")]) for line in drawn)
    title = tag("summary", text("The same in letters"))
    return tag("details", title, tag("pre", content, tabindex=0))


def _replay(account: Account, finding: Finding) -> Markup:
    line = replay_line(finding, account)
    if len(line) > _REPLAY_MAX:
        words = "The case is too long for a line of a shell: equipoise fuzz --save writes it."
        return tag("p", text(words), class_="note")
    title = tag("p", text("To see it again, in a shell:"), class_="note")
    return joined([title, tag("pre", tag("code", text(line)), class_="copied", tabindex=0)])
