"""The command of a scheduler: the configuration that it names, and what is added to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.adapters.kubernetes.run.scheduler import (
    SchedulerCommand,
    SchedulerFolder,
    SchedulerSettings,
    start_scheduler,
)
from equipoise.errors import InvalidInput

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "second"}, {"schedulerName": "third"}],
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "given.json"
    path.write_text(json.dumps(CONFIG))
    return path


def started_with(command: SchedulerCommand, folder: Path) -> list[str]:
    """Return the arguments with which the scheduler was started; the program is ``echo``."""
    files = SchedulerFolder(folder, "http://127.0.0.1:1")
    scheduler = start_scheduler(command, files, SchedulerSettings(), {}, None)
    with scheduler.process:
        assert scheduler.process.has_ended(10.0)
        scheduler.process.stop(grace_s=0)  # waits for its output
        return scheduler.process.last_lines().split()


def test_a_command_without_places_gets_a_configuration_and_no_port(tmp_path: Path) -> None:
    command = SchedulerCommand(command="echo -v=2")
    assert command.names == ("default-scheduler",)
    assert started_with(command, tmp_path) == [
        "-v=2",
        f"--config={tmp_path}/scheduler-1.json",
        "--secure-port=0",
    ]


@pytest.mark.parametrize("form", ["--config={}", "--config {}"])
def test_a_configuration_in_the_command_is_completed(
    tmp_path: Path, config: Path, form: str
) -> None:
    """Two schedulers with the same port would fail, so a named one gets none either."""
    command = SchedulerCommand(command=f"echo {form.format(config)}")
    assert command.names == ("second", "third")
    assert started_with(command, tmp_path) == [
        f"--config={tmp_path}/scheduler-1.json",
        "--secure-port=0",
    ]
    written = json.loads((tmp_path / "scheduler-1.json").read_text())
    assert written["profiles"] == CONFIG["profiles"]
    assert written["leaderElection"] == {"leaderElect": False}


def test_a_port_in_the_command_is_kept(tmp_path: Path, config: Path) -> None:
    command = SchedulerCommand(command="echo --secure-port=7777", config=config)
    assert command.names == ("second", "third")
    assert started_with(command, tmp_path) == [
        "--secure-port=7777",
        f"--config={tmp_path}/scheduler-1.json",
    ]


def test_a_command_with_places_is_left_as_it_is(tmp_path: Path) -> None:
    command = SchedulerCommand(command="echo {url} {port}")
    assert started_with(command, tmp_path) == ["http://127.0.0.1:1", "1"]


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        ("kind: KubeSchedulerConfiguration\nprofiles: [1]\n", 2, "wrong-type"),
        ("kind: KubeSchedulerConfiguration\nprofiles: {a: b}\n", 2, "wrong-type"),
        ("kind: KubeSchedulerConfiguration\nmore: &a [*a]\n", 2, "cycle"),
        ("kind: KubeSchedulerConfiguration\nparallelism: .nan\n", 2, "out-of-range"),
        ("kind: KubeSchedulerConfiguration\nmore: [\n", 3, "syntax-error"),
        ("kind: Pod\n", None, "invalid-value"),
        ("- 1\n", None, "invalid-value"),
    ],
)
def test_a_wrong_configuration_is_named_by_its_line(
    tmp_path: Path, text: str, line: int | None, code: str
) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        assert SchedulerCommand(command="echo", config=path).names
    (problem,) = caught.value.problems
    assert (problem.line, problem.code, bool(problem.cure)) == (line, code, True)


def test_a_date_in_a_configuration_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "given.yaml"
    path.write_text("kind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: 2020-01-01}]\n")
    command = SchedulerCommand(command="echo", config=path)
    assert command.names == ("2020-01-01",)
    started_with(command, tmp_path)
    assert "2020-01-01" in (tmp_path / "scheduler-1.json").read_text()
