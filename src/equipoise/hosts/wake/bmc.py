"""A host with a management controller (BMC), asked with patience but not for ever.

Controllers are flaky: each question has a time limit, is asked a few times with a pause, and not
again after an answer that would only be repeated. A wrong password, above all, is tried once:
controllers lock out who insists.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Final

from equipoise.hosts.wake.port import Accepted, Cause, Clock, Refusal, Seen
from equipoise.hosts.wake.talk.words import Answer, Question, Verb, from_document

LIMIT_S: Final = {"redfish": 30.0, "ipmi": 10.0}
"""How long one question may take; its steps have shorter limits of their own."""
ATTEMPTS: Final = 3
PAUSE_S: Final = 2.0

Ask = Callable[[Question], Answer]

_PASSING: Final = frozenset((Cause.UNREACHABLE, Cause.TROUBLE))
"""What may be over in a moment."""


def ask(question: Question, limit_s: float | None = None) -> Answer:
    """Ask once, in a process of its own that is ended when its time is up."""
    limit_s = LIMIT_S[question.by] if limit_s is None else limit_s
    line = (sys.executable, "-P", "-m", "equipoise.hosts.wake.talk")
    try:
        done = subprocess.run(
            line,
            input=json.dumps(asdict(question)),  # not on the command line, where all can read it
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        what = f"did not come to an end within {limit_s:g} s"
        if question.by == "ipmi":
            what += "; some controllers are silent towards a user whom they do not know"
        return Refusal(by=question.by, cause=Cause.UNREACHABLE, sentence=what)
    except OSError as error:  # no room for another process
        what = f"cannot be asked from here: {error.strerror}"
        return Refusal(by=question.by, cause=Cause.TROUBLE, sentence=what)
    if done.returncode < 0:
        what = f"the process that asks was ended from outside (signal {-done.returncode})"
        return Refusal(by=question.by, cause=Cause.TROUBLE, sentence=what)
    assert done.returncode == 0, f"the process that asks has failed:\n{done.stderr}"
    return from_document(json.loads(done.stdout))


@dataclass(frozen=True, slots=True, kw_only=True)
class Controlled:
    """A host that is reached by its controller, by Redfish or IPMI."""

    question: Question
    """Who is asked; the verb is put in."""
    clock: Clock
    ask: Ask = ask
    attempts: int = ATTEMPTS
    pause_s: float = PAUSE_S

    def wake(self) -> Accepted | Refusal:
        """Ask it to switch on."""
        answer = self._insist(Verb.WAKE)
        assert not isinstance(answer, Seen)
        return answer

    def sleep(self) -> Accepted | Refusal:
        """Ask it to shut down."""
        answer = self._insist(Verb.SLEEP)
        assert not isinstance(answer, Seen)
        return answer

    def state(self) -> Seen | Refusal:
        """Ask whether it has power."""
        answer = self._insist(Verb.STATE)
        assert not isinstance(answer, Accepted)
        return answer

    def _insist(self, verb: Verb) -> Answer:
        question = replace(self.question, verb=verb)
        answer = self.ask(question)
        for _again in range(self.attempts - 1):
            if not isinstance(answer, Refusal) or answer.cause not in _PASSING:
                return answer
            self.clock.pause(self.pause_s)
            # Every attempt looks at the power first: one that came through unnoticed is no harm.
            answer = self.ask(question)
        if isinstance(answer, Refusal) and answer.cause in _PASSING and self.attempts > 1:
            return replace(answer, sentence=f"{answer.sentence} (asked {self.attempts} times)")
        return answer
