"""Files: inventories, scenarios, plans, cases, problems, campaigns in YAML and JSON, both ways.

Enter by ``parse_inventory``, ``parse_scenario`` and the others beside them, with the bytes of a
file, and leave by ``to_yaml`` and ``to_json``. What is wrong is told all at once, each with line,
key and cure. Never opens a file: the caller reads it, after ``check_size``.
"""

from equipoise.model.files.assign import assigned
from equipoise.model.files.check import problems_of
from equipoise.model.files.parse import (
    parse_amendment,
    parse_campaign,
    parse_case,
    parse_inventory,
    parse_plan,
    parse_problem,
    parse_request,
    parse_scenario,
    parse_story,
)
from equipoise.model.files.schema import schema
from equipoise.model.files.text import check_size
from equipoise.model.files.write import to_json, to_yaml

__all__ = [
    "assigned",
    "check_size",
    "parse_amendment",
    "parse_campaign",
    "parse_case",
    "parse_inventory",
    "parse_plan",
    "parse_problem",
    "parse_request",
    "parse_scenario",
    "parse_story",
    "problems_of",
    "schema",
    "to_json",
    "to_yaml",
]
