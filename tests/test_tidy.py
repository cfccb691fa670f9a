"""The rules of the code base, checked by a program. The checks are in ``tidy_checks.py``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import tidy_checks
from banned_words import BANNED, EXCEPTIONS, banned_words

ROOT = Path(__file__).parent.parent


def test_every_module_is_short_and_says_what_it_is() -> None:
    problems = [tidy_checks.module_problems(path) for path in tidy_checks.modules(ROOT)]
    assert [problem for some in problems for problem in some] == []


def test_every_package_says_what_it_is_for_and_holds_at_most_twelve_modules() -> None:
    assert list(tidy_checks.package_problems(ROOT)) == []


def test_a_class_name_has_one_meaning() -> None:
    assert list(tidy_checks.class_name_problems(ROOT)) == []


def test_a_loop_variable_names_the_thing() -> None:
    assert list(tidy_checks.loop_variable_problems(ROOT)) == []


def test_no_file_has_a_banned_word() -> None:
    assert list(tidy_checks.word_problems(ROOT)) == []


@pytest.mark.parametrize(
    "text", ["Nobody answers.", "def heed_event():", "class FaultTurmoil:", "a rule is told"]
)
def test_a_banned_word_is_found_in_prose_and_in_names(text: str) -> None:
    ((line, _, cure),) = banned_words(f"good\n{text}", "any.py")
    assert (line, cure in BANNED.values()) == (2, True)


@pytest.mark.parametrize("text", ["recommend a foreign host", "their history", "an amendment"])
def test_a_part_of_a_good_word_is_no_banned_word(text: str) -> None:
    assert list(banned_words(text, "any.py")) == []


def test_every_exception_from_the_banned_words_is_needed() -> None:
    for name, allowed in EXCEPTIONS.items():
        found = {word for _, word, _ in banned_words((ROOT / name).read_text(), "any.txt")}
        assert allowed <= found | {"*"}, name


def test_nothing_machine_specific_is_committed() -> None:
    assert list(tidy_checks.machine_path_problems(ROOT)) == []


def test_documents_point_to_files_that_exist() -> None:
    assert list(tidy_checks.link_problems(ROOT)) == []


def test_files_and_modules_that_documents_name_exist() -> None:
    assert list(tidy_checks.named_path_problems(ROOT)) == []


def test_the_table_of_moved_modules_names_present_ones() -> None:
    assert list(tidy_checks.renamed_module_problems(ROOT)) == []


def test_no_two_files_of_tests_have_the_same_name() -> None:
    """Else the one that is collected second is not read at all."""
    names = Counter(path.name for path in tidy_checks.tracked(ROOT, "tests/*test_*.py"))
    assert [name for name, times in names.items() if times > 1] == []


def test_decisions_are_numbered_without_gaps_and_have_three_parts() -> None:
    decisions = sorted((ROOT / "docs" / "adr").glob("*.md"))
    numbers = [int(path.name[:4]) for path in decisions]
    assert numbers == list(range(1, len(numbers) + 1))
    for path in decisions:
        text = path.read_text()
        for part in ("## Context", "## Decision", "## Consequences"):
            assert part in text, f"{path.name} lacks {part}"


def test_the_changelog_has_a_place_for_what_comes_next() -> None:
    assert "## Unreleased" in (ROOT / "CHANGELOG.md").read_text()
