"""Checks the options of ``batsim`` and makes a setup of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from equipoise.adapters.batsim.protocol.options import ProtocolOptions
from equipoise.adapters.batsim.protocol.setup import BatsimSetup
from equipoise.adapters.batsim.transport.connection import AnswerLimits
from equipoise.adapters.batsim.transport.launch import SchedulerOptions
from equipoise.cli.file_io import read_text
from equipoise.cli.jobs import batsim
from equipoise.errors import InputProblem, InvalidInput

_REFUSED: Final = {
    "workflow": ("-W", "workflows are not simulated", "convert the workflow to jobs"),
    "workflow_start": ("--WS", "workflows are not simulated", "convert the workflow to jobs"),
    "enable_redis": (
        "--enable-redis",
        "there is no side channel over Redis",
        "leave it out: profiles are in the messages",
    ),
    "sg_cfg": (
        "--sg-cfg",
        "SimGrid does not compute this simulation, and a setting would change its results",
        "leave it out",
    ),
}
"""Options that would change the results: the key on the command line, why, and the cure."""
_WITHOUT_EFFECT: Final = {
    "workflow_jobs_limit": "--workflow-jobs-limit",
    "ignore_beyond_last_workflow": "--ignore-beyond-last-workflow",
    "redis_hostname": "--redis-hostname",
    "redis_port": "--redis-port",
    "redis_prefix": "--redis-prefix",
    "sg_log": "--sg-log",
}
_DEFAULT_PREFIX: Final = {4: "out", 5: "out/"}
_VERBOSITIES: Final = ("quiet", "network-only", "information", "debug")


def run(values: Mapping[str, Any], *, as_json: bool) -> int:
    """Run the command with the values of its options."""
    options = make_options(values)
    if values["dump_execution_context"]:
        return batsim.print_execution_context(options)
    return batsim.run(options, as_json=as_json)


def make_options(values: Mapping[str, Any]) -> batsim.BatsimOptions:
    """Return the options of the run; ``InvalidInput`` names all that are refused."""
    problems = [
        _problem(key, what, cure, "unsupported-feature")
        for name, (key, what, cure) in _REFUSED.items()
        if values[name]
    ]
    problems += _contradictions(values)
    if values["verbosity"] not in _VERBOSITIES:
        cure = f"write one of {', '.join(_VERBOSITIES)}"
        problems.append(_problem("-v", f"{values['verbosity']!r} is no verbosity", cure))
    if problems:
        raise InvalidInput("batsim", problems)
    notes = [f"{key} has no effect" for name, key in _WITHOUT_EFFECT.items() if values[name]]
    return batsim.BatsimOptions(
        setup=_make_setup(values),
        scheduler=SchedulerOptions(
            endpoint=values["socket_endpoint"],
            command=values["scheduler"],
            log=values["scheduler_log"],
            limits=AnswerLimits(
                first_s=values["start_timeout"] or None, each_s=values["scheduler_timeout"] or None
            ),
        ),
        protocol=values["protocol"],
        no_scheduler=values["no_sched"],
        out=values["out"],
        record=values["record"],
        replay=values["replay"],
        show_messages=values["verbosity"] in {"network-only", "debug"},
        quiet=values["quiet"] or values["verbosity"] == "quiet",
        notes=notes,
    )


def _problem(key: str, what: str, cure: str, code: str = "invalid-value") -> InputProblem:
    return InputProblem(key=key, what=what, cure=cure, code=code)


def _contradictions(values: Mapping[str, Any]) -> list[InputProblem]:
    """Return options that exclude each other."""
    sources = {
        "--scheduler or -s": values["scheduler"] or values["socket_endpoint"],
        "--no-sched": values["no_sched"],
        "--replay": values["replay"],
    }
    given = [name for name, value in sources.items() if value]
    problems = []
    if len(given) > 1:
        what = f"excludes {given[1]}"
        problems.append(_problem(given[0], what, "name one scheduler", "contradiction"))
    if values["sched_cfg"] is not None and values["sched_cfg_file"] is not None:
        what = "excludes --sched-cfg-file"
        problems.append(_problem("--sched-cfg", what, "leave one out", "contradiction"))
    if values["out"] is not None and values["replay"] is not None:
        problems.append(_problem("--out", "excludes --replay", "leave one out", "contradiction"))
    if values["scheduler_log"] is not None and values["scheduler"] is None:
        what = "needs a scheduler that is started here"
        problems.append(_problem("--scheduler-log", what, "add --scheduler CMD", "missing-key"))
    return problems


def _choose_prefix(values: Mapping[str, Any], layout: int) -> str | None:
    if values["out"] is not None:
        return f"{values['out']}/"
    return _DEFAULT_PREFIX[layout] if values["export"] is None else values["export"] or None


def _make_setup(values: Mapping[str, Any]) -> BatsimSetup:
    config, layout = values["sched_cfg"] or "", values["output_layout"]
    if values["sched_cfg_file"] is not None:
        config = read_text(values["sched_cfg_file"])
    return BatsimSetup(
        platform=values["platform"],
        workloads=values["workload"] or (),
        events=values["events"] or (),
        export=_choose_prefix(values, layout),
        master=values["master_host"],
        roles=values["add_role_to_hosts"] or (),
        hosts_max=values["mmax"] or None,
        hosts_of_workload=values["mmax_workload"],
        host_states=not values["disable_machine_state_tracing"],
        options=ProtocolOptions(
            output_layout=layout,
            energy=values["energy"],
            batsim_energy=values["batsim_energy"],
            compute_sharing=values["enable_compute_sharing"],
            storage_sharing=not values["disable_storage_sharing"],
            dynamic_jobs=values["enable_dynamic_jobs"],
            acknowledge_dynamic_jobs=values["acknowledge_dynamic_jobs"],
            profile_reuse=values["enable_profile_reuse"],
            forward_profiles=values["forward_profiles_on_submission"],
            forward_unknown_events=values["forward_unknown_events"],
            scheduler_config=config,
            numeric_state=values["numeric_state"],
            start_epsilon_s=values["start_epsilon"],
        ),
    )
