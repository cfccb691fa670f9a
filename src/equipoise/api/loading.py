"""Loading: reads files and built-in scenarios into the types of the model, with every check."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from equipoise import files
from equipoise.errors import InputProblem, InvalidInput
from equipoise.files.document import FILE_SIZE_MAX, FileFormat
from equipoise.model.diagnostics import Diagnostics
from equipoise.model.inventory import Amendment, Inventory
from equipoise.model.plan import Plan
from equipoise.model.problem import PlanningProblem
from equipoise.model.problem.problem import CaseFile
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.roles.lint import report_layout_errors
from equipoise.spec.rules import check_rules

_GZIP: Final = b"\x1f\x8b"
_MIB: Final = 1024 * 1024
_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json", ".gz"})
_TOP_KEY: Final = re.compile(r"^([A-Za-z_]+)\s*:", re.MULTILINE)

_SIMULATED_S: Final = 86_400
"""The length of the simulation of an inventory; a plan that takes longer runs to its end."""

Loaded = Inventory | Scenario | PlanningProblem | Plan | UpgradeCampaign


def load(name: str | Path) -> Loaded:
    """Read a file, or a built-in scenario or campaign by its name.

    The keys of the file say what it is: an inventory, a scenario, a planning problem (BtrPlace's
    instances too, also compressed), a plan or an upgrade campaign.

    :raises InvalidInput: with every problem of the file, each with its line and its fix.
    """
    path = Path(name)
    # A misspelt file name must not become "there is no such scenario".
    if not (path.suffix in _SUFFIXES or path.exists()):
        return _load_builtin(str(name))
    from equipoise.adapters.btrplace import format as btrplace

    content = _decompressed(read_bytes(path), str(path))
    if btrplace.is_instance(content):
        return btrplace.read_instance(content, str(path))
    keys = _top_keys(content)
    # From the most specific key to the least: a scenario and a problem both have ``cluster``.
    if "steps" in keys:
        return files.parse_plan(content, str(path))
    if "requests" in keys:
        return files.parse_campaign(content, str(path), check_rules)
    if "duration_s" in keys:
        return files.parse_scenario(content, str(path), check_cluster)
    if "cluster" in keys:
        return files.parse_problem(content, str(path), check_cluster)
    return files.parse_inventory(content, str(path), check_cluster)


def load_world(name: str) -> tuple[Scenario, Path | None]:
    """Return the scenario of a simulated world, and the folder of its traces.

    An inventory, or the cluster of a planning problem, is a world whose demand stays as it is.
    """
    loaded = load(name)
    if isinstance(loaded, Scenario):
        return loaded, Path(name).parent if Path(name).exists() else None
    if isinstance(loaded, PlanningProblem):
        loaded = loaded.cluster
    if not isinstance(loaded, Inventory):
        what, cure = f"is no world but a {type(loaded).__name__}", "name an inventory or a scenario"
        raise InvalidInput.of(name, what, key="--world", cure=cure, code="wrong-type")
    return Scenario(name=loaded.name, duration_s=_SIMULATED_S, cluster=loaded), None


def _load_builtin(name: str) -> Scenario | UpgradeCampaign:
    from equipoise.sim.builtin import (
        builtin_campaign,
        builtin_campaigns,
        builtin_scenario,
    )

    if any(campaign.name == name for campaign in builtin_campaigns()):
        return builtin_campaign(name)
    return builtin_scenario(name)


def _top_keys(content: bytes) -> frozenset[str]:
    """Return the keys at the top of a document; none of one that cannot be read."""
    text = content.decode("utf-8-sig", errors="replace")
    if text.lstrip()[:1] == "{":
        try:
            return frozenset(json.loads(text))
        except ValueError:
            return frozenset()  # the parser of inventories names the line
    return frozenset(_TOP_KEY.findall(text))


def check_cluster(inventory: Inventory, diagnostics: Diagnostics) -> None:
    """Check what the model alone cannot: rules by their formulas, layouts by their meaning."""
    check_rules(inventory, diagnostics)
    report_layout_errors(inventory, diagnostics)


def read_inventory_with_warnings(path: Path) -> tuple[Inventory, list[InputProblem]]:
    """Read a cluster, and find values in it that are probably in another unit."""
    content, source = read_bytes(path), str(path)
    inventory = files.parse_inventory(content, source, check_cluster)
    return inventory, files.find_warnings(inventory, content, source)


def read_plan(path: Path, problem: PlanningProblem | None = None) -> Plan:
    """Read a plan, also gzipped; with a ``problem`` also a plan in BtrPlace JSON."""
    source = str(path)
    content = _decompressed(read_bytes(path), source)
    if problem is not None and is_btrplace_plan(content):
        from equipoise.adapters.btrplace import format as btrplace

        return btrplace.read_plan(content, source, problem)
    return files.parse_plan(content, source)


def read_scenario(path: Path) -> Scenario:
    """Read a scenario."""
    return files.parse_scenario(read_bytes(path), str(path), check_cluster)


def read_case(path: Path) -> CaseFile:
    """Read a case."""
    return files.parse_case(read_bytes(path), str(path), check_cluster)


def read_amendment(path: Path, base: Inventory) -> Amendment:
    """Read additions and changes to a cluster."""
    return files.parse_amendment(read_bytes(path), str(path), base, check_cluster)


def read_problem(path: Path) -> PlanningProblem:
    """Read a planning problem, an inventory or a BtrPlace instance, also gzipped."""
    from equipoise.adapters.btrplace import format as btrplace

    source = str(path)
    content = _decompressed(read_bytes(path), source)
    if btrplace.is_instance(content):
        # It has library rules only, so the checks of names and formulas have nothing to find.
        return btrplace.read_instance(content, source)
    return files.parse_problem(content, source, check_cluster)


def is_btrplace_plan(content: bytes) -> bool:
    """Return whether a file is a BtrPlace plan; such a plan contains its model as ``origin``."""
    return content.lstrip()[:1] == b"{" and b'"origin"' in content and b'"actions"' in content


def read_bytes(path: Path) -> bytes:
    """Read a file up to the size limit."""
    try:
        files.check_size(path.stat().st_size, str(path))
        return path.read_bytes()
    except OSError as error:
        cure = "name a file" if path.is_dir() else "check the name and the permissions"
        what = f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise InvalidInput.of(str(path), what, cure=cure, code="file-not-readable") from error


def _decompressed(content: bytes, source: str) -> bytes:
    """Return the content of a gzipped file, or the content as it is.

    A small file can hold gigabytes, so decompression stops at the size limit.
    """
    if not content.startswith(_GZIP):
        return content
    import gzip
    import zlib
    from io import BytesIO

    size_max = FILE_SIZE_MAX[FileFormat.JSON]
    try:
        with gzip.GzipFile(fileobj=BytesIO(content)) as packed:
            # One byte more than allowed shows that the content is too large.
            inner = packed.read(size_max + 1)
    except (OSError, EOFError, zlib.error) as error:
        what = f"cannot be decompressed: {str(error).lower()}"
        cure = "compress it again with gzip"
        raise InvalidInput.of(source, what, cure=cure, code="file-not-readable") from error
    if len(inner) > size_max:
        what, cure = "is too large when decompressed", f"at most {size_max // _MIB} MiB"
        raise InvalidInput.of(source, what, cure=cure, code="too-large")
    return inner
