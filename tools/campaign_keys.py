"""Print docs/upgrade-keys.md: every key of a campaign and of an access file, from the model.

    python tools/campaign_keys.py > docs/upgrade-keys.md

The descriptions are the docstrings of the fields, which ``equipoise schema`` prints as well.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from equipoise.adapters.ansible.access import AnsibleAccess
from equipoise.files import json_schema
from equipoise.files.schema import describe_fields

HEAD = """# The keys of an upgrade campaign

Every key of a campaign file, and of the access file of Ansible. `tools/campaign_keys.py` makes
this page from the model, so it has what this version reads. [upgrade.md](upgrade.md) explains how
they work together; [openstack.yaml](../examples/upgrade/openstack.yaml) is an example of 22
machines. [files.md](files.md) has the other keys of a cluster, its hosts and its VMs.
"""
TITLES = {
    "UpgradeCampaign": "The campaign",
    "UpgradeSettings": "settings",
    "HostFailures": "settings.host_failures",
    "PaperReadings": "settings.readings",
    "Catalog": "catalog",
    "ComponentDescription": "catalog.descriptions",
    "Recipe": "Recipes: install, remove, upgrade",
    "ComponentRequirement": "catalog.descriptions.needs",
    "UpgradeRequest": "requests",
    "ChangeSet": "requests.sets",
    "MaintenanceWindow": "requests.sets.windows, counted from the start",
    "RequestedChange": "requests.sets.changes",
    "CampaignFleets": "fleet",
    "EqualHosts": "fleet.hosts",
    "EqualResources": "fleet.resources",
    "EqualVms": "fleet.vms",
    "FleetDependency": "fleet.dependencies",
    "Resource": "cluster.resources",
    "Dependency": "cluster.dependencies",
    "ResourceGroup": "cluster.groups",
    "Tenant": "cluster.tenants",
    "Sla": "cluster.tenants.sla",
    "AntiAffinityGroup": "cluster.tenants.anti_affinity",
    "UpgradeSimulation": "simulation",
    "ScheduledCampaignEvent": "simulation.events",
    "InjectedFailure": "simulation.failures",
}
ACCESS_TITLES = {
    "AnsibleAccess": "The access file",
    "AnsibleHostAccess": "hosts and defaults of the access file",
    "TaskPlaybooks": "task_playbooks of the access file",
}


def reference() -> str:
    """Return the whole page."""
    access = describe_fields(msgspec.json.schema(AnsibleAccess), AnsibleAccess)
    parts = [HEAD]
    for schema, titles in ((json_schema("campaign"), TITLES), (access, ACCESS_TITLES)):
        for name, title in titles.items():
            parts.append("\n".join(_section(schema["$defs"], name, title)))
    return "\n".join(parts)


def _section(types: dict[str, Any], name: str, title: str) -> Iterator[str]:
    record = types[name]
    yield f"## {title}\n"
    if record.get("description"):
        yield _text(record["description"]) + "\n"
    yield "| key | value | default | means |"
    yield "|---|---|---|---|"
    required = set(record.get("required", ()))
    for key, field in record["properties"].items():
        default = "needed" if key in required else _default(field)
        meaning = _text(field.get("description", ""))
        yield f"| `{key}` | {_kind(types, field)} | {default} | {meaning} |"
    yield ""


def _kind(types: dict[str, Any], field: dict[str, Any]) -> str:
    if "anyOf" in field:
        kinds = [_kind(types, part) for part in field["anyOf"] if part.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        referred = types[name]
        if "enum" in referred:
            return ", ".join(f"`{value}`" for value in referred["enum"])
        title = TITLES.get(name) or ACCESS_TITLES.get(name)
        return f"a mapping: {title}" if title else "a mapping"
    match field.get("type"):
        case "array":
            return f"a list of: {_kind(types, field['items'])}" if "items" in field else "a list"
        case "object":
            values = field.get("additionalProperties")
            return f"by name: {_kind(types, values)}" if isinstance(values, dict) else "a mapping"
        case "integer" | "number" as number:
            return _number(field, "a whole number" if number == "integer" else "a number")
        case "boolean":
            return "true or false"
    return "text"


def _number(field: dict[str, Any], noun: str) -> str:
    low = field.get("minimum")
    if low is None and "exclusiveMinimum" in field:
        return f"{noun} above {field['exclusiveMinimum']}"
    return noun if low is None else f"{noun}, {low} or more"


def _default(field: dict[str, Any]) -> str:
    default = field.get("default")
    if default in (None, "", [], {}):
        return ""
    if isinstance(default, dict):
        return "as below"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _text(description: str) -> str:
    return re.sub(r"\s+", " ", description.replace("``", "`")).strip()


if __name__ == "__main__":
    sys.stdout.write(reference())
