"""Values that are allowed and probably in another unit are warnings, each with its code."""

from __future__ import annotations

import json

import pytest

from equipoise.files.check.plausibility import report_doubtful_values
from equipoise.files.parse import find_warnings, parse_inventory
from equipoise.model.diagnostics import Diagnostics, format_path

HOST = {"id": "h", "cores": 8, "mhz_per_core": 2600, "memory_mib": 65_536}
VM = {"id": "v", "vcpus": 1, "memory_mib": 4096, "host": "h"}


def warnings(host: dict[str, object], vm: dict[str, object]) -> list[tuple[str, str]]:
    content = json.dumps({"hosts": [HOST | host], "vms": [VM | vm]}).encode()
    found = Diagnostics()
    report_doubtful_values(parse_inventory(content, "cluster.json"), found)
    return [(item.code, format_path(item.path)) for item in found.all()]


@pytest.mark.parametrize(
    ("host", "vm", "expected"),
    [
        ({}, {}, []),
        (
            {"memory_mib": 256},
            {"memory_mib": 128},
            [("doubtful-host-memory", "hosts[0].memory_mib")],
        ),
        (
            {"memory_mib": 65_536 * 1024 * 1024},
            {},
            [("doubtful-host-memory", "hosts[0].memory_mib")],
        ),
        ({"mhz_per_core": 3}, {}, [("doubtful-core-speed", "hosts[0].mhz_per_core")]),
        ({"mhz_per_core": 26_000}, {}, [("doubtful-core-speed", "hosts[0].mhz_per_core")]),
        (
            {},
            {"demand": {"cpu_mhz": 50_000}},
            [("doubtful-vm-cpu", "vms[0].demand.cpu_mhz")],
        ),
        ({}, {"demand": {"cpu_mhz": 4 * 2600}}, []),
        (
            {},
            {"cpu": {"reservation_mhz": 2601}},
            [("doubtful-vm-cpu", "vms[0].cpu.reservation_mhz")],
        ),
        ({}, {"memory_mib": 8}, [("doubtful-vm-memory", "vms[0].memory_mib")]),
        ({}, {"memory_mib": 65_537}, [("vm-exceeds-hosts", "vms[0].memory_mib")]),
        ({"memory_overcommit": 2}, {"memory_mib": 65_537}, []),
    ],
)
def test_a_probable_slip_of_units_is_a_warning(
    host: dict[str, object], vm: dict[str, object], expected: list[tuple[str, str]]
) -> None:
    assert warnings(host, vm) == expected


def test_a_warning_has_the_line_of_its_value() -> None:
    text = b"hosts:\n  - id: h\n    cores: 8\n    mhz_per_core: 3\n    memory_mib: 65536\n"
    (warning,) = find_warnings(parse_inventory(text, "c.yaml"), text, "c.yaml")
    assert (warning.line, warning.code) == (4, "doubtful-core-speed")


@pytest.mark.parametrize(
    ("parent", "child", "vm_mhz", "expected"),
    [
        ({"cpu": {"reservation_mhz": 1000}}, 1000, 0, []),
        ({"cpu": {"reservation_mhz": 1000}}, 1001, 0, ["pools[0].cpu.reservation_mhz"]),
        ({"cpu": {"reservation_mhz": 1000}}, 600, 600, ["pools[0].cpu.reservation_mhz"]),
        # What the pool takes from its parent as a whole is the usual way for VMs, not for pools.
        ({}, 0, 600, []),
        ({}, 1, 0, ["pools[0].cpu.reservation_mhz"]),
        ({"cpu_expandable": False}, 0, 600, ["pools[0].cpu.reservation_mhz"]),
    ],
)
def test_a_pool_that_reserves_less_than_what_is_in_it_is_a_warning(
    parent: dict[str, object], child: int, vm_mhz: int, expected: list[str]
) -> None:
    inventory = {
        "hosts": [{"id": "h", "cores": 8, "mhz_per_core": 2600, "memory_mib": 65536}],
        "pools": [
            {"id": "p", **parent},
            {"id": "c", "parent": "p", "cpu": {"reservation_mhz": child}},
        ],
        "vms": [
            {
                "id": "v", "vcpus": 1, "memory_mib": 1024, "host": "h", "pool": "p",
                "cpu": {"reservation_mhz": vm_mhz},
            },
        ],
    }  # fmt: skip
    text = json.dumps(inventory).encode()
    found = find_warnings(parse_inventory(text, "c.json"), text, "c.json")
    assert [(warning.code, warning.key) for warning in found] == [
        ("pool-below-children", key) for key in expected
    ]
