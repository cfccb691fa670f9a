"""The arguments of ``batsim``: the options of Batsim 4 by their names, and a few of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from equipoise.cli.typer_app import Json, Names, OptionalInt, OptionalPath, OptionalText

_Paths = Optional[list[Path]]  # noqa: UP045  (Typer evaluates the annotation)


def _flag(*names: str, text: str) -> Any:
    return typer.Option(*names, help=text)


def _print_version(requested: bool) -> None:
    if requested:
        from equipoise.adapters.batsim.summary import COMPATIBLE_VERSION

        typer.echo(COMPATIBLE_VERSION)
        raise typer.Exit


_Platform = Annotated[Path, typer.Option("-p", "--platform", help="A SimGrid platform.")]
_Workloads = Annotated[
    _Paths, typer.Option("-w", "--workload", help="Jobs: a Batsim workload; repeatable.")
]
_Events = Annotated[
    _Paths, typer.Option("--events", help="External events, one JSON object per line; repeatable.")
]
_Endpoint = Annotated[
    OptionalText,
    typer.Option(
        "-s",
        "--socket-endpoint",
        metavar="ENDPOINT",
        help="Where the scheduler listens; default: tcp://localhost:28000.",
    ),
]
_Command = Annotated[
    OptionalText,
    typer.Option(
        "--scheduler",
        metavar="CMD",
        help="Start this scheduler; {endpoint} or {port} becomes a free address.",
    ),
]
_Log = Annotated[
    OptionalPath, typer.Option("--scheduler-log", help="Write the scheduler's output to this file.")
]
_AnswerS = Annotated[
    float, typer.Option("--scheduler-timeout", min=0, help="Limit of each answer; 0: none.")
]
_FirstS = Annotated[
    float, typer.Option("--start-timeout", min=0, help="Limit of the first answer; 0: none.")
]
_Master = Annotated[
    str, typer.Option("-m", "--master-host", help="The host that runs no jobs.", metavar="NAME")
]
_Roles = Annotated[
    Names,
    typer.Option(
        "-r", "--add-role-to-hosts", metavar="HOSTS:ROLE", help="Add a role to hosts; repeatable."
    ),
]
_Export = Annotated[
    OptionalText,
    typer.Option(
        "-e",
        "--export",
        metavar="PREFIX",
        help="Write PREFIX_jobs.csv and others; default: out, or out/ in layout 5.",
    ),
]
_Protocol = Annotated[
    int,
    typer.Option(
        "--protocol",
        min=4,
        max=5,
        help="4: JSON of Batsim 3 and 4; 5: batprotocol in JSON, --sched-cfg is its initial text.",
    ),
]
_Layout = Annotated[
    int,
    typer.Option("--output-layout", min=4, max=5, help="Result files as in Batsim 4 or 5."),
]
_Energy = Annotated[bool, _flag("-E", "--energy", text="Measure energy; allow power states.")]
_BatsimEnergy = Annotated[
    bool, _flag("--batsim-energy", text="Charge energy as Batsim does, instead of exactly.")
]
_Mmax = Annotated[OptionalInt, typer.Option("--mmax", min=0, help="Use so many hosts; 0: all.")]
_MmaxWorkload = Annotated[
    bool, _flag("--mmax-workload", text="Use as many hosts as the workloads state.")
]
_Forward = Annotated[
    bool, _flag("--forward-profiles-on-submission", text="Send the profile with each job.")
]
_Dynamic = Annotated[bool, _flag("--enable-dynamic-jobs", text="The scheduler may register jobs.")]
_Acknowledge = Annotated[
    bool, _flag("--acknowledge-dynamic-jobs", text="Send JOB_SUBMITTED for registered jobs.")
]
_Reuse = Annotated[bool, _flag("--enable-profile-reuse", text="Keep profiles that no job uses.")]
_Sharing = Annotated[bool, _flag("--enable-compute-sharing", text="Jobs may share hosts.")]
_NoStorageSharing = Annotated[
    bool, _flag("--disable-storage-sharing", text="Jobs may not share storage hosts.")
]
_Unknown = Annotated[bool, _flag("--forward-unknown-events", text="Send events of any type.")]
_SchedConfig = Annotated[
    OptionalText, typer.Option("--sched-cfg", help="A text for the scheduler's configuration.")
]
_SchedConfigFile = Annotated[
    OptionalPath, typer.Option("--sched-cfg-file", help="The same, from a file.")
]
_Out = Annotated[
    OptionalPath,
    typer.Option("--out", help="Write result files, journal and a report to this folder."),
]
_NoSched = Annotated[bool, _flag("--no-sched", text="Run the jobs one by one, without scheduler.")]
_NoHostStates = Annotated[
    bool, _flag("--disable-machine-state-tracing", text="Write no PREFIX_machine_states.csv.")
]
_NoPaje = Annotated[
    bool, _flag("--disable-schedule-tracing", text="No effect: a Paje trace is never written.")
]
_Verbosity = Annotated[
    str,
    typer.Option(
        "-v", "--verbosity", help="quiet, information, network-only or debug (shows messages)."
    ),
]
_Quiet = Annotated[bool, _flag("-q", "--quiet", text="Same as -v quiet.")]
_Context = Annotated[
    bool, _flag("--dump-execution-context", text="Print the endpoint and the prefix, run nothing.")
]
_Epsilon = Annotated[
    float,
    typer.Option("--start-epsilon", min=0, help="Submit no job before this time, such as 1e-6."),
]
_Numeric = Annotated[
    bool, _flag("--numeric-state", text="Send power states as numbers; Batsim sends text.")
]
_Record = Annotated[
    OptionalPath, typer.Option("--record", help="Write every message to this file, as JSON lines.")
]
_Replay = Annotated[
    OptionalPath,
    typer.Option("--replay", help="Use the replies of a record, and compare all messages."),
]
_Version = Annotated[
    bool,
    typer.Option(
        "--version",
        is_eager=True,
        callback=_print_version,
        help="Print the version of Batsim whose files and messages these are.",
    ),
]
# Options of Batsim that are refused, or accepted without effect; ``batsim_options`` says which.
_Workflows = Annotated[Names, typer.Option("-W", "--workflow", hidden=True)]
_WorkflowStarts = Annotated[Names, typer.Option("--WS", "--workflow-start", hidden=True)]
_WorkflowLimit = Annotated[OptionalText, typer.Option("--workflow-jobs-limit", hidden=True)]
_WorkflowIgnore = Annotated[bool, typer.Option("--ignore-beyond-last-workflow", hidden=True)]
_Redis = Annotated[bool, typer.Option("--enable-redis", hidden=True)]
_RedisHost = Annotated[OptionalText, typer.Option("--redis-hostname", hidden=True)]
_RedisPort = Annotated[OptionalText, typer.Option("--redis-port", hidden=True)]
_RedisPrefix = Annotated[OptionalText, typer.Option("--redis-prefix", hidden=True)]
_SimGridConfig = Annotated[Names, typer.Option("--sg-cfg", hidden=True)]
_SimGridLog = Annotated[Names, typer.Option("--sg-log", hidden=True)]


def batsim(  # noqa: PLR0913, PLR0917  (a parameter is an option of the command)
    context: typer.Context,
    platform: _Platform,
    workload: _Workloads = None,
    events: _Events = None,
    socket_endpoint: _Endpoint = None,
    scheduler: _Command = None,
    scheduler_log: _Log = None,
    scheduler_timeout: _AnswerS = 600.0,
    start_timeout: _FirstS = 60.0,
    export: _Export = None,
    out: _Out = None,
    protocol: _Protocol = 4,
    output_layout: _Layout = 4,
    master_host: _Master = "master_host",
    add_role_to_hosts: _Roles = None,
    energy: _Energy = False,
    batsim_energy: _BatsimEnergy = False,
    mmax: _Mmax = None,
    mmax_workload: _MmaxWorkload = False,
    forward_profiles_on_submission: _Forward = False,
    enable_dynamic_jobs: _Dynamic = False,
    acknowledge_dynamic_jobs: _Acknowledge = False,
    enable_profile_reuse: _Reuse = False,
    enable_compute_sharing: _Sharing = False,
    disable_storage_sharing: _NoStorageSharing = False,
    forward_unknown_events: _Unknown = False,
    sched_cfg: _SchedConfig = None,
    sched_cfg_file: _SchedConfigFile = None,
    no_sched: _NoSched = False,
    disable_machine_state_tracing: _NoHostStates = False,
    disable_schedule_tracing: _NoPaje = False,
    verbosity: _Verbosity = "information",
    quiet: _Quiet = False,
    dump_execution_context: _Context = False,
    start_epsilon: _Epsilon = 0.0,
    numeric_state: _Numeric = False,
    record: _Record = None,
    replay: _Replay = None,
    workflow: _Workflows = None,
    workflow_start: _WorkflowStarts = None,
    workflow_jobs_limit: _WorkflowLimit = None,
    ignore_beyond_last_workflow: _WorkflowIgnore = False,
    enable_redis: _Redis = False,
    redis_hostname: _RedisHost = None,
    redis_port: _RedisPort = None,
    redis_prefix: _RedisPrefix = None,
    sg_cfg: _SimGridConfig = None,
    sg_log: _SimGridLog = None,
    version: _Version = False,
    json: Json = False,
) -> None:
    """Run batch jobs under a Batsim scheduler, over ZeroMQ.

    Exit code 1 if a replay differs, 3 if the scheduler fails or breaks the protocol.
    """
    from equipoise.cli.jobs import batsim_options

    raise typer.Exit(batsim_options.run(context.params, as_json=json))
