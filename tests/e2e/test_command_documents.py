"""Every command prints a document that its type reads strictly."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.core import TyperGroup
from typer.main import get_command

from batsim_scheduler import write_inputs
from command import call, call_here
from equipoise.cli import commands
from equipoise.documents.advice import PlaceDocument, RecommendDocument, WhatIfDocument
from equipoise.documents.cluster import ClusterDocument, JournalDocument, WakeDocument
from equipoise.documents.execution import ExecuteDocument
from equipoise.documents.fuzz import (
    BenchDocument,
    ExperimentDocument,
    ExperimentRow,
    FuzzDocument,
    TargetRow,
)
from equipoise.documents.json_document import ErrorDocument, to_plain
from equipoise.documents.kubernetes import KubernetesRunDocument
from equipoise.documents.plan import CheckDocument, SolveDocument
from equipoise.documents.role_run import RolesCheckDocument, RolesPlanDocument, RolesRunDocument
from equipoise.documents.simulation import (
    BatsimDocument,
    CompareDocument,
    DemoDocument,
    JobsDocument,
    ScenarioRow,
    SimulationDocument,
)
from equipoise.documents.spec import (
    ConstraintDocument,
    ConstraintRow,
    FunctionRow,
    SpecCheckDocument,
    VerdictDocument,
)
from equipoise.documents.upgrade import OrdersDocument, UpgradeDocument

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
OWN_SPEC = '"""Every VM is a VM."""\nmine(vs <: vms) discrete ::= !(v : vs) v : vms\n'
SWF = "".join(f"{n} {n} 0 100 1 -1 -1 1 200 -1 1 1 1 1 1 -1 -1 -1\n" for n in range(1, 4))
KUBERNETES_SCHEDULER = f"{sys.executable} {ROOT}/tests/kubernetes_scheduler.py {{url}}"
ACCESS = """hosts:
  r4:
    wol: {mac: "52:54:00:12:34:56", broadcast: 127.0.0.1, port: 9, check: "127.0.0.1:1"}
"""
COMMANDS: dict[str, tuple[Any, int]] = {
    "show {examples}/small.yaml": (ClusterDocument, 0),
    "scenarios": (list[ScenarioRow], 0),
    "recommend {examples}/small.yaml --why all --with power": (RecommendDocument, 0),
    "place {examples}/small.yaml --vms {examples}/new-vms.yaml": (PlaceDocument, 0),
    "whatif {examples}/small.yaml --fail r1": (WhatIfDocument, 0),
    "solve {examples}/swap.yaml": (SolveDocument, 0),
    "check {examples}/drain.yaml --instance {examples}/small.yaml": (CheckDocument, 0),
    "execute {examples}/drain.yaml --world {examples}/small.yaml": (ExecuteDocument, 0),
    "simulate first-steps": (SimulationDocument, 0),
    "demo --out demo": (DemoDocument, 0),
    "jobs -w jobs.swf --hosts 2": (JobsDocument, 0),
    "batsim -p platform.xml -w jobs.json --no-sched": (BatsimDocument, 0),
    "kube run --nodes 2 -w jobs.json --clock stock --scheduler '{scheduler}'": (
        KubernetesRunDocument,
        0,
    ),
    "journal run.db": (JournalDocument, 0),
    "report a a": (CompareDocument, 0),
    "spec list": (list[ConstraintRow], 0),
    "spec show Spread": (ConstraintDocument, 0),
    "spec functions": (list[FunctionRow], 0),
    "spec check own.spec": (SpecCheckDocument, 0),
    "spec judge Spread --case {examples}/visit.case.yaml": (VerdictDocument, 1),
    "roles check {examples}/roles/defects.yaml": (RolesCheckDocument, 1),
    "roles plan {examples}/roles/n-plus-m.yaml --fail gw-1 --leave gw-2": (RolesPlanDocument, 0),
    "roles run {examples}/roles/2n.yaml": (RolesRunDocument, 0),
    "fuzz --list": (list[TargetRow], 0),
    "fuzz faulty-C --tests 200 --seed 1": (FuzzDocument, 1),
    "fuzz experiment": (list[ExperimentRow], 0),
    "fuzz experiment modes --target planner --tests 20": (ExperimentDocument, 0),
    "upgrade nabi-compute --compare": (UpgradeDocument, 0),
    "upgrade nabi-compute --journal up.db --command undo:nothing": (OrdersDocument, 1),
    "wake access.yaml --state": (WakeDocument, 0),
    "bench model": (BenchDocument, 0),
    "show missing.yaml": (ErrorDocument, 2),
}
"""The type of the document and the exit code of each command."""
AFTER = {
    "journal run.db": "simulate first-steps --journal run.db",
    "report a a": "simulate first-steps --out a",
    "upgrade nabi-compute --journal up.db --command undo:nothing": (
        "upgrade nabi-compute --journal up.db"
    ),
}
"""Commands that read what another command writes."""


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_prints_a_document_of_its_type(tmp_path: Path, line: str) -> None:
    kind, code = COMMANDS[line]
    (tmp_path / "own.spec").write_text(OWN_SPEC)
    (tmp_path / "access.yaml").write_text(ACCESS)
    (tmp_path / "jobs.swf").write_text(SWF)
    write_inputs(tmp_path)
    if line in AFTER:
        assert call_here(*AFTER[line].split(), "--json", cwd=tmp_path).returncode == 0
    words = shlex.split(line.format(examples=EXAMPLES, scheduler=KUBERNETES_SCHEDULER))
    # A benchmark collects the garbage of its process before each try.
    run = call if words[0] == "bench" else call_here
    done = run(*words, "--json", cwd=tmp_path)
    assert done.returncode == code, done.stderr
    document = msgspec.json.decode(done.stdout.encode(), type=kind)
    # Nothing is lost on the way: writing the document again gives the same JSON.
    assert json.loads(json.dumps(to_plain(document))) == json.loads(done.stdout)
    if isinstance(document, BenchDocument):
        ratio = document.rows[0].ratio
        assert ratio is not None
        assert ratio > 1


def test_every_command_has_a_document() -> None:
    """``schema`` and ``replay`` print a schema and a file of ours; ``batsim-schedule`` awaits a
    simulation (``test_batsim_5.py``)."""
    app = get_command(commands.app)
    assert isinstance(app, TyperGroup)
    others = {"schema", "replay", "batsim-schedule"}
    assert {line.split()[0] for line in COMMANDS} == set(app.commands) - others
