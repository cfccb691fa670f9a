"""The worker's side of the pipe. Runs in the environment of a target, so it imports only stdlib.

A question is a line of JSON, and so is its answer:

    {"ask": "hello"}                 -> {"name", "version"}
    {"ask": "plan", "cluster": ...}  -> {"moves": [{"vm", "from", "to"}], "seconds"} or {"crash"}
    {"ask": "admits", "questions": [...]} -> {"answers": [{"passes": [...]} or {"crash"}, ...]}
    {"ask": "place", "questions": [...]}  -> {"answers": [{"placed": {...}} or {"crash"}, ...]}
    {"ask": "act", "questions": [...]}    -> {"answers": [{"acts": [...]} or {"crash"}, ...]}
"""

import importlib.metadata
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

Handler = Callable[..., dict[str, Any]]


def serve(distribution: str, **answers: Handler) -> None:
    """Answer questions until the input ends.

    A handler receives the fields of its question as keyword arguments.
    """
    # Targets may print. Their output goes to stderr, so that the pipe has only answers.
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line), distribution, answers)), file=pipe, flush=True)


def _answer(
    question: dict[str, Any], distribution: str, answers: dict[str, Handler]
) -> dict[str, Any]:
    ask = question.pop("ask")
    if ask == "hello":
        return {"name": distribution, "version": importlib.metadata.version(distribution)}
    answer = answers[ask]
    try:
        return answer(**question)
    except (Exception, SystemExit) as error:  # a target that exits has crashed as well
        return {"crash": describe(error)}


def describe(error: BaseException) -> str:
    """The error and its origin in one line, which is the same for the same defect."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}"
    return f"{type(error).__name__}: {error} ({where})"


def normalised(error: BaseException, package: str) -> str:
    """The type of an error and its place in a package: the same for the same defect.

    The message is left out, because it may contain names of one case.
    """
    folder = os.path.dirname(sys.modules[package].__file__ or "")
    places = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    inside = [(code, line) for code, line in places if code.co_filename.startswith(folder)]
    code, line = (inside or places)[-1]
    where = f"{os.path.relpath(code.co_filename, os.path.dirname(folder))}:{line} in {code.co_name}"
    return f"{type(error).__name__} ({where})"


def residents(cluster: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The VMs of each host, in their order; raise ``ValueError`` for an unknown host."""
    vms_of: dict[str, list[dict[str, Any]]] = {host["id"]: [] for host in cluster["hosts"]}
    for vm in cluster["vms"]:
        if vm["host"] not in vms_of:
            raise ValueError(f"VM {vm['id']} is on the unknown host {vm['host']}")
        vms_of[vm["host"]].append(vm)
    return vms_of
