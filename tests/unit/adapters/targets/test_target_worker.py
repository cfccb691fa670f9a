"""The pipe to a worker, and the environment it lives in, with fakes for both."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from builders import a_cluster, a_host, a_vm, coded
from equipoise.adapters.targets import environment
from equipoise.adapters.targets.__main__ import main
from equipoise.adapters.targets.environment import (
    PYTHON_TARGETS,
    MissingTarget,
    find_environment,
    make_environment,
)
from equipoise.adapters.targets.worker import (
    ClusterMessage,
    ProposedMoves,
    TargetCrash,
    Worker,
    encode_cluster,
    start_worker,
)
from equipoise.errors import MissingExtra, WorldError
from equipoise.model.action import Migrate
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Demand

SIDE = Path(environment.__file__).parent / "worker_path" / "equipoise_worker.py"
EMPTY: ClusterMessage = {"hosts": [], "vms": [], "options": {}}
HELLO = 'print(\'{"version": "1"}\', flush=True); input(); '


def a_move(vm: str, source: str, target: str) -> Migrate:
    return Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))


def a_worker(folder: Path, text: str, *, start_s_max: float = 60.0) -> Worker:
    script = folder / "fake_worker.py"
    script.write_text(textwrap.dedent(text))
    return Worker([sys.executable, script], name="fake_worker", start_s_max=start_s_max)


def a_serving_worker(folder: Path, plan: str) -> Worker:
    """A worker with the real loop; ``plan`` is the body of its function."""
    shutil.copy(SIDE, folder)
    body = textwrap.indent(textwrap.dedent(plan), "    ")
    return a_worker(
        folder,
        f"import os, sys\nfrom equipoise_worker import residents, serve\n"
        f"def plan(cluster):\n{body}\nserve('pytest', plan=plan)\n",
    )


class TestTheLoopOfAWorker:
    def test_a_worker_answers_repeatedly(self, tmp_path: Path) -> None:
        plan = """
            vm = cluster["vms"][0]
            return {"moves": [{"vm": vm["id"], "from": vm["host"], "to": "b"}], "seconds": 0.5}
        """
        cluster = encode_cluster(a_cluster(a_host("a"), vms=[a_vm("v", "a")]))
        with a_serving_worker(tmp_path, plan) as worker:
            for _ in range(3):
                assert worker.plan(cluster) == ProposedMoves((a_move("v", "a", "b"),), 0.5)
            assert worker.version == pytest.__version__

    def test_output_of_the_target_stays_out_of_the_pipe(self, tmp_path: Path) -> None:
        plan = """
            print("noise")
            os.write(1, b"more noise")
            return {"moves": [], "seconds": 0}
        """
        with a_serving_worker(tmp_path, plan) as worker:
            assert worker.plan(EMPTY) == ProposedMoves((), 0.0)

    @pytest.mark.parametrize(
        ("plan", "what"),
        [
            ("raise KeyError('vm')", "KeyError: 'vm' (fake_worker.py:4 in plan)"),
            ("sys.exit(1)", "SystemExit: 1 (fake_worker.py:4 in plan)"),
        ],
    )
    def test_a_crash_is_a_value_and_the_worker_lives(
        self, tmp_path: Path, plan: str, what: str
    ) -> None:
        with a_serving_worker(tmp_path, plan) as worker:
            assert worker.plan(EMPTY) == TargetCrash(what)
            assert worker.plan(EMPTY) == TargetCrash(what)

    def test_a_vm_on_an_unknown_host_is_not_passed_over(self, tmp_path: Path) -> None:
        cluster = encode_cluster(a_cluster(a_host("a"), vms=[a_vm("v", "a")]))
        with a_serving_worker(tmp_path, "return {'moves': residents(cluster)}") as worker:
            answer = worker.plan({**cluster, "hosts": []})
        assert isinstance(answer, TargetCrash)
        assert {"v", "a"} <= set(answer.what.split())


class TestALostWorker:
    def test_the_error_of_a_dead_worker_has_its_stderr(self, tmp_path: Path) -> None:
        with a_serving_worker(tmp_path, "print('alas', file=sys.stderr); os._exit(7)") as worker:
            with pytest.raises(WorldError, match=r"died \(exit code 7\):\nalas"):
                worker.plan(EMPTY)
            with pytest.raises(WorldError, check=coded("worker-died")):  # and stays dead
                worker.plan(EMPTY)

    def test_a_worker_that_does_not_start_reports_why(self, tmp_path: Path) -> None:
        with pytest.raises(WorldError, match="No module named 'no_such_package'"):
            a_worker(tmp_path, "import no_such_package")

    def test_an_interpreter_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(WorldError, check=coded("worker-not-started")):
            Worker([tmp_path / "python"], name="fake_worker")

    def test_a_silent_worker_is_killed(self, tmp_path: Path) -> None:
        plan = "import time; time.sleep(600)"
        with (
            a_serving_worker(tmp_path, plan) as worker,
            pytest.raises(WorldError, check=coded("scheduler-timeout")),
        ):
            worker.plan(EMPTY, seconds_max=0.3)

    def test_a_worker_that_does_not_read_is_killed(self, tmp_path: Path) -> None:
        text = f"import time; input(); {HELLO.replace('input(); ', '')} time.sleep(600)"
        longer_than_a_pipe: ClusterMessage = {**EMPTY, "options": {"text": "x" * 1_000_000}}
        with (
            a_worker(tmp_path, text) as worker,
            pytest.raises(WorldError, check=coded("scheduler-timeout")),
        ):
            worker.plan(longer_than_a_pipe, seconds_max=0.3)

    def test_a_worker_without_a_hello_is_killed(self, tmp_path: Path) -> None:
        with pytest.raises(WorldError, check=coded("scheduler-timeout")):
            a_worker(tmp_path, "import time; time.sleep(600)", start_s_max=0.3)

    @pytest.mark.parametrize("said", ["hm", "[]", "{}", '{"moves": [1], "seconds": 0}'])
    def test_an_invalid_answer_is_an_error(self, tmp_path: Path, said: str) -> None:
        text = f"input(); {HELLO} print({said!r}, flush=True)"
        with (
            a_worker(tmp_path, text) as worker,
            pytest.raises(WorldError, check=coded("worker-answer-invalid")),
        ):
            worker.plan(EMPTY)

    def test_a_closed_worker_leaves_no_process(self, tmp_path: Path) -> None:
        worker = a_serving_worker(tmp_path, "return {'moves': [], 'seconds': 0}")
        number = worker._process.pid
        worker.close()
        worker.close()
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)
        with pytest.raises(WorldError, check=coded("worker-closed")):
            worker.plan(EMPTY)


def test_a_move_from_a_wrong_source_is_not_executed() -> None:
    moves = (a_move("v", "a", "b"), a_move("v", "a", "c"), a_move("w", "b", "a"))
    assert ProposedMoves(moves, 0).placement({"v": "a", "w": "b"}) == {"v": "b", "w": "a"}


def test_only_hosts_that_are_on_are_encoded() -> None:
    snapshot = a_cluster(
        a_host("a", cores=8, mhz_per_core=2000, memory_mib=1000),
        a_host("b", state=HostState.STANDBY),
        vms=(
            a_vm("v", "a", vcpus=2, memory_mib=300, demand=Demand(cpu_mhz=700, memory_mib=100)),
            a_vm("off", None),
        ),
    )
    assert encode_cluster(snapshot, method="cpu") == {
        "hosts": [{"id": "a", "cores": 8, "mhz_per_core": 2000, "memory_mib": 1000}],
        "vms": [
            {
                "id": "v", "host": "a", "vcpus": 2, "memory_mib": 300,
                "cpu_mhz": 700, "memory_used_mib": 100,
            }
        ],
        "options": {"method": "cpu"},
    }  # fmt: skip


PYTHON = """#!/bin/sh
# Stands in for both interpreters: the one that makes a folder and the one inside that has pip.
echo "$@" >> "{log}"
case "$*" in
  *" pip "*) {pip} ;;
  *venv*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
