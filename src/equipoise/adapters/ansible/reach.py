"""The preflight of a run: Ansible parses every playbook, and logs in to every host."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from equipoise.adapters.ansible.batch import one_line, perform
from equipoise.adapters.ansible.job import HostConnection, JobOutcome, PlaybookJob, RunOptions
from equipoise.adapters.ansible.process import (
    HOSTS_VARIABLE,
    PROGRAM,
    StopSignal,
    inherited_environment,
    search_path,
    settings_of,
)
from equipoise.errors import InputProblem, InvalidInput

_REACH: Final = Path(__file__).with_name("reach.yaml")
_PARSE_TIMEOUT_S: Final = 120
_AT_LINE: Final = re.compile(r"\bline[ :]+(\d+)")
_NOISE: Final = re.compile(r"^(\[WARNING\]|\[DEPRECATION|Origin:|$)")


def check_modules(playbooks: Iterable[Path], run_options: RunOptions) -> None:
    """Raise ``InvalidInput`` for the first playbook that Ansible cannot parse.

    Ansible resolves modules, roles and imported files while it parses. Files that a playbook
    includes while it runs are not read.
    """
    for playbook in dict.fromkeys(playbooks):
        output = _parse(playbook, run_options)
        if output is not None:
            found = _AT_LINE.search(output)
            problem = InputProblem(
                key="",
                what=f"Ansible cannot parse the playbook: {one_line(_first_lines(output))}",
                cure="install the collection or correct the name",
                line=int(found[1]) if found else None,
                code="not-a-playbook",
            )
            raise InvalidInput(str(playbook), [problem])


def _parse(playbook: Path, run_options: RunOptions) -> str | None:
    """Return the output of Ansible if it refuses a playbook, or None."""
    with tempfile.TemporaryDirectory(prefix="equipoise-parse-") as folder:
        config = Path(folder, "ansible.cfg")
        config.touch()
        roles = str(playbook.parent / "roles")
        done = subprocess.run(
            [
                *(PROGRAM, "--syntax-check", "-i", "localhost,"),
                *("-e", f"{HOSTS_VARIABLE}=localhost", str(playbook)),
            ],
            env=inherited_environment(os.environ)
            | settings_of((), run_options, os.environ)
            | {
                "ANSIBLE_CONFIG": str(config),
                "ANSIBLE_HOME": folder,
                "ANSIBLE_ROLES_PATH": ":".join(
                    filter(None, (roles, os.environ.get("ANSIBLE_ROLES_PATH")))
                ),
                "PATH": search_path(),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=_PARSE_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    return None if done.returncode == 0 else (done.stderr or done.stdout)


def _first_lines(output: str) -> str:
    lines = [line for line in output.splitlines() if not _NOISE.match(line)]
    return " ".join(lines[:3])


def unreachable_hosts(
    connections: Mapping[str, HostConnection], run_options: RunOptions, stop_signal: StopSignal
) -> dict[str, str]:
    """Log in to every host at the same time; return the reason for each one that fails."""
    jobs = [PlaybookJob(host=host, action="preflight", playbook=_REACH) for host in connections]
    if not jobs:
        return {}
    batch = perform(jobs, connections, run_options, stop_signal)
    if batch.is_interrupted:
        raise KeyboardInterrupt
    return {
        result.job.host: result.reason
        for result in batch.results
        # A switch may not know the command; it has answered. A step as root must succeed.
        if result.outcome in (JobOutcome.UNREACHABLE, JobOutcome.UNKNOWN)
        or (result.outcome is JobOutcome.FAILED and connections[result.job.host].is_root_needed)
    }
