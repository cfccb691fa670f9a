"""The pipe to a worker, and the environment it lives in, with fakes for both."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from builders import a_cluster, a_host, a_vm
from equipoise.errors import MissingExtra, WorldError
from equipoise.fuzz.targets import (
    TARGETS,
    Cluster,
    Crashed,
    MissingTarget,
    Move,
    Planned,
    Worker,
    cluster_of,
    environment,
    find,
    make,
    start,
)
from equipoise.fuzz.targets.__main__ import main
from equipoise.model.host import HostState
from equipoise.model.vm import Demand

SIDE = Path(environment.__file__).parent / "answering.py"
EMPTY: Cluster = {"hosts": [], "vms": [], "options": {}}
HELLO = 'print(\'{"version": "1"}\', flush=True); input(); '


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
        f"import os, sys\nfrom answering import residents, serve\n"
        f"def plan(cluster):\n{body}\nserve('pytest', plan=plan)\n",
    )


class TestTheLoopOfAWorker:
    def test_it_answers_as_often_as_it_is_asked(self, tmp_path: Path) -> None:
        plan = """
            vm = cluster["vms"][0]
            return {"moves": [{"vm": vm["id"], "from": vm["host"], "to": "b"}], "seconds": 0.5}
        """
        cluster = cluster_of(a_cluster(a_host("a"), vms=[a_vm("v", "a")]))
        with a_serving_worker(tmp_path, plan) as worker:
            for _ in range(3):
                assert worker.plan(cluster) == Planned((Move("v", "a", "b"),), 0.5)
            assert worker.version == pytest.__version__

    def test_what_the_target_prints_does_not_get_into_the_pipe(self, tmp_path: Path) -> None:
        plan = """
            print("noise")
            os.write(1, b"more noise")
            return {"moves": [], "seconds": 0}
        """
        with a_serving_worker(tmp_path, plan) as worker:
            assert worker.plan(EMPTY) == Planned((), 0.0)

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
            assert worker.plan(EMPTY) == Crashed(what)
            assert worker.plan(EMPTY) == Crashed(what)

    def test_a_vm_on_an_unknown_host_is_not_passed_over(self, tmp_path: Path) -> None:
        cluster = cluster_of(a_cluster(a_host("a"), vms=[a_vm("v", "a")]))
        with a_serving_worker(tmp_path, "return {'moves': residents(cluster)}") as worker:
            answer = worker.plan({**cluster, "hosts": []})
        assert isinstance(answer, Crashed)
        assert "VM v is on the unknown host a" in answer.what


class TestALostWorker:
    def test_one_that_dies_says_its_last_words(self, tmp_path: Path) -> None:
        with a_serving_worker(tmp_path, "print('alas', file=sys.stderr); os._exit(7)") as worker:
            with pytest.raises(WorldError, match=r"died \(exit code 7\):\nalas"):
                worker.plan(EMPTY)
            with pytest.raises(WorldError, match="died"):  # and stays dead
                worker.plan(EMPTY)

    def test_one_that_cannot_start_tells_why(self, tmp_path: Path) -> None:
        with pytest.raises(WorldError, match="No module named 'no_such_package'"):
            a_worker(tmp_path, "import no_such_package")

    def test_an_interpreter_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(WorldError, match="cannot be started"):
            Worker([tmp_path / "python"], name="fake_worker")

    def test_one_that_is_silent_is_ended(self, tmp_path: Path) -> None:
        plan = "import time; time.sleep(600)"
        with (
            a_serving_worker(tmp_path, plan) as worker,
            pytest.raises(WorldError, match=r"no answer within 0\.3 s"),
        ):
            worker.plan(EMPTY, seconds_max=0.3)

    def test_one_that_does_not_even_listen_is_ended(self, tmp_path: Path) -> None:
        text = f"import time; input(); {HELLO.replace('input(); ', '')} time.sleep(600)"
        longer_than_a_pipe: Cluster = {**EMPTY, "options": {"text": "x" * 1_000_000}}
        with (
            a_worker(tmp_path, text) as worker,
            pytest.raises(WorldError, match=r"no answer within 0\.3 s"),
        ):
            worker.plan(longer_than_a_pipe, seconds_max=0.3)

    def test_one_that_never_says_hello_is_ended(self, tmp_path: Path) -> None:
        with pytest.raises(WorldError, match=r"no answer within 0\.3 s"):
            a_worker(tmp_path, "import time; time.sleep(600)", start_s_max=0.3)

    @pytest.mark.parametrize("said", ["hm", "[]", "{}", '{"moves": [1], "seconds": 0}'])
    def test_one_that_talks_nonsense_is_not_believed(self, tmp_path: Path, said: str) -> None:
        text = f"input(); {HELLO} print({said!r}, flush=True)"
        with (
            a_worker(tmp_path, text) as worker,
            pytest.raises(WorldError, match="answered nonsense"),
        ):
            worker.plan(EMPTY)

    def test_a_closed_one_is_not_asked_and_leaves_no_process(self, tmp_path: Path) -> None:
        worker = a_serving_worker(tmp_path, "return {'moves': [], 'seconds': 0}")
        number = worker._process.pid
        worker.close()
        worker.close()
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)
        with pytest.raises(WorldError, match="closed"):
            worker.plan(EMPTY)


def test_a_move_from_a_wrong_source_is_not_carried_out() -> None:
    moves = (Move("v", "a", "b"), Move("v", "a", "c"), Move("w", "b", "a"))
    assert Planned(moves, 0).placement({"v": "a", "w": "b"}) == {"v": "b", "w": "a"}


def test_a_cluster_is_told_as_far_as_it_is_awake() -> None:
    snapshot = a_cluster(
        a_host("a", cores=8, mhz_per_core=2000, memory_mib=1000),
        a_host("b", state=HostState.STANDBY),
        vms=(
            a_vm("v", "a", vcpus=2, memory_mib=300, demand=Demand(cpu_mhz=700, memory_mib=100)),
            a_vm("off", None),
        ),
    )
    assert cluster_of(snapshot, method="cpu") == {
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
        assert find("watcher") is None
        python = make("watcher", python=self.python(tmp_path))
        assert python == tmp_path / "targets" / "watcher-17.0.0" / "bin" / "python"
        assert find("watcher") == make("watcher", python="never called") == python
        venv, pip = self.calls(tmp_path)
        assert venv.startswith("-m venv")
        assert "--no-deps --require-hashes -r" in pip
        assert pip.endswith("watcher.lock")
        assert find("proxlb") is None

    def test_a_half_made_one_is_not_found_and_is_made_anew(self, tmp_path: Path) -> None:
        with pytest.raises(MissingTarget):
            make("proxlb", python=self.python(tmp_path, "exit 1"))
        junk = TARGETS["proxlb"].folder / "junk"
        junk.touch()
        assert find("proxlb") is None
        assert make("proxlb", python=self.python(tmp_path)) == find("proxlb")
        assert not junk.exists()

    def test_other_pins_are_another_environment(self, tmp_path: Path) -> None:
        make("proxlb", python=self.python(tmp_path))
        TARGETS["proxlb"].stamp.write_text("the pins of last year")
        assert find("proxlb") is None

    def test_no_network_is_said_with_the_cure_and_without_any_address(self, tmp_path: Path) -> None:
        pip = "echo 'ERROR: cannot reach https://me:secret@index.example/simple now' >&2; exit 1"
        with pytest.raises(MissingExtra) as caught:
            make("watcher", python=self.python(tmp_path, pip))
        said = str(caught.value)
        assert "cannot reach an address now" in said
        assert "run 'python -m equipoise.fuzz.targets watcher'" in said
        assert "secret" not in said

    def test_one_whose_python_is_gone_is_not_found(self, tmp_path: Path) -> None:
        make("proxlb", python=self.python(tmp_path)).unlink()
        assert find("proxlb") is None

    def test_a_python_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(MissingTarget, match="cannot be run"):
            make("watcher", python=str(tmp_path / "nothing"))

    def test_a_folder_that_cannot_be_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setenv("EQUIPOISE_TARGETS", str(tmp_path / "file"))
        with pytest.raises(MissingTarget, match="EQUIPOISE_TARGETS"):
            make("watcher")

    def test_a_worker_is_not_started_without_it(self) -> None:
        with pytest.raises(MissingTarget, match=r"run 'python -m equipoise.fuzz.targets proxlb'"):
            start("proxlb")

    def test_the_command_tells_what_there_is(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["drs"]) == 2
        assert "there are watcher, proxlb, nova, btrplace" in capsys.readouterr().err


def test_every_target_pins_its_own_version() -> None:
    named: Mapping[str, str] = {
        "watcher": "python-watcher",
        "proxlb": "proxlb",
        "nova": "nova",
    }
    for name, target in TARGETS.items():
        assert f"\n{named[name]}=={target.version} \\\n" in target.lock.read_text()
        assert target.script.exists()
