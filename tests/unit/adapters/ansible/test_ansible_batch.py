"""The result of each job, from the events of a run: a missing or contradicted end is a failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.adapters.ansible.batch import REASON_MAX, job_results, one_line
from equipoise.adapters.ansible.job import (
    JobOutcome,
    JobResult,
    PlaybookJob,
    RunEnding,
    RunLog,
    RunnerEvent,
    RunnerEventKind,
)
from equipoise.adapters.ansible.process import END_MARKER, groups_of

UPGRADE = Path("upgrade.yaml")


def a_job(host: str = "h1", playbook: Path = UPGRADE) -> PlaybookJob:
    return PlaybookJob(host=host, action="upgrade", playbook=playbook)


def an_event(
    kind: RunnerEventKind, host: str = "h1", task: str = "install", **more: Any
) -> RunnerEvent:
    return RunnerEvent(kind=kind, host=host, task=task, **more)


def the_end(host: str = "h1") -> RunnerEvent:
    return an_event(RunnerEventKind.OK, host, f"{END_MARKER} upgrade.yaml")


def stats(**counts: dict[str, int]) -> dict[str, dict[str, int]]:
    return {"processed": {"h1": 1}, **counts}


def result_of(run_log: RunLog, *secrets: str) -> JobResult:
    ((_entry, result),) = job_results(groups_of({0: a_job()}), run_log, secrets)
    assert result is not None
    return result


def a_run(*events: RunnerEvent, ending: RunEnding = RunEnding.BY_ITSELF, **more: Any) -> RunLog:
    return RunLog(ending=ending, events=events, **{"stats": stats()} | more)


def test_a_job_with_its_end_marker_is_done() -> None:
    result = result_of(a_run(an_event(RunnerEventKind.OK, is_changed=True), the_end()))
    assert (result.outcome, result.reason, result.is_changed) == (JobOutcome.DONE, "", True)


def test_a_rescued_job_that_reaches_the_end_is_done() -> None:
    run_log = a_run(an_event(RunnerEventKind.FAILED), the_end(), stats=stats(rescued={"h1": 1}))
    assert result_of(run_log).outcome is JobOutcome.DONE


def test_a_rescued_job_that_fails_has_the_first_reason() -> None:
    run_log = a_run(
        an_event(
            RunnerEventKind.FAILED,
            task="ask",
            result={"msg": "no answer", "stderr": "a\nrefused\n"},
        ),
        an_event(RunnerEventKind.FAILED, task="give up", result={"msg": "rolled back"}),
        stats=stats(rescued={"h1": 1}, failures={"h1": 1}),
    )
    result = result_of(run_log)
    assert result.outcome is JobOutcome.FAILED
    assert result.reason == '"ask": no answer (refused); "give up": rolled back'


def test_a_counted_failure_outweighs_the_end_marker() -> None:
    assert result_of(a_run(the_end(), stats=stats(failures={"h1": 1}))).outcome is JobOutcome.FAILED


def test_an_unreachable_host_is_not_failed() -> None:
    run_log = a_run(
        an_event(RunnerEventKind.UNREACHABLE, result={"msg": "refused"}),
        stats=stats(dark={"h1": 1}),
    )
    assert (result_of(run_log).outcome, result_of(run_log).reason) == (
        JobOutcome.UNREACHABLE,
        '"install": refused',
    )
    assert (
        result_of(a_run(the_end(), stats=stats(dark={"h1": 1}))).outcome is JobOutcome.UNREACHABLE
    )


def test_an_unreachable_host_is_known_despite_a_timeout() -> None:
    run_log = a_run(an_event(RunnerEventKind.UNREACHABLE), ending=RunEnding.TIME_UP, stats=None)
    assert result_of(run_log).outcome is JobOutcome.UNREACHABLE


def test_the_end_marker_counts_despite_a_timeout() -> None:
    assert (
        result_of(a_run(the_end(), ending=RunEnding.TIME_UP, stats=None)).outcome is JobOutcome.DONE
    )


UNFINISHED: list[tuple[RunLog, tuple[str, ...]]] = [
    (a_run(ending=RunEnding.DIED, stats=None, tail="Killed"), ("Killed",)),
    (
        a_run(
            an_event(RunnerEventKind.STARTED), ending=RunEnding.TIME_UP, stats=None, tail="hidden"
        ),
        ('"install"',),
    ),
    (a_run(ending=RunEnding.INTERRUPTED, stats=None), ()),
    (a_run(stats=None, rc=127, tail="not run_log"), ("127", "not run_log")),
]


@pytest.mark.parametrize(("run_log", "figures"), UNFINISHED)
def test_an_unknown_outcome_has_a_reason(run_log: RunLog, figures: tuple[str, ...]) -> None:
    result = result_of(run_log)
    assert (result.outcome, result.outcome.code) == (JobOutcome.UNKNOWN, "outcome-unknown")
    assert all(figure in result.reason for figure in figures)
    assert "hidden" not in result.reason


def test_each_end_of_a_run_has_its_own_reason() -> None:
    assert len({result_of(run_log).reason for run_log, _ in UNFINISHED}) == len(UNFINISHED)


def test_a_host_that_its_play_skipped_is_unknown() -> None:
    groups = groups_of({0: a_job("h1"), 1: a_job("h2")})
    run_log = a_run(
        an_event(RunnerEventKind.FAILED, result={"msg": "no"}), stats=stats(failures={"h1": 1})
    )
    (_, first), (_, second) = job_results(groups, run_log)
    assert first is not None
    assert second is not None
    assert (first.outcome, second.outcome) == (JobOutcome.FAILED, JobOutcome.UNKNOWN)
    assert '"install"' in second.reason
    assert "h1" in second.reason


def test_only_a_playbook_that_never_started_runs_again() -> None:
    groups = groups_of({0: a_job("h1"), 1: a_job("h2", Path("other.yaml"))})
    failed = an_event(RunnerEventKind.FAILED)
    run_log = a_run(failed, stats=stats(failures={"h1": 1}))
    assert [result is None for _, result in job_results(groups, run_log)] == [False, True]
    late = a_run(failed, ending=RunEnding.TIME_UP, stats=None)
    assert [result is None for _, result in job_results(groups, late)] == [False, False]
    silent = a_run(stats={})
    assert [result is None for _, result in job_results(groups, silent)] == [False, False]


def test_an_ignored_failure_is_not_in_the_reason() -> None:
    run_log = a_run(
        an_event(RunnerEventKind.FAILED, task="first", is_ignored=True, result={"msg": "so what"}),
        an_event(RunnerEventKind.FAILED, task="second", result={"msg": "bad"}),
        stats=stats(failures={"h1": 1}),
    )
    assert result_of(run_log).reason == '"second": bad'


def test_the_reason_of_a_loop_is_its_failed_item() -> None:
    run_log = a_run(
        an_event(RunnerEventKind.ITEM_FAILED, result={"msg": "no disk left"}),
        an_event(RunnerEventKind.FAILED, result={"msg": "One or more items failed"}),
        stats=stats(failures={"h1": 1}),
    )
    assert result_of(run_log).reason == '"install": no disk left'


def test_a_no_log_message_stays_hidden() -> None:
    run_log = a_run(
        an_event(RunnerEventKind.FAILED, result={"censored": "...", "changed": False}),
        stats=stats(failures={"h1": 1}),
    )
    assert result_of(run_log).reason == '"install": the message is hidden (no_log)'


@given(
    st.text(min_size=4, max_size=20), st.sampled_from((repr, str, lambda text: f"{text!r:.400}"))
)
def test_no_reason_contains_a_secret(secret: str, spelt: Any) -> None:
    run_log = a_run(
        an_event(RunnerEventKind.FAILED, result={"msg": f"wrong: <{spelt(secret)}>"}),
        stats=stats(failures={"h1": 1}),
    )
    if secret.strip() and secret not in '"install": wrong: <***>':
        assert secret not in result_of(run_log, secret).reason


def test_a_reason_is_one_line_of_bounded_length() -> None:
    assert one_line("a\n\tb \x1b[31mc\x1b[0m") == "a b c"
    assert len(one_line("x" * 10_000)) == REASON_MAX


@given(
    st.lists(
        st.builds(
            RunnerEvent,
            kind=st.sampled_from(RunnerEventKind),
            host=st.sampled_from(("h1", "h2")),
            task=st.sampled_from(("install", f"{END_MARKER} upgrade.yaml")),
        ),
        max_size=6,
    ).map(tuple),
    st.none()
    | st.fixed_dictionaries(
        {
            word: st.dictionaries(st.sampled_from(("h1", "h2")), st.integers(1, 2))
            for word in ("processed", "failures", "dark", "rescued", "changed")
        }
    ),
    st.sampled_from(RunEnding),
)
def test_only_the_end_marker_makes_a_job_done(
    events: tuple[RunnerEvent, ...], counts: Any, ending: RunEnding
) -> None:
    run_log = RunLog(ending=ending, events=events, stats=counts)
    for entry, result in job_results(groups_of({0: a_job("h1"), 1: a_job("h2")}), run_log):
        if result is not None and result.outcome is JobOutcome.DONE:
            assert any(
                event.host == entry.name and event.kind is RunnerEventKind.OK for event in events
            )
            assert not run_log.count("failures", entry.name)
            assert not run_log.count("dark", entry.name)
        elif result is not None:
            assert result.reason
