from __future__ import annotations

from typing import Any

import pytest

from equipoise.adapters.kubernetes.api.resources import ALL_RESOURCES, JOBS, PODS
from equipoise.adapters.kubernetes.api.tables import columns, definitions, duration, row


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (130, "2m10s"), (599, "9m59s"),
        (605, "10m"), (10_799, "179m"), (10_800, "3h"), (11_000, "3h3m"), (28_800, "8h"),
        (172_799, "47h"), (172_800, "2d"), (180_000, "2d2h"), (691_200, "8d"),
        (63_000_000, "729d"), (63_072_000, "2y"), (70_000_000, "2y80d"),
    ],
)  # fmt: skip
def test_a_length_of_time_has_one_or_two_units(seconds: int, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"status": {"phase": "Running"}}, "Running"),
        ({"status": {"phase": "Failed", "reason": "OutOfcpu"}}, "OutOfcpu"),
        ({}, "Unknown"),
        (
            {
                "status": {
                    "phase": "Failed",
                    "containerStatuses": [{"state": {"terminated": {"reason": "Error"}}}],
                }
            },
            "Error",
        ),
        (
            {
                "status": {
                    "phase": "Pending",
                    "containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}],
                }
            },
            "ContainerCreating",
        ),
    ],
)
def test_the_status_of_a_pod_is_the_most_telling_word(fields: dict[str, Any], status: str) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{}]}, **fields}
    assert row(columns(PODS), pod, 0)[2] == status
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert row(columns(PODS), pod, 0)[2] == "Terminating"


def test_a_job_shows_its_completions_and_its_duration() -> None:
    job = {
        "metadata": {"name": "j", "creationTimestamp": "1970-01-01T00:00:00Z"},
        "spec": {"completions": 3},
        "status": {"succeeded": 2, "startTime": "1970-01-01T00:00:10Z"},
    }
    assert row(columns(JOBS), job, 70_000)[:5] == ["j", "Running", "2/3", "60s", "70s"]


@pytest.mark.parametrize("resource", ALL_RESOURCES)
def test_an_object_with_nothing_in_it_has_a_row(resource: Any) -> None:
    cells = row(columns(resource), {"metadata": {"name": "x"}}, 0)
    assert len(cells) == len(definitions(resource))
