"""Reading the files that a person names."""

from __future__ import annotations

from pathlib import Path

from equipoise.errors import InvalidInput, Problem
from equipoise.model import files
from equipoise.model.amendment import Amendment
from equipoise.model.case import CaseFile
from equipoise.model.files.findings import Findings
from equipoise.model.files.text import SIZE_MAX, Language
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.problem import Problem as ClusterProblem
from equipoise.model.story.scenario import Scenario
from equipoise.roles.lint import refuse_defects
from equipoise.spec.rules import check_rules

_GZIP = b"\x1f\x8b"
_MIB = 1024 * 1024


def check_cluster(inventory: Inventory, found: Findings) -> None:
    """Check what the model alone cannot know: rules by their formulas, layouts by their meaning."""
    check_rules(inventory, found)
    refuse_defects(inventory, found)


def read_inventory(path: Path) -> Inventory:
    """Read a cluster."""
    return files.parse_inventory(read_bytes(path), str(path), check_cluster)


def read_plan(path: Path, problem: ClusterProblem | None = None) -> Plan:
    """Read a plan; if it is for a ``problem``, one in BtrPlace's JSON too, and packed ones."""
    source = str(path)
    content = _unpacked(read_bytes(path), source)
    if problem is not None and is_btrplace_plan(content):
        from equipoise.model.files import btrplace

        return btrplace.read_plan(content, source, problem)
    return files.parse_plan(content, source)


def read_scenario(path: Path) -> Scenario:
    """Read a scenario."""
    return files.parse_scenario(read_bytes(path), str(path), check_cluster)


def read_case(path: Path) -> CaseFile:
    """Read a case."""
    return files.parse_case(read_bytes(path), str(path), check_cluster)


def read_amendment(path: Path, base: Inventory) -> Amendment:
    """Read what is to be added to a cluster or changed in it."""
    return files.parse_amendment(read_bytes(path), str(path), base, check_cluster)


def read_problem(path: Path) -> ClusterProblem:
    """Read a problem: one of ours, an inventory, or an instance of BtrPlace; packed ones too."""
    from equipoise.model.files import btrplace

    source = str(path)
    content = _unpacked(read_bytes(path), source)
    if btrplace.is_instance(content):
        # Whoever it names was made for it, and it has no rules but those of the library.
        return btrplace.read_instance(content, source)
    return files.parse_problem(content, source, check_cluster)


def is_btrplace_plan(content: bytes) -> bool:
    """Whether a file is a plan in BtrPlace's JSON: it has the whole model that it begins with."""
    return content.lstrip()[:1] == b"{" and b'"origin"' in content and b'"actions"' in content


def read_text(path: Path) -> str:
    """Read a text."""
    try:
        return read_bytes(path).decode("utf-8-sig")  # a mark of order at the start is no text
    except UnicodeDecodeError as error:
        problem = Problem(key="", what=f"byte {error.start} is not UTF-8", cure="save it as UTF-8")
        raise InvalidInput(str(path), [problem]) from None


def read_bytes(path: Path) -> bytes:
    """Read a file, if it is not larger than any may be."""
    try:
        files.check_size(path.stat().st_size, str(path))
        return path.read_bytes()
    except OSError as error:
        cure = "name a file" if path.is_dir() else "is the name right, and may you read it?"
        what = f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise InvalidInput(str(path), [Problem(key="", what=what, cure=cure)]) from error


def _unpacked(content: bytes, source: str) -> bytes:
    """What a file packed by gzip holds, and any other as it is. A small file may hold gigabytes, so
    that no more is unpacked than a file may have."""
    if not content.startswith(_GZIP):
        return content
    import gzip
    import zlib
    from io import BytesIO

    most = SIZE_MAX[Language.JSON]
    try:
        with gzip.GzipFile(fileobj=BytesIO(content)) as packed:
            inner = packed.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        what = f"cannot be unpacked: {str(error).lower()}"
        problem = Problem(key="", what=what, cure="pack it again, with gzip")
        raise InvalidInput(source, [problem]) from error
    if len(inner) > most:
        problem = Problem(key="", what="is too large unpacked", cure=f"at most {most // _MIB} MiB")
        raise InvalidInput(source, [problem])
    return inner
