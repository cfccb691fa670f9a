"""Files: inventories, scenarios, plans, cases, problems and campaigns in YAML and JSON, both ways.

Enter by ``parse_inventory``, ``parse_scenario`` and their siblings with the bytes of a file, and
by ``to_yaml`` and ``to_json`` with a value. An error lists every problem of the file, each with
line, key and fix. Never opens a file: the caller reads it, after ``check_size``.
"""

from equipoise.files.check import find_problems
from equipoise.files.document import check_size
from equipoise.files.overrides import override_estimates, override_scenario
from equipoise.files.parse import (
    find_warnings,
    parse_amendment,
    parse_campaign,
    parse_case,
    parse_inventory,
    parse_plan,
    parse_problem,
    parse_request,
    parse_scenario,
    parse_scenario_or_inventory,
)
from equipoise.files.schema import json_schema
from equipoise.files.write import to_json, to_yaml

__all__ = [
    "check_size",
    "find_problems",
    "find_warnings",
    "json_schema",
    "override_estimates",
    "override_scenario",
    "parse_amendment",
    "parse_campaign",
    "parse_case",
    "parse_inventory",
    "parse_plan",
    "parse_problem",
    "parse_request",
    "parse_scenario",
    "parse_scenario_or_inventory",
    "to_json",
    "to_yaml",
]
