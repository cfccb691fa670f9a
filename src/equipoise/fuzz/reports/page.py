"""The HTML page of a campaign: counts, findings, and the smallest case of each with a drawing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from equipoise.fuzz.campaign import Finding
from equipoise.fuzz.campaign.text_report import (
    constraint_call,
    first_violation_flag,
    network_rows,
    unusual_fields,
)
from equipoise.fuzz.reports.export import ANSWERED, CampaignAccount, replay_command
from equipoise.fuzz.trial import Trial, TrialOutcome
from equipoise.model.action import describe
from equipoise.model.host import Host
from equipoise.model.quantity import format_count
from equipoise.model.vm import Vm
from equipoise.report.chart.frame import empty_note, note_line
from equipoise.report.chart.markup import EMPTY, Markup, Section, concat, html_table, tag, text
from equipoise.report.format import format_duration, format_number, shorten_end, shorten_middle
from equipoise.report.placement import draw, placement_text, placement_timeline
from equipoise.report.placement.timeline import NO_HOST, format_seconds
from equipoise.report.run.page import html_document, page_header, tile

_ROWS_MAX: Final = 100
_WIDE_MAX: Final = 400
_LONG_WHY_MAX: Final = 2_000
_CALL_MAX: Final = 1_000
_REPLAY_MAX: Final = 20_000


def render_case(account: CampaignAccount, number: int, finding: Finding) -> Markup:
    """The article about one finding."""
    trial, name = finding.shown, f"finding-{number}"
    course = placement_timeline(trial.initial, trial.steps, trial.network)
    flag = first_violation_flag(trial, course)
    title = f"{number}. {finding.constraint}: {finding.verdict.outcome}"
    return tag(
        "article",
        tag("h3", text(title)),
        tag("p", text(_facts(account, finding)), class_="facts"),
        tag("p", text(shorten_end(_sentence(finding.why), _LONG_WHY_MAX)), class_="why"),
        _constraint(trial),
        draw(course, name, flag),
        _text_drawing(placement_text(course, None if flag is None else flag.period)),
        *_tables(trial),
        _replay(account, finding),
        id=name,
    )


def _facts(account: CampaignAccount, finding: Finding) -> str:
    verdict = finding.verdict
    facts = (
        finding.mode,
        verdict.harm,
        f"seen {format_count(account.seen(finding), 'time')}",
        f"first by trial {finding.number:,}",
        "violated before the plan starts" if verdict.broken_at_first and not verdict.harm else "",
        f"looks like cause {finding.cause.letter}" if finding.cause.letter else "",
        "" if verdict.input_valid else "the plan cannot be executed",
    )
    return "; ".join(filter(None, facts))


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _constraint(trial: Trial) -> Markup:
    declared = trial.demand.specification.constraints[trial.demand.name]
    call = tag("code", text(shorten_end(constraint_call(trial.demand), _CALL_MAX)))
    doc = text(f" {' '.join(declared.doc.split())}") if declared.doc else EMPTY
    return tag("p", call, doc, class_="about")


def _tables(trial: Trial) -> Iterator[Markup]:
    rows = [
        [
            text(cell)
            for cell in (
                format_seconds(step.start_ms),
                format_seconds(step.end_ms),
                describe(step.action),
            )
        ]
        for step in sorted(trial.steps, key=lambda step: (step.start_ms, step.end_ms))
    ]
    if rows:
        yield _table(("from s", "to s", "step"), rows, right=("from s", "to s"))
    else:
        yield note_line("A plan without steps.")
    hosts, vms = trial.initial.hosts.values(), trial.initial.vms.values()
    if hosts:
        yield _table(("host", "is", "has"), map(_host, hosts))
    if vms:
        yield _table(("VM", "is", "on", "has"), map(_vm, vms))
    if trial.network is not None:
        parts = [list(map(text, row)) for row in network_rows(trial.network)]
        yield _table(("link or switch", "between", "Mbit/s"), parts, right=("Mbit/s",))


def _table(
    columns: tuple[str, ...], rows: Iterable[list[Markup]], right: tuple[str, ...] = ()
) -> Markup:
    all_rows = list(rows)
    hidden = len(all_rows) - _ROWS_MAX
    more = note_line(f"and {hidden:,} more" if hidden > 0 else "")
    return concat([html_table(columns, all_rows[:_ROWS_MAX], right=right), more])


def _host(host: Host) -> list[Markup]:
    size = f"{host.cores} x {host.mhz_per_core:,} MHz, {host.memory_mib:,} MiB"
    return [text(cell) for cell in (host.id, host.state, _size_text(size, host))]


def _vm(vm: Vm) -> list[Markup]:
    size = f"{format_count(vm.vcpus, 'vCPU')}, {vm.memory_mib:,} MiB"
    return [text(cell) for cell in (vm.id, vm.state, vm.host or NO_HOST, _size_text(size, vm))]


def _size_text(size: str, machine: Host | Vm) -> str:
    more = unusual_fields(machine)
    return f"{size}, {more}" if more else size


def _text_drawing(drawn: Sequence[str]) -> Markup:
    """The drawing as text, unless it is too wide for a screen."""
    if max(map(len, drawn)) > _WIDE_MAX:
        return EMPTY
    content = concat(concat([text(line), Markup("\n")]) for line in drawn)
    title = tag("summary", text("The drawing as text"))
    return tag("details", title, tag("pre", content, tabindex=0))


def _replay(account: CampaignAccount, finding: Finding) -> Markup:
    line = replay_command(finding, account)
    if len(line) > _REPLAY_MAX:
        return note_line(
            "The case is too long for a shell command: equipoise fuzz --save stores it."
        )
    title = note_line("To reproduce it in a shell:")
    return concat([title, tag("pre", tag("code", text(line)), class_="copied", tabindex=0)])


CASES_MAX: Final = 200
"""The maximum number of drawn findings: browsers fail on larger pages."""
_NAME_MAX: Final = 80
_WHY_MAX: Final = 200
_OUTCOME_MEANINGS: Final = {
    TrialOutcome.AGREE: "same verdict as the specification",
    TrialOutcome.OVER: "correct plan rejected",
    TrialOutcome.UNDER: "wrong plan accepted or made",
    TrialOutcome.CRASH: "error in the scheduler",
    TrialOutcome.TIMEOUT: "time limit exceeded",
    TrialOutcome.UNSUPPORTED: "trial cannot be expressed",
}


def render_page(account: CampaignAccount) -> str:
    """Render the page of one campaign; it needs no network."""
    title = f"{shorten_middle(account.report.target, _NAME_MAX)}: campaign, Equipoise"
    sections = [_findings(account), *_cases(account), _constraints(account)]
    return html_document(title, _head(account), sections)


def _head(account: CampaignAccount) -> Markup:
    report = account.report
    version = f"version {account.version}; " if account.version else ""
    about = format_count(len(account.constraints), "constraint")
    ended = "; interrupted" if report.interrupted else ""
    facts = f"{version}seed {report.seed}; {about}; {format_duration(report.seconds)}{ended}"
    return page_header(report.target, facts, _tiles(account))


def _tiles(account: CampaignAccount) -> Iterator[Markup]:
    report = account.report
    yield tile("trials", f"{report.tests:,}", f"{format_number(report.tests_per_s)} a second")
    found = len(report.findings)
    note = "equal defects count once" if found else "this is no proof of correctness"
    yield tile("findings", f"{found:,}", note, "bad" if found else None)
    for outcome, means in _OUTCOME_MEANINGS.items():
        count = report.outcomes[outcome]
        if count or outcome is TrialOutcome.AGREE:
            look = "bad" if outcome.is_defect else None
            yield tile(outcome.value, f"{count:,}", means, look)


def _findings(account: CampaignAccount) -> Section:
    title, found = "Findings", account.report.findings
    if not found:
        why = f"No defect in {format_count(account.report.tests, 'trial')}."
        return Section("findings", title, "Defects of the scheduler.", empty_note(why))
    columns = ("finding", "class", "seen", "why")
    rows = [_row(account, number, finding) for number, finding in enumerate(found, start=1)]
    see = "Where the scheduler disagrees with the specification, in the order of discovery."
    return Section("findings", title, see, html_table(columns, rows, right=("seen",)))


def _row(account: CampaignAccount, number: int, finding: Finding) -> list[Markup]:
    name = text(f"{number}. {finding.constraint}")
    link = tag("a", name, href=f"#finding-{number}") if number <= CASES_MAX else name
    kind = tag("span", text(finding.verdict.outcome.value), class_="kind fault")
    first = concat([link, _note(finding.mode)])
    what = concat([kind, _note(finding.verdict.harm)])
    why = text(shorten_end(finding.why, _WHY_MAX))
    return [first, what, text(account.seen(finding)), why]


def _note(words: str) -> Markup:
    return tag("div", text(words), class_="note") if words else EMPTY


def _cases(account: CampaignAccount) -> list[Section]:
    found = account.report.findings
    if not found:
        return []
    shown = [
        render_case(account, number, finding)
        for number, finding in enumerate(found[:CASES_MAX], start=1)
    ]
    hidden = len(found) - len(shown)
    words = f"The first {CASES_MAX} findings are shown; there are {hidden:,} more."
    note = note_line(words if hidden else "")
    see = "Each finding with a minimal case: without any part of it, the defect disappears."
    return [Section("cases", "Smallest cases", see, concat([note, *shown]))]


def _constraints(account: CampaignAccount) -> Section:
    columns = ("constraint", "trials", "agree", "over", "under", "crash", "no answer")
    rows = []
    for name in account.constraints:
        answers = [account.count(name, outcome) for outcome in ANSWERED]
        trials = account.count(name)
        cells = (trials, *answers, trials - sum(answers))
        rows.append([text(name), *(text(f"{cell:,}" if cell else "-") for cell in cells)])
    see = "The outcomes of the trials of each constraint."
    return Section("constraints", "Constraints", see, html_table(columns, rows, right=columns[1:]))