esac
"""


class TestAnEnvironment:
    @pytest.fixture(autouse=True)
    def _elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EQUIPOISE_TARGETS", str(tmp_path / "targets"))

    @staticmethod
    def python(folder: Path, pip: str = "exit 0") -> str:
        path = folder / "python"
        path.write_text(PYTHON.format(log=folder / "log", pip=pip))
        path.chmod(0o755)
        return str(path)

    @staticmethod
    def calls(folder: Path) -> list[str]:
        return (folder / "log").read_text().splitlines()

    def test_it_is_made_once_with_the_pins_of_its_lock(self, tmp_path: Path) -> None:
        assert find_environment("watcher") is None
        python = make_environment("watcher", python=self.python(tmp_path))
        assert python == tmp_path / "targets" / "watcher-17.0.0" / "bin" / "python"
        assert (
            find_environment("watcher")
            == make_environment("watcher", python="never called")
            == python
        )
        venv, pip = self.calls(tmp_path)
        assert venv.startswith("-m venv")
        assert "--no-deps --require-hashes -r" in pip
        assert pip.endswith("watcher/requirements.lock")
        assert find_environment("proxlb") is None

    def test_an_incomplete_environment_is_made_again(self, tmp_path: Path) -> None:
        with pytest.raises(MissingTarget):
            make_environment("proxlb", python=self.python(tmp_path, "exit 1"))
        junk = PYTHON_TARGETS["proxlb"].folder / "junk"
        junk.touch()
        assert find_environment("proxlb") is None
        assert make_environment("proxlb", python=self.python(tmp_path)) == find_environment(
            "proxlb"
        )
        assert not junk.exists()

    def test_other_pins_are_another_environment(self, tmp_path: Path) -> None:
        make_environment("proxlb", python=self.python(tmp_path))
        PYTHON_TARGETS["proxlb"].stamp.write_text("the pins of last year")
        assert find_environment("proxlb") is None

    def test_a_missing_network_is_reported_without_addresses(self, tmp_path: Path) -> None:
        pip = "echo 'ERROR: cannot reach https://me:secret@index.example/simple now' >&2; exit 1"
        with pytest.raises(MissingExtra) as caught:
            make_environment("watcher", python=self.python(tmp_path, pip))
        said = str(caught.value)
        assert "cannot reach an address now" in said
        assert "run 'python -m equipoise.adapters.targets watcher'" in said
        assert "secret" not in said

    def test_an_environment_without_its_python_is_not_found(self, tmp_path: Path) -> None:
        make_environment("proxlb", python=self.python(tmp_path)).unlink()
        assert find_environment("proxlb") is None

    def test_a_python_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(MissingTarget, match=re.escape(str(tmp_path / "nothing"))):
            make_environment("watcher", python=str(tmp_path / "nothing"))

    def test_a_folder_that_cannot_be_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setenv("EQUIPOISE_TARGETS", str(tmp_path / "file"))
        with pytest.raises(MissingTarget, match="EQUIPOISE_TARGETS"):
            make_environment("watcher")

    def test_a_worker_is_not_started_without_it(self) -> None:
        with pytest.raises(
            MissingTarget, match=r"run 'python -m equipoise.adapters.targets proxlb'"
        ):
            start_worker("proxlb")

    def test_the_command_lists_the_targets(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["drs"]) == 2
        error = capsys.readouterr().err
        assert all(name in error for name in (*PYTHON_TARGETS, "btrplace"))


def test_every_target_pins_its_own_version() -> None:
    named: Mapping[str, str] = {
        "watcher": "python-watcher",
        "pybatsim-5": "pybatsim",
    }
    without_worker = {"pybatsim", "pybatsim-5", "evalys", "accasim"}
    for name, target in PYTHON_TARGETS.items():
        pin = f"\n{named.get(name, name)}=={target.version} \\\n"
        assert pin in "\n" + target.lock.read_text()
        assert target.script.exists() == (name not in without_worker)
