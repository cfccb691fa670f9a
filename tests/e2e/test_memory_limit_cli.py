"""Physical memory limits every advice: a VM of 128 GiB never fits a host of 16 GiB."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from command import answer, call_here, located

Write = Callable[[str, str], str]

HOSTS = """\
hosts:
  - {id: big, cores: 16, mhz_per_core: 2000, memory_mib: 262144}
  - {id: small, cores: 16, mhz_per_core: 2000, memory_mib: 16384}
"""
LARGE = "  - {id: large, vcpus: 4, memory_mib: 131072, host: big}\n"
NEW = "vms:\n  - {id: large, vcpus: 4, memory_mib: 131072}\n"
DRAINED = HOSTS.replace("{id: big,", "{id: big, requested: maintenance,")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write_file


def test_check_refuses_a_move_to_a_host_with_too_little_memory(write: Write) -> None:
    cluster = write("cluster.yaml", f"{HOSTS}vms:\n{LARGE}")
    plan = write(
        "plan.yaml",
        "id: p\nsteps:\n  - {id: s, end_ms: 9000,"
        " action: {do: migrate, vm: large, source: big, target: small}}\n",
    )
    found = answer("check", plan, "--instance", cluster, code=1)
    (violation,) = found["violations"]
    assert (violation["constraint"], violation["code"]) == ("capacity", "no-capacity")
    assert "16384 of 16384" in violation["detail"]
    overcommitted = write("esx.yaml", f"memory_overcommit: 8\n{HOSTS}vms:\n{LARGE}")
    assert answer("check", plan, "--instance", overcommitted)["accepted"]


def test_solve_does_not_drain_onto_a_host_with_too_little_memory(write: Write) -> None:
    found = answer("solve", write("cluster.yaml", f"{DRAINED}vms:\n{LARGE}"), code=1)
    assert (found["status"], found["actions"]) == ("unsat", 0)
    assert (
        answer("solve", write("c.yaml", f"memory_overcommit: 8\n{DRAINED}vms:\n{LARGE}"))[
            "migrations"
        ]
        == 1
    )


def test_a_drain_without_memory_elsewhere_is_a_fault(write: Write) -> None:
    found = answer("recommend", write("cluster.yaml", f"{DRAINED}vms:\n{LARGE}"), code=1)
    assert not found["recommendations"]
    (fault,) = found["faults"]
    assert (fault["code"], fault["subject"]) == ("no-target-host", "large")
    assert "configured memory" in fault["detail"]


def test_a_lost_vm_does_not_restart_on_a_host_with_too_little_memory(write: Write) -> None:
    cluster = write("cluster.yaml", f"{HOSTS}vms:\n{LARGE}")
    found = answer("whatif", cluster, "--fail", "big", code=1)
    assert not found["restarts"]
    assert found["unplaced"] == ["large"]


def test_a_new_vm_is_not_placed_on_a_host_with_too_little_memory(write: Write) -> None:
    small = write("cluster.yaml", HOSTS.replace("262144", "65536"))
    found = answer("place", small, "--vms", write("new.yaml", NEW), code=1)
    assert not found["placements"]
    assert [fault["code"] for fault in found["faults"]] == ["no-target-host"]
    own = HOSTS.replace("262144}", "65536, memory_overcommit: 2}")
    placed = answer("place", write("own.yaml", own), "--vms", write("new.yaml", NEW))
    assert [start["host"] for start in placed["placements"]] == ["big"]


def test_vcpus_limit_only_where_a_factor_says_so(write: Write) -> None:
    vms = "vms:\n" + "".join(
        f"  - {{id: v{n}, vcpus: 8, memory_mib: 1024, host: big}}\n" for n in range(3)
    )
    new = write("new.yaml", "vms: [{id: more, vcpus: 16, memory_mib: 1024}]\n")
    free = write("free.yaml", HOSTS + vms)
    assert answer("place", free, "--vms", new)["placements"]
    limited = write("limited.yaml", f"cpu_overcommit: 1.5\n{HOSTS}{vms}")
    (start,) = answer("place", limited, "--vms", new)["placements"]
    assert start["host"] == "small", "24 of 24 vCPUs of the big host are taken"


def test_an_overfull_host_is_relieved_first_and_accepts_nothing(write: Write) -> None:
    vms = "vms:\n" + "".join(
        f"  - {{id: v{n}, vcpus: 1, memory_mib: 6144, host: small}}\n" for n in range(3)
    )
    found = answer("recommend", write("cluster.yaml", HOSTS + vms))
    assert [(move["from"], move["to"]) for move in found["recommendations"]] == [("small", "big")]
    assert found["recommendations"][0]["priority"] == 1
    alone = HOSTS.splitlines(keepends=True)
    stuck = answer("recommend", write("stuck.yaml", alone[0] + alone[2] + vms), code=1)
    assert [(fault["code"], fault["subject"]) for fault in stuck["faults"]] == [
        ("overcommitted", "small")
    ]


def test_show_prints_what_is_committed_and_the_limit(write: Write) -> None:
    plain = f"{HOSTS}vms:\n{LARGE}"
    cluster = write("cluster.yaml", f"cpu_overcommit: 2\nmemory_overcommit: 1.5\n{plain}")
    rows = {row["id"]: row for row in answer("show", cluster)["hosts"]}
    assert rows["big"]["memory_configured_mib"] == 131_072
    assert rows["big"]["memory_configured_max_mib"] == 393_216
    assert (rows["big"]["vcpus"], rows["big"]["vcpus_max"]) == (4, 32)
    assert rows["small"]["memory_configured_max_mib"] == 24_576
    assert answer("show", write("free.yaml", plain))["hosts"][0]["vcpus_max"] is None
    assert "33%" in call_here("show", cluster).stdout


def test_a_factor_outside_its_range_is_reported(write: Write) -> None:
    text = f"memory_overcommit: 0\n{HOSTS}vms:\n{LARGE}"
    found = located("show", write("cluster.yaml", text))
    assert found == [("out-of-range", "memory_overcommit", 1)]
