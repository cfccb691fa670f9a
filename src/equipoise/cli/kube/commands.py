"""The arguments of ``equipoise kube``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from equipoise.cli.typer_app import (
    EquipoiseTyper,
    Json,
    Names,
    NewJournal,
    OptionalFloat,
    OptionalInt,
    OptionalPath,
    OptionalText,
)

kube_app = EquipoiseTyper(
    help="Run Kubernetes schedulers on a simulated cluster.",
    no_args_is_help=True,
)

_SECONDS_MAX = 1e9
_Paths = Optional[list[Path]]  # noqa: UP045  (Typer evaluates the annotation)


def _option(*names: str, text: str, **details: Any) -> Any:
    return typer.Option(*names, help=text, **details)


_Platform = Annotated[
    OptionalPath,
    _option("-p", "--platform", text="Nodes: SimGrid XML, openb CSV or manifests of nodes."),
]
_Nodes = Annotated[OptionalInt, _option("--nodes", text="Use so many equal nodes.", min=1)]
_Cpu = Annotated[str, _option("--cpu", text="CPUs of each of the --nodes.", metavar="QUANTITY")]
_Memory = Annotated[str, _option("--memory", text="Memory of each.", metavar="QUANTITY")]
_Workload = Annotated[
    OptionalPath,
    _option(
        "-w",
        "--workload",
        text="Pods: Batsim JSON, SWF, openb CSV, manifests, or a name: burst, spaced, realistic.",
    ),
]
_Schedulers = Annotated[
    Names,
    _option("--scheduler", text="Start this scheduler; repeatable.", metavar="CMD"),
]
_Configs = Annotated[
    _Paths,
    _option("--config", text="A KubeSchedulerConfiguration; several are compared."),
]
_Clock = Annotated[
    str, _option("--clock", text="virtual: exact; stock: any program; timeout: as Batkube.")
]
_Out = Annotated[
    OptionalPath,
    _option("--out", text="Write result files, journal, decisions and a report to this folder."),
]
_Export = Annotated[
    OptionalText,
    _option("-e", "--export", text="Write PREFIX_jobs.csv and others.", metavar="PREFIX"),
]
_StartDelay = Annotated[
    float,
    _option("--start-delay", text="Seconds from a binding to the start.", min=0, max=_SECONDS_MAX),
]
_Pull = Annotated[
    float,
    _option(
        "--pull",
        text="Seconds to pull an image the first time on a node.",
        min=0,
        max=_SECONDS_MAX,
    ),
]
_Wide = Annotated[
    str, _option("--wide", text="Jobs wider than a node: keep, split into pods, or scale all.")
]
_Twice = Annotated[bool, _option("--twice", text="Run two times and compare all decisions.")]
_Record = Annotated[
    OptionalPath, _option("--record", text="Write the decisions of the schedulers to this file.")
]
_Replay = Annotated[
    OptionalPath, _option("--replay", text="Repeat recorded decisions; no scheduler is needed.")
]
_Timeout = Annotated[
    float,
    _option(
        "--timeout", text="--clock timeout: longest wait for a decision.", min=0, max=_SECONDS_MAX
    ),
]
_MinDelay = Annotated[
    float,
    _option(
        "--min-delay", text="--clock timeout: shortest wait in a cycle.", min=0, max=_SECONDS_MAX
    ),
]
_MaxStep = Annotated[
    float,
    _option(
        "--max-step", text="--clock timeout: largest step of time.", min=0.001, max=_SECONDS_MAX
    ),
]
_CrashTimeout = Annotated[
    float,
    _option(
        "--crash-timeout",
        text="--clock timeout: stop after so many real seconds without progress.",
        min=0,
        max=_SECONDS_MAX,
    ),
]
_Overcommit = Annotated[
    bool,
    _option("--run-over-allocated", text="Nodes run pods that exceed them; else they refuse."),
]
_EveryTimer = Annotated[
    bool, _option("--every-timer", text="Stop at timers also while no pod waits.")
]
_IdleStep = Annotated[
    float,
    _option(
        "--idle-step",
        text="Skip so many seconds while pods wait in vain: faster, approximate.",
        min=0,
        max=_SECONDS_MAX,
    ),
]
_Batch = Annotated[bool, _option("--batch", text="Deliver what happens at one instant together.")]
_Log = Annotated[
    OptionalPath, _option("--scheduler-log", text="Write the scheduler's output to this file.")
]
_Simulator = Annotated[
    OptionalText,
    _option(
        "--simulator",
        text="Let a Batsim that connects here have the nodes and jobs: tcp://*:28000.",
        metavar="ENDPOINT",
    ),
]
_Until = Annotated[OptionalFloat, _option("--until", text="End at this time of the run.", min=0)]


def add_to(app: EquipoiseTyper) -> None:
    """Add the commands of this group."""
    app.add_typer(kube_app, name="kube")


@kube_app.command("run")
def kube_run(  # noqa: PLR0913, PLR0917  (a parameter is an option of the command)
    context: typer.Context,
    workload: _Workload = None,
    platform: _Platform = None,
    nodes: _Nodes = None,
    cpu: _Cpu = "1",
    memory: _Memory = "64Gi",
    scheduler: _Schedulers = None,
    config: _Configs = None,
    clock: _Clock = "virtual",
    out: _Out = None,
    export: _Export = None,
    journal: NewJournal = None,
    start_delay: _StartDelay = 0.0,
    pull: _Pull = 0.0,
    wide: _Wide = "keep",
    twice: _Twice = False,
    record: _Record = None,
    replay: _Replay = None,
    timeout: _Timeout = 0.02,
    min_delay: _MinDelay = 0.0,
    max_step: _MaxStep = 20.0,
    crash_timeout: _CrashTimeout = 5.0,
    run_over_allocated: _Overcommit = False,
    every_timer: _EveryTimer = False,
    idle_step: _IdleStep = 0.0,
    batch: _Batch = False,
    scheduler_log: _Log = None,
    until: _Until = None,
    simulator: _Simulator = None,
    json: Json = False,
) -> None:
    """Run pods under a Kubernetes scheduler, in virtual time.

    Exit code 1 if pods stay without a node, a node is over-allocated or --twice differs; 3 if the
    scheduler fails.
    """
    from equipoise.cli.kube import run as command

    raise typer.Exit(command.run(context.params, as_json=json))


@kube_app.command("study")
def kube_study(  # noqa: PLR0913, PLR0917  (a parameter is an option of the command)
    context: typer.Context,
    workload: Annotated[
        _Paths,
        _option("-w", "--workload", text="Pods; repeatable. Default: burst, spaced, realistic."),
    ] = None,
    platform: Annotated[
        _Paths,
        _option("-p", "--platform", text="Nodes of each workload, or once for all."),
    ] = None,
    scheduler: Annotated[
        str, _option("--scheduler", text="The scheduler to study.", metavar="CMD")
    ] = "kube-scheduler",
    config: Annotated[
        OptionalPath, _option("--config", text="A KubeSchedulerConfiguration.")
    ] = None,
    timeouts: Annotated[
        str, _option("--timeouts", text="Longest waits for a decision in ms.")
    ] = "1,5,10,20,50",
    max_steps: Annotated[
        str, _option("--max-steps", text="Largest steps of time in seconds.")
    ] = "1,5,20,100",
    min_delays: Annotated[
        str, _option("--min-delays", text="Shortest waits in a cycle in ms.")
    ] = "0",
    repeats: Annotated[int, _option("--repeats", text="Runs of each point.", min=1)] = 3,
    reference: Annotated[
        str, _option("--reference", text="The clock to compare with: virtual or stock.")
    ] = "virtual",
    crash_timeout: _CrashTimeout = 5.0,
    start_delay: _StartDelay = 0.0,
    pull: _Pull = 0.0,
    run_over_allocated: _Overcommit = False,
    scheduler_log: _Log = None,
    out: Annotated[
        OptionalPath, _option("--out", text="Write CSV files and a page to this folder.")
    ] = None,
    json: Json = False,
) -> None:
    """Study how the clock of Batkube changes runs, beside an exact clock.

    A run takes up to its timeout for each step: the default study takes hours.
    """
    from equipoise.cli.kube import study as command

    raise typer.Exit(command.run(context.params, as_json=json))


@kube_app.command("serve")
def kube_serve(  # noqa: PLR0913, PLR0917  (a parameter is an option of the command)
    context: typer.Context,
    workload: _Workload = None,
    platform: _Platform = None,
    nodes: _Nodes = None,
    cpu: _Cpu = "1",
    memory: _Memory = "64Gi",
    host: Annotated[str, _option("--host", text="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, _option("--port", text="The port; 0: a free one.", min=0, max=65535)
    ] = 8001,
    token: Annotated[
        OptionalText,
        _option("--token-file", text="A file with the token that clients send.", metavar="FILE"),
    ] = None,
    tls_cert: Annotated[
        OptionalPath, _option("--tls-cert", text="A certificate in PEM, for https.", metavar="FILE")
    ] = None,
    tls_key: Annotated[
        OptionalPath, _option("--tls-key", text="The key of the certificate.", metavar="FILE")
    ] = None,
    pace: Annotated[
        float,
        _option("--pace", text="Seconds of the cluster per second; 0: steps only.", min=0, max=1e6),
    ] = 1.0,
    start_delay: _StartDelay = 0.0,
    pull: _Pull = 0.0,
    kubeconfig: Annotated[
        OptionalPath, _option("--kubeconfig", text="Write a kubeconfig to this file.")
    ] = None,
) -> None:
    """Serve the Kubernetes API of a simulated cluster, for kubectl and any client."""
    from equipoise.cli.kube import serve as command

    raise typer.Exit(command.run(context.params))


@kube_app.command("build-scheduler")
def kube_build_scheduler(
    version: Annotated[str, _option("--version", text="The version of Kubernetes.")] = "1.36.3",
    output: Annotated[
        OptionalPath, _option("-o", "--output", text="Copy the program to this file, too.")
    ] = None,
    json: Json = False,
) -> None:
    """Build a kube-scheduler whose clock can be virtual; needs Go.

    Its sources are unmodified. The program is kept in the cache and found by 'kube run'.
    """
    from equipoise.cli.kube import build as command

    raise typer.Exit(command.run(version, output, as_json=json))


_Kubeconfig = Annotated[
    OptionalPath, _option("--kubeconfig", text="The cluster and its user.", metavar="FILE")
]
_KubeContext = Annotated[
    OptionalText, _option("--context", text="Of the kubeconfig; default: the current one.")
]
_Server = Annotated[
    OptionalText, _option("--server", text="The API, instead of a kubeconfig.", metavar="URL")
]
_TokenFile = Annotated[
    OptionalPath, _option("--token-file", text="A file with a token for --server.", metavar="FILE")
]


@kube_app.command("import")
def kube_import(  # noqa: PLR0913, PLR0917  (a parameter is an option of the command)
    context: typer.Context,
    kubeconfig: _Kubeconfig = None,
    kube_context: _KubeContext = None,
    server: _Server = None,
    token_file: _TokenFile = None,
    output: Annotated[
        OptionalPath,
        _option("-o", "--output", text="Write nodes and pods as a workload of 'kube run'."),
    ] = None,
    inventory: Annotated[
        OptionalPath, _option("--inventory", text="Write nodes as hosts and pods as VMs.")
    ] = None,
    json: Json = False,
) -> None:
    """Read the nodes and pods of a live cluster; nothing is changed there."""
    from equipoise.cli.kube import live_cluster as command

    raise typer.Exit(command.run_import(context.params, as_json=json))


@kube_app.command("schedule")
def kube_schedule(  # noqa: PLR0913, PLR0917  (a parameter is an option of the command)
    context: typer.Context,
    kubeconfig: _Kubeconfig = None,
    kube_context: _KubeContext = None,
    server: _Server = None,
    token_file: _TokenFile = None,
    policy: Annotated[
        str, _option("--policy", text="first-fit, least-loaded or balance.")
    ] = "balance",
    name: Annotated[
        str, _option("--name", text="Serve pods with this schedulerName.", metavar="NAME")
    ] = "default-scheduler",
    deschedule: Annotated[
        OptionalFloat,
        _option(
            "--deschedule",
            text="Evict pods for balance, at most this often.",
            min=0,
            max=_SECONDS_MAX,
        ),
    ] = None,
) -> None:
    """Schedule pods of a cluster with the placement of Equipoise.

    It also works in a simulation: equipoise kube run --clock stock --scheduler "equipoise kube
    schedule --server {url}".
    """
    from equipoise.cli.kube import live_cluster as command

    raise typer.Exit(command.run_scheduler(context.params))
