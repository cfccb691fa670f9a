"""How often a controller is asked."""

from __future__ import annotations

import pytest

from equipoise.hosts.wake.bmc import Controlled
from equipoise.hosts.wake.port import Accepted, Cause, Clock, Power, Refusal, Seen
from equipoise.hosts.wake.talk.words import Answer, Question, Verb, as_document, from_document

QUESTION = Question(by="redfish", verb=Verb.STATE, user="root", password="s3cret", url="https://h")
ON = Seen(by="redfish", power=Power.ON)


def refusal(cause: Cause) -> Refusal:
    return Refusal(by="redfish", cause=cause, sentence="no")


class Script:
    """Gives answers one after the other, and notes what was asked and how long was paused."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.pauses: list[float] = []
        self.host = Controlled(
            question=QUESTION,
            clock=Clock(now=lambda: 0.0, pause=self.pauses.append),
            ask=self.answer,
        )

    def answer(self, question: Question) -> Answer:
        self.asked.append(question.verb)
        return self.answers.pop(0)


@pytest.mark.parametrize("cause", [Cause.UNREACHABLE, Cause.TROUBLE])
def test_what_may_pass_is_asked_again_after_a_pause(cause: Cause) -> None:
    script = Script(refusal(cause), refusal(cause), ON)
    assert script.host.state() == ON
    assert script.pauses == [2.0, 2.0]


def test_there_is_an_end_to_asking() -> None:
    script = Script(*[refusal(Cause.TROUBLE)] * 9)
    answer = script.host.wake()
    assert isinstance(answer, Refusal)
    assert answer.sentence == "no (asked 3 times)"
    assert script.asked == ["wake"] * 3


@pytest.mark.parametrize("cause", [Cause.DENIED, Cause.CERTIFICATE, Cause.UNSUPPORTED])
def test_what_will_not_change_is_asked_once(cause: Cause) -> None:
    script = Script(refusal(cause))
    assert script.host.sleep() == refusal(cause)
    assert not script.pauses


@pytest.mark.parametrize("answer", [ON, Accepted(by="ipmi", note="x"), refusal(Cause.DENIED)])
def test_an_answer_passes_between_the_processes(answer: Answer) -> None:
    assert from_document(as_document(answer)) == answer


def test_a_password_is_not_printed() -> None:
    assert "s3cret" not in repr(QUESTION)
    assert "s3cret" not in repr(Script().host)
