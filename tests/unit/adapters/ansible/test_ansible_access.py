"""The access file of upgrades: its keys and its problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import coded, suggested
from equipoise.adapters.access_file import FileContext
from equipoise.adapters.ansible.access import (
    AnsibleAccess,
    AnsibleHostAccess,
    TaskPlaybooks,
    connections_to,
    parse_access,
    run_options_of,
    with_defaults,
)
from equipoise.errors import InvalidInput
from equipoise.files import to_yaml
from equipoise.model.quantity import HostId

EXAMPLE = Path(__file__).parents[4] / "examples" / "upgrade" / "access.yaml"

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1)
VARIABLES = st.from_regex(r"v_[a-z]{1,5}", fullmatch=True)
HOSTS = st.builds(
    AnsibleHostAccess,
    port=st.none() | st.integers(1, 65535),
    user=st.none() | WORDS,
    key_file=st.none() | WORDS,
    python=st.none() | WORDS,
    become=st.none() | st.booleans(),
    variables=st.dictionaries(
        VARIABLES, WORDS | st.integers(-9, 9) | st.booleans() | st.floats(-1.5, 1.5), max_size=3
    ),
    secrets=st.dictionaries(
        st.from_regex(r"s_[a-z]{1,5}", fullmatch=True),
        st.from_regex(r"[A-Z_]{1,9}", fullmatch=True),
        max_size=2,
    ),
)
ACCESSES = st.builds(
    AnsibleAccess,
    hosts=st.dictionaries(
        st.from_regex(r"[A-Za-z0-9_.:@/+-]{1,12}", fullmatch=True).map(HostId),
        HOSTS,
        min_size=1,
        max_size=3,
    ),
    defaults=HOSTS,
    known_hosts=st.none() | WORDS,
    connect_timeout_s=st.integers(1, 99),
    timeout_s=st.integers(1, 999),
    task_playbooks=st.builds(TaskPlaybooks, isolate=st.none() | WORDS, move=st.none() | WORDS),
)


def problems(text: str) -> str:
    with pytest.raises(InvalidInput) as caught:
        parse_access(text.encode(), "access.yaml")
    return str(caught.value)


def around(folder: Path, **environ: str) -> FileContext:
    return FileContext(source="access.yaml", folder=folder, environ=environ)


@given(ACCESSES)
def test_a_written_file_is_read_back(access: AnsibleAccess) -> None:
    assert parse_access(to_yaml(cast(Any, access)).encode(), "access.yaml") == access


def test_the_example_has_the_expected_connections() -> None:
    access = parse_access(EXAMPLE.read_bytes(), str(EXAMPLE))
    connections = connections_to(access, ["h1", "h3"], around(EXAMPLE.parent, H3_SUDO="sesame"))
    assert (connections["h1"].user, connections["h1"].port, connections["h1"].is_root_needed) == (
        "root",
        22,
        False,
    )
    assert (connections["h3"].user, connections["h3"].port, connections["h3"].is_root_needed) == (
        "operator",
        2222,
        True,
    )
    assert connections["h3"].variables == {"greeter_home": "/opt/greeter"}
    assert connections["h3"].secrets == {"ansible_become_password": "sesame"}
    assert "sesame" not in repr(connections["h3"])


def test_a_host_overrides_the_defaults() -> None:
    access = parse_access(
        b"defaults: {port: 5, become: true, variables: {a: 1, b: 2}}\n"
        b"hosts:\n  h1: {become: false, variables: {b: 3}}\n",
        "access.yaml",
    )
    host = with_defaults(access, access.hosts[HostId("h1")])
    assert (host.port, host.become, host.variables) == (5, False, {"a": 1, "b": 3})


VARIABLE = "hosts:\n  h1:\n    variables: {{{}: a}}\n"
VARIABLE_KEY = "hosts.h1.variables.{}"


@pytest.mark.parametrize(
    ("text", "line", "key", "code"),
    [
        ("hosts: {}\n", 1, "hosts", "empty-value"),
        ("hosts:\n  h1: {adress: a}\n", 2, "hosts.h1.adress", "unknown-key"),
        ("hosts:\n  h1: {port: 0}\n", 2, "hosts.h1.port", "out-of-range"),
        ("hosts:\n  h1:\n    variables: {x: [1]}\n", 3, "hosts.h1.variables.x", "wrong-type"),
        (VARIABLE.format("ansible_host"), 3, VARIABLE_KEY.format("ansible_host"), "reserved-word"),
        (
            VARIABLE.format("ansible_ssh_args"),
            3,
            VARIABLE_KEY.format("ansible_ssh_args"),
            "reserved-word",
        ),
        (VARIABLE.format("equipoise_to"), 3, VARIABLE_KEY.format("equipoise_to"), "reserved-word"),
        (VARIABLE.format("db-name"), 3, 'hosts.h1.variables["db-name"]', "invalid-name"),
        (
            "hosts:\n  h1:\n    secrets: {a: A}\n    variables: {a: 1}\n",
            3,
            "hosts.h1.secrets.a",
            "duplicate-name",
        ),
        ("defaults: {address: a}\nhosts:\n  h1: {}\n", 1, "defaults.address", "duplicate-name"),
        ("hosts:\n  h1: {address: h2}\n  h2: {}\n", 3, "hosts.h2", "duplicate-name"),
        (
            "task_playbooks: {sleep: x}\nhosts:\n  h1: {}\n",
            1,
            "task_playbooks.sleep",
            "unknown-key",
        ),
        ("hosts:\n  h1: {}\nerrands: {sleep: x}\n", 3, "task_playbooks.sleep", "unknown-key"),
    ],
)
def test_problems_are_reported_with_their_line(text: str, line: int, key: str, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_access(text.encode(), "access.yaml")
    assert [(problem.line, problem.key, problem.code) for problem in caught.value.problems] == [
        (line, key, code)
    ]


def test_cures_name_the_key_of_the_file() -> None:
    assert suggested(problems("hosts:\n  h1: {adress: a}\n")) == "address"
    assert "use address" in problems(VARIABLE.format("ansible_host"))


def test_a_file_with_the_old_key_of_task_playbooks_is_still_read() -> None:
    old = b"hosts:\n  h1: {}\nerrands: {isolate: isolate.yaml, move: move.yaml}\n"
    access = parse_access(old, "access.yaml")
    assert access.task_playbooks == TaskPlaybooks(isolate="isolate.yaml", move="move.yaml")
    assert parse_access(old.replace(b"errands", b"task_playbooks"), "access.yaml") == access
    assert "errands" in problems(old.decode() + "task_playbooks: {}\n")


def test_a_secret_in_the_file_is_refused_and_not_shown() -> None:
    for text in (
        "hosts:\n  h1:\n    variables: {db_password: sesame-1}\n",
        "hosts:\n  h1:\n    secrets: {token: sesame-1}\n",
    ):
        assert "sesame" not in problems(text)


def test_all_missing_files_and_variables_are_reported_at_once(tmp_path: Path) -> None:
    access = parse_access(
        b"known_hosts: known\nhosts:\n  h1: {key_file: id, secrets: {a: NO_A, b: NO_B}}\n",
        "access.yaml",
    )
    with pytest.raises(InvalidInput) as caught:
        connections_to(access, ["h1", "h9"], around(tmp_path, NO_B=""))
    assert {(problem.key, problem.code) for problem in caught.value.problems} == {
        ("hosts.h1.key_file", "file-not-readable"),
        ("hosts.h1.secrets.a", "secret-missing"),
        ("hosts.h1.secrets.b", "secret-missing"),
        ("hosts", "unknown-name"),
    }
    assert all(name in str(caught.value) for name in ("NO_A", "NO_B", '"h9"', str(tmp_path / "id")))
    with pytest.raises(InvalidInput, check=coded("file-not-readable", "known_hosts")):
        run_options_of(access, around(tmp_path))
