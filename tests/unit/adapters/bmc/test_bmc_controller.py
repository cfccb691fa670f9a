"""How often a request is sent to a controller."""

from __future__ import annotations

import pytest

from equipoise.adapters.bmc.host_power import (
    BmcAnswer,
    BmcOperation,
    BmcPowerControl,
    BmcRequest,
    HostPower,
    PowerAccepted,
    PowerReading,
    PowerRefusal,
    PowerRefusalCause,
    WaitClock,
    answer_from_document,
    answer_to_document,
)

REQUEST = BmcRequest(
    by="redfish", operation=BmcOperation.STATE, user="root", password="s3cret", url="https://h"
)
ON = PowerReading(by="redfish", power=HostPower.ON)


def refusal(cause: PowerRefusalCause) -> PowerRefusal:
    return PowerRefusal(by="redfish", cause=cause, reason="no")


class Script:
    """A fake controller with fixed answers; it records the requests and the pauses."""

    def __init__(self, *answers: BmcAnswer) -> None:
        self.answers = list(answers)
        self.requests: list[str] = []
        self.pauses: list[float] = []
        self.host = BmcPowerControl(
            request=REQUEST,
            clock=WaitClock(now=lambda: 0.0, pause=self.pauses.append),
            send=self.answer,
        )

    def answer(self, request: BmcRequest) -> BmcAnswer:
        self.requests.append(request.operation)
        return self.answers.pop(0)


@pytest.mark.parametrize(
    "cause", [PowerRefusalCause.UNREACHABLE, PowerRefusalCause.CONTROLLER_ERROR]
)
def test_transient_failures_are_retried_after_a_pause(cause: PowerRefusalCause) -> None:
    script = Script(refusal(cause), refusal(cause), ON)
    assert script.host.state() == ON
    assert script.pauses == [2.0, 2.0]


def test_the_number_of_attempts_is_limited() -> None:
    script = Script(*[refusal(PowerRefusalCause.CONTROLLER_ERROR)] * 9)
    answer = script.host.wake()
    assert isinstance(answer, PowerRefusal)
    assert answer.reason == "no (3 attempts)"
    assert answer.cause.code == "controller-error"
    assert script.requests == ["wake"] * 3


@pytest.mark.parametrize(
    "cause",
    [PowerRefusalCause.DENIED, PowerRefusalCause.CERTIFICATE, PowerRefusalCause.UNSUPPORTED],
)
def test_permanent_failures_are_not_retried(cause: PowerRefusalCause) -> None:
    script = Script(refusal(cause))
    assert script.host.sleep() == refusal(cause)
    assert not script.pauses


@pytest.mark.parametrize(
    "answer", [ON, PowerAccepted(by="ipmi", note="x"), refusal(PowerRefusalCause.DENIED)]
)
def test_an_answer_passes_between_the_processes(answer: BmcAnswer) -> None:
    assert answer_from_document(answer_to_document(answer)) == answer


def test_a_password_is_not_printed() -> None:
    assert "s3cret" not in repr(REQUEST)
    assert "s3cret" not in repr(Script().host)
