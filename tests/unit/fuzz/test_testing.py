"""A campaign in three lines of a test file."""

from __future__ import annotations

import pytest

from builders import coded, figures
from equipoise.adapters.targets.scheduler import Scheduler
from equipoise.errors import InvalidInput
from equipoise.fuzz.schedulers.planner import Planner
from equipoise.fuzz.testing import campaign
from equipoise.fuzz.trial import Trial


@campaign("Lonely", tests=100)
def test_our_planner_knows_what_lonely_means() -> Scheduler:
    return Planner()


class Blind:
    """It accepts everything."""

    def accepts(self, trial: Trial) -> bool:
        return True


def test_a_test_fails_with_the_smallest_case() -> None:
    @campaign("Root", tests=300, seed=5)
    def errs() -> Scheduler:
        return Blind()

    with pytest.raises(AssertionError) as caught:
        errs()
    said = str(caught.value).splitlines()
    assert said[0].startswith("Blind ")
    assert figures(said[0]) == [5]
    assert "introduced: Root, " in said[1]
    assert "  Root(v = v1)" in said
    assert [line for line in said if line.startswith("  0 to 1 s: migrate v1 from h")]


@pytest.fixture
def blindness() -> Blind:
    return Blind()


def test_fixtures_are_given(blindness: Blind) -> None:
    asked: list[Blind] = []

    @campaign("Root", tests=0)
    def asks(blindness: Blind) -> Scheduler:
        asked.append(blindness)
        return blindness

    asks(blindness)
    assert asked == [blindness]
    assert asks.__name__ == "asks"


@pytest.mark.parametrize(
    ("names", "group", "code", "key"),
    [
        ((), None, "empty-value", ""),
        ((), "nix", "unknown-name", "nix"),
        (("Nix",), None, "unknown-constraint", "Nix"),
    ],
)
def test_a_campaign_that_would_try_nothing_is_refused(
    names: tuple[str, ...], group: str | None, code: str, key: str
) -> None:
    with pytest.raises(InvalidInput, check=coded(code, key)):
        campaign(*names, group=group)
