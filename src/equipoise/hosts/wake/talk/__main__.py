"""The process itself: reads the question, lets the right library ask it, prints the answer."""

from __future__ import annotations

import json
import signal
import sys
from contextlib import redirect_stdout
from typing import Final

from equipoise.hosts.wake.talk.words import Question, as_document

ORPHAN_S: Final = 60
"""Longer than any caller waits: who is still here then has been forgotten."""


def main() -> None:
    """Answer the one question."""
    signal.alarm(ORPHAN_S)
    question = Question(**json.load(sys.stdin))
    out = sys.stdout
    with redirect_stdout(sys.stderr):  # a library that prints must not spoil the answer
        if question.by == "redfish":
            from equipoise.hosts.wake.talk import redfish  # noqa: PLC0415

            answer = redfish.ask(question)
        else:
            from equipoise.hosts.wake.talk import ipmi  # noqa: PLC0415

            answer = ipmi.ask(question)
    json.dump(as_document(answer), out)


if __name__ == "__main__":
    main()
