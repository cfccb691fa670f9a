"""Playbooks are checked before a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.adapters.ansible.playbooks import check_playbooks
from equipoise.errors import InvalidInput

EXAMPLES = Path(__file__).parents[4] / "examples" / "upgrade" / "playbooks"
GOOD = '- hosts: "{{ equipoise_hosts }}"\n  tasks: []\n'


def message_for(folder: Path, text: str) -> str:
    path = folder / "book.yaml"
    path.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        check_playbooks([path])
    assert {problem.code for problem in caught.value.problems} == {"not-a-playbook"}
    return str(caught.value)


def test_the_examples_are_for_the_hosts_of_a_batch() -> None:
    check_playbooks(EXAMPLES.glob("*.yaml"))


@pytest.mark.parametrize("hosts", ['"{{equipoise_hosts|default([])}}"', "localhost"])
def test_a_playbook_for_the_batch_can_use_localhost(hosts: str, tmp_path: Path) -> None:
    path = tmp_path / "book.yaml"
    path.write_text(f"{GOOD}- hosts: {hosts}\n  vars: {{secret: !vault x}}\n")
    check_playbooks([path])


@pytest.mark.parametrize("hosts", ["all", "h1", "[h1]", '"{{ equipoise_hosts }}:h9"', '"{{ x }}"'])
def test_a_playbook_for_other_hosts_is_refused(hosts: str, tmp_path: Path) -> None:
    message = message_for(tmp_path, f"{GOOD}- tasks: []\n  hosts: {hosts}\n")
    assert "book.yaml: line 4: " in message
    assert '(hosts: "{{ equipoise_hosts }}")' in message


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "book.yaml: "),
        ("a: 1\n", "book.yaml: line 1: "),
        ("- x\n", "book.yaml: line 1: "),
        ("- tasks: []\n", "book.yaml: line 1: "),
        ("- a: [\n", "book.yaml: line 2: "),
    ],
)
def test_an_invalid_playbook_is_refused(text: str, place: str, tmp_path: Path) -> None:
    assert place in message_for(tmp_path, text)


def test_imported_playbooks_are_checked(tmp_path: Path) -> None:
    (tmp_path / "part.yaml").write_text("- hosts: all\n")
    assert "part.yaml: line 1" in message_for(tmp_path, GOOD + "- import_playbook: part.yaml\n")
    (tmp_path / "part.yaml").unlink()
    message = message_for(tmp_path, GOOD + "- import_playbook: part.yaml\n")
    assert f"{tmp_path / 'part.yaml'}: " in message
    (tmp_path / "part.yaml").write_text(GOOD + "- import_playbook: book.yaml\n")
    check_playbooks([tmp_path / "book.yaml"])
