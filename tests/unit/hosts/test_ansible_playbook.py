"""A playbook is looked at before anything is done with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.errors import InvalidInput
from equipoise.hosts.ansible.playbook import check_playbooks

EXAMPLES = Path(__file__).parents[3] / "examples" / "upgrade" / "playbooks"
GOOD = '- hosts: "{{ equipoise_hosts }}"\n  tasks: []\n'


def said(folder: Path, text: str) -> str:
    path = folder / "book.yaml"
    path.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        check_playbooks([path])
    return str(caught.value)


def test_the_examples_are_for_the_hosts_of_a_batch() -> None:
    check_playbooks(EXAMPLES.glob("*.yaml"))


@pytest.mark.parametrize("hosts", ['"{{equipoise_hosts|default([])}}"', "localhost"])
def test_what_is_for_the_batch_may_also_act_here(hosts: str, tmp_path: Path) -> None:
    path = tmp_path / "book.yaml"
    path.write_text(f"{GOOD}- hosts: {hosts}\n  vars: {{secret: !vault x}}\n")
    check_playbooks([path])


@pytest.mark.parametrize("hosts", ["all", "h1", "[h1]", '"{{ equipoise_hosts }}:h9"', '"{{ x }}"'])
def test_a_playbook_for_other_hosts_is_refused(hosts: str, tmp_path: Path) -> None:
    message = said(tmp_path, f"{GOOD}- tasks: []\n  hosts: {hosts}\n")
    assert "book.yaml: line 4: a play is not for the hosts of the batch" in message
    assert '(hosts: "{{ equipoise_hosts }}")' in message


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is empty"),
        ("a: 1\n", "line 1: a playbook is a list of plays"),
        ("- x\n", "line 1: this is not a play"),
        ("- tasks: []\n", "line 1: a play does not say for which hosts it is"),
        ("- a: [\n", "line 2: this is not YAML"),
    ],
)
def test_what_is_no_playbook_is_said(text: str, what: str, tmp_path: Path) -> None:
    assert what in said(tmp_path, text)


def test_what_a_playbook_is_made_of_is_looked_at_too(tmp_path: Path) -> None:
    (tmp_path / "part.yaml").write_text("- hosts: all\n")
    assert "part.yaml: line 1" in said(tmp_path, GOOD + "- import_playbook: part.yaml\n")
    (tmp_path / "part.yaml").unlink()
    message = said(tmp_path, GOOD + "- import_playbook: part.yaml\n")
    assert "part.yaml: the playbook cannot be read: no such file or directory" in message
    (tmp_path / "part.yaml").write_text(GOOD + "- import_playbook: book.yaml\n")
    check_playbooks([tmp_path / "book.yaml"])
