"""Commands as operators write them, and commands that several processes post at once."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from threading import Thread

import pytest

from equipoise.cli.upgrade.command_queue import QUEUE_JOURNAL, parse_command, post
from equipoise.errors import InvalidInput
from equipoise.model.upgrade.event import UpgradeCommanded
from equipoise.model.upgrade.request import CommandKind, SetId, UpgradeCommand
from equipoise.store import open_journal
from equipoise.upgrade.requests.commands import command_text


@pytest.mark.parametrize(
    ("text", "cure", "code"),
    [
        ("undo", "undo:SET", "syntax-error"),
        ("undo:", "undo:SET", "syntax-error"),
        ("undo:a b", "undo:SET", "syntax-error"),
        ("stop", "one of undo, cancel", "syntax-error"),
        ("priority:a", "priority:SET=NUMBER", "syntax-error"),
        ("priority:a=many", "a whole number", "syntax-error"),
        ("priority:a=2000", "from -1000 to 1000", "out-of-range"),
        ("pause:a=1", "a number for no other order", "syntax-error"),
    ],
)
def test_what_is_no_command_is_refused_with_a_cure(text: str, cure: str, code: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        parse_command(text)
    (problem,) = raised.value.problems
    assert (problem.code, cure in problem.cure, repr(text) in problem.what) == (code, True, True)


@pytest.mark.parametrize("text", ["pause", "pause:a", "undo:a/b", "priority:a=-5", "approve:a"])
def test_a_command_is_printed_as_it_was_given(text: str) -> None:
    assert command_text(parse_command(text)) == text


def test_orders_that_are_posted_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    open_list = partial(open_journal, str(tmp_path / "db"), journal=QUEUE_JOURNAL)
    numbers: list[int | None] = []

    def order(place: int) -> None:
        command = UpgradeCommand(order=CommandKind.PRIORITY, set=SetId("a"), priority=place)
        told = post(open_list, [UpgradeCommanded(at_ms=0, command=command)] * 2)
        numbers.extend(event.number for event in told)

    threads = [Thread(target=order, args=(place,)) for place in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for number in numbers if number is not None) == list(range(1, 13))
    with open_list() as listed:
        given = [event.command.priority for event in listed.events()]  # type: ignore[union-attr]
    assert given[::2] == given[1::2], "each post is kept together"
