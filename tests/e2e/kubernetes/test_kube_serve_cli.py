"""``equipoise kube serve`` by the installed command: steps of time, a table, and its end."""

from __future__ import annotations

import json
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import pytest

from command import COMMAND
from kubernetes_api import MERGE, PODS_PATH, TABLE, a_pod
from kubernetes_certificate import certificate

pytest.importorskip("uvicorn", reason="equipoise[kube] is missing")

TOKEN = "a-token-of-the-test"
CLOCK = "/api/v1/namespaces/kube-system/configmaps/equipoise-clock"


def address_lines(errors: IO[str]) -> str:
    """Return what the command prints until it serves."""
    lines = errors.readline()
    while "serving at" not in lines:
        line = errors.readline()
        assert line, lines
        lines += line
    return lines


class Served:
    """The command with three jobs, one of which arrives after 60 s, and a client with its token."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        jobs = [{"id": name, "subtime": at_s, "res": 1, "profile": "d"}
                for name, at_s in (("a", 0), ("b", 0), ("c", 60), ("d", 60))]  # fmt: skip
        content = {"nb_res": 2, "jobs": jobs, "profiles": {"d": {"type": "delay", "delay": 30}}}
        (folder / "jobs.json").write_text(json.dumps(content))
        (folder / "token").write_text(f"{TOKEN}\n")
        self.kubeconfig = folder / "sim.yaml"
        self.kubeconfig.touch(mode=0o644)
        self.process = subprocess.Popen(
            [COMMAND, "kube", "serve", "--nodes", "2", "-w", "jobs.json", "--pace", "0",
             "--port", "0", "--token-file", "token", "--kubeconfig", "sim.yaml"],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stderr is not None
        self.first_lines = address_lines(self.process.stderr)
        (cluster,) = json.loads(self.kubeconfig.read_text())["clusters"]
        self.address = urlsplit(cluster["cluster"]["server"]).netloc

    def request(self, method: str, path: str, body: Any = None, media: str = MERGE) -> Any:
        connection = HTTPConnection(self.address, timeout=30)
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": media, "accept": TABLE}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        content = json.loads(answer.read())
        connection.close()
        assert answer.status < 300, content
        return content

    def step(self, until: str) -> None:
        """Let time pass to an instant, and wait until the clock shows it."""
        self.request("PATCH", CLOCK, {"data": {"until": until}})
        partial = f"{CLOCK}?includeObject=Object"
        while True:
            (row,) = self.request("GET", partial)["rows"]
            if row["object"]["data"]["now"] == until:
                return

    def table(self) -> list[list[Any]]:
        return [row["cells"] for row in self.request("GET", PODS_PATH)["rows"]]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    running = Served(tmp_path)
    yield running
    if running.process.poll() is None:
        running.process.kill()
        running.process.communicate()


def test_time_passes_by_steps_and_pods_are_a_full_table(served: Served) -> None:
    served.request(
        "POST", f"{PODS_PATH}/job-a/binding", {"target": {"name": "node-1"}}, "application/json"
    )
    served.step("12")
    by_name = {row[0]: row for row in served.table()}
    assert list(by_name) == ["job-a", "job-b"]
    assert by_name["job-a"][:5] == ["job-a", "1/1", "Running", "0", "12s"]
    assert by_name["job-a"][6] == "node-1"
    assert by_name["job-b"][2] == "Pending"
    served.step("30")
    assert {row[0]: row[2] for row in served.table()}["job-a"] == "Completed"


def test_a_name_that_a_client_has_taken_stops_no_other_arrival(served: Served) -> None:
    served.request("POST", PODS_PATH, a_pod("job-c"), "application/json")
    served.step("61")
    assert [row[0] for row in served.table()] == ["job-a", "job-b", "job-c", "job-d"]
    served.process.send_signal(signal.SIGTERM)
    out, errors = served.process.communicate(timeout=60)
    assert served.process.returncode == 0
    assert "default/job-c" in errors
    assert TOKEN not in out + errors + served.first_lines


@pytest.mark.skipif(
    shutil.which("kubectl") is None or shutil.which("openssl") is None,
    reason="kubectl or openssl is missing (Debian: kubernetes-client, openssl)",
)
def test_kubectl_sends_its_token_over_tls(tmp_path: Path) -> None:
    certificate(tmp_path)
    (tmp_path / "token").write_text(TOKEN)
    with subprocess.Popen(
        [COMMAND, "kube", "serve", "--nodes", "2", "--port", "0", "--token-file", "token",
         "--tls-cert", "cert.pem", "--tls-key", "key.pem", "--kubeconfig", "sim.yaml"],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stderr is not None
            assert "https://127.0.0.1:" in address_lines(process.stderr)
            assert kubectl_rows(tmp_path) == 2
            assert kubectl_rows(tmp_path, "--token", "another") == 0
        finally:
            process.kill()


def kubectl_rows(folder: Path, *options: str) -> int:
    """Return how many nodes kubectl shows; 0 if the server refuses it."""
    words = ["kubectl", "--kubeconfig", "sim.yaml", "--cache-dir", str(folder), *options]
    done = subprocess.run(
        [*words, "get", "nodes", "--no-headers"], cwd=folder, capture_output=True, text=True,
        check=False, timeout=60, env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert (done.returncode == 0) is bool(done.stdout)
    return len(done.stdout.splitlines())


def test_only_the_owner_reads_the_token_of_the_kubeconfig(served: Served) -> None:
    assert TOKEN in served.kubeconfig.read_text()
    assert stat.S_IMODE(served.kubeconfig.stat().st_mode) == 0o600
