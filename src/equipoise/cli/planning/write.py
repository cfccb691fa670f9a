"""Writing plans to files: ours in YAML or JSON, BtrPlace's in its JSON."""

from __future__ import annotations

from pathlib import Path

from equipoise.errors import InvalidInput
from equipoise.errors import Problem as Mistake
from equipoise.model.files import btrplace, to_json, to_yaml
from equipoise.model.plan import Plan
from equipoise.model.problem import Problem


def write_plan(
    plan: Plan, problem: Problem, path: Path, *, as_btrplace: bool = False, line: bool = False
) -> None:
    """Write a plan, packed if the name ends in .gz; as one more ``line`` of a file, if asked to."""
    if as_btrplace:
        content = btrplace.write_plan(plan, problem)
    elif line or _is_json(path):
        content = to_json(plan, indent=0 if line else 2).encode()
    else:
        content = to_yaml(plan).encode()
    if path.suffix == ".gz":
        import gzip

        content = gzip.compress(content, mtime=0)
    try:
        if line:
            with path.open("ab") as stream:
                stream.write(content)
        else:
            path.write_bytes(content)
    except OSError as error:
        what = f"cannot be written: {(error.strerror or str(error)).lower()}"
        raise InvalidInput(str(path), [Mistake(key="", what=what, cure="name another")]) from error


def _is_json(path: Path) -> bool:
    return path.suffix == ".json" or path.suffixes[-2:] == [".json", ".gz"]
