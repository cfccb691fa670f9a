"""What came of each chore, from what was heard: silence and contradiction are never success."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.hosts.ansible.heard import Ending, Event, Heard, Kind
from equipoise.hosts.ansible.layout import LAST_WORD, groups_of
from equipoise.hosts.ansible.verdict import REASON_MAX, said, verdicts
from equipoise.hosts.ansible.words import Chore, Outcome, Verdict

UPGRADE = Path("upgrade.yaml")


def a_chore(host: str = "h1", playbook: Path = UPGRADE) -> Chore:
    return Chore(host=host, action="upgrade", playbook=playbook)


def an_event(kind: Kind, host: str = "h1", task: str = "install", **more: Any) -> Event:
    return Event(kind=kind, host=host, task=task, **more)


def the_end(host: str = "h1") -> Event:
    return an_event(Kind.OK, host, f"{LAST_WORD} upgrade.yaml")


def stats(**counts: dict[str, int]) -> dict[str, dict[str, int]]:
    return {"processed": {"h1": 1}, **counts}


def judged(heard: Heard, *secrets: str) -> Verdict:
    ((_entry, verdict),) = verdicts(groups_of({0: a_chore()}), heard, secrets)
    assert verdict is not None
    return verdict


def heard(*events: Event, ending: Ending = Ending.BY_ITSELF, **more: Any) -> Heard:
    return Heard(ending=ending, events=events, **{"stats": stats()} | more)


def test_who_said_the_last_word_is_done() -> None:
    verdict = judged(heard(an_event(Kind.OK, is_changed=True), the_end()))
    assert (verdict.outcome, verdict.reason, verdict.is_changed) == (Outcome.DONE, "", True)


def test_who_rescued_itself_and_went_on_is_done() -> None:
    found = heard(an_event(Kind.FAILED), the_end(), stats=stats(rescued={"h1": 1}))
    assert judged(found).outcome is Outcome.DONE


def test_who_was_rescued_and_failed_has_failed_for_the_first_reason() -> None:
    found = heard(
        an_event(Kind.FAILED, task="ask", result={"msg": "no answer", "stderr": "a\nrefused\n"}),
        an_event(Kind.FAILED, task="give up", result={"msg": "rolled back"}),
        stats=stats(rescued={"h1": 1}, failures={"h1": 1}),
    )
    verdict = judged(found)
    assert verdict.outcome is Outcome.FAILED
    assert verdict.reason == '"ask": no answer (refused); "give up": rolled back'


def test_a_failure_that_was_counted_outweighs_the_last_word() -> None:
    assert judged(heard(the_end(), stats=stats(failures={"h1": 1}))).outcome is Outcome.FAILED


def test_who_does_not_answer_is_not_among_the_failed() -> None:
    found = heard(
        an_event(Kind.UNREACHABLE, result={"msg": "refused"}), stats=stats(dark={"h1": 1})
    )
    assert (judged(found).outcome, judged(found).reason) == (
        Outcome.UNREACHABLE,
        '"install": refused',
    )
    assert judged(heard(the_end(), stats=stats(dark={"h1": 1}))).outcome is Outcome.UNREACHABLE


def test_who_does_not_answer_is_known_even_when_time_is_up() -> None:
    found = heard(an_event(Kind.UNREACHABLE), ending=Ending.TIME_UP, stats=None)
    assert judged(found).outcome is Outcome.UNREACHABLE


def test_the_last_word_counts_even_when_time_is_up_for_others() -> None:
    assert judged(heard(the_end(), ending=Ending.TIME_UP, stats=None)).outcome is Outcome.DONE


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (heard(ending=Ending.DIED, stats=None, tail="Killed"), "died; it had not begun; Killed"),
        (
            heard(an_event(Kind.STARTED), ending=Ending.TIME_UP, stats=None),
            'time was up before its playbook had ended; the last step was "install"',
        ),
        (heard(ending=Ending.INTERRUPTED, stats=None), "interrupted"),
        (heard(stats=None, rc=127, tail="not found"), "without a result (code 127); not found"),
    ],
)
def test_what_nobody_knows_is_unknown_and_says_why(found: Heard, reason: str) -> None:
    assert judged(found).outcome is Outcome.UNKNOWN
    assert reason in judged(found).reason


def test_a_host_that_its_own_play_left_out_is_unknown() -> None:
    groups = groups_of({0: a_chore("h1"), 1: a_chore("h2")})
    found = heard(an_event(Kind.FAILED, result={"msg": "no"}), stats=stats(failures={"h1": 1}))
    (_, first), (_, second) = verdicts(groups, found)
    assert first is not None
    assert second is not None
    assert (first.outcome, second.outcome) == (Outcome.FAILED, Outcome.UNKNOWN)
    assert second.reason == 'Ansible says nothing about this host, after "install" had failed on h1'


def test_a_playbook_that_never_began_is_to_be_run_again_and_only_then() -> None:
    groups = groups_of({0: a_chore("h1"), 1: a_chore("h2", Path("other.yaml"))})
    failed = an_event(Kind.FAILED)
    found = heard(failed, stats=stats(failures={"h1": 1}))
    assert [verdict is None for _, verdict in verdicts(groups, found)] == [False, True]
    late = heard(failed, ending=Ending.TIME_UP, stats=None)
    assert [verdict is None for _, verdict in verdicts(groups, late)] == [False, False]
    silent = heard(stats={})
    assert [verdict is None for _, verdict in verdicts(groups, silent)] == [False, False]


def test_a_failure_that_does_not_matter_is_not_told() -> None:
    found = heard(
        an_event(Kind.FAILED, task="first", is_ignored=True, result={"msg": "so what"}),
        an_event(Kind.FAILED, task="second", result={"msg": "bad"}),
        stats=stats(failures={"h1": 1}),
    )
    assert judged(found).reason == '"second": bad'


def test_of_a_loop_the_item_that_failed_is_told() -> None:
    found = heard(
        an_event(Kind.ITEM_FAILED, result={"msg": "no disk left"}),
        an_event(Kind.FAILED, result={"msg": "One or more items failed"}),
        stats=stats(failures={"h1": 1}),
    )
    assert judged(found).reason == '"install": no disk left'


def test_what_a_playbook_keeps_secret_stays_so() -> None:
    found = heard(
        an_event(Kind.FAILED, result={"censored": "...", "changed": False}),
        stats=stats(failures={"h1": 1}),
    )
    assert judged(found).reason == '"install": what it said is kept secret (no_log)'


@given(
    st.text(min_size=4, max_size=20), st.sampled_from((repr, str, lambda text: f"{text!r:.400}"))
)
def test_no_secret_is_ever_told(secret: str, spelt: Any) -> None:
    found = heard(
        an_event(Kind.FAILED, result={"msg": f"wrong: <{spelt(secret)}>"}),
        stats=stats(failures={"h1": 1}),
    )
    if secret.strip() and secret not in '"install": wrong: <***>':
        assert secret not in judged(found, secret).reason


def test_a_reason_is_one_line_of_bounded_length() -> None:
    assert said("a\n\tb \x1b[31mc\x1b[0m") == "a b c"
    assert len(said("x" * 10_000)) == REASON_MAX


@given(
    st.lists(
        st.builds(
            Event,
            kind=st.sampled_from(Kind),
            host=st.sampled_from(("h1", "h2")),
            task=st.sampled_from(("install", f"{LAST_WORD} upgrade.yaml")),
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
    st.sampled_from(Ending),
)
def test_only_the_last_word_makes_a_chore_done_and_everything_else_has_a_reason(
    events: tuple[Event, ...], counts: Any, ending: Ending
) -> None:
    found = Heard(ending=ending, events=events, stats=counts)
    for entry, verdict in verdicts(groups_of({0: a_chore("h1"), 1: a_chore("h2")}), found):
        if verdict is not None and verdict.outcome is Outcome.DONE:
            assert any(event.host == entry.name and event.kind is Kind.OK for event in events)
            assert not found.count("failures", entry.name)
            assert not found.count("dark", entry.name)
        elif verdict is not None:
            assert verdict.reason
