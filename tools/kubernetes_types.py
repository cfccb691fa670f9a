"""Write the types of the kinds that the Kubernetes API serves, from the official Python client.

Only names of fields and their types are taken. Run it when the client is a newer one and write
what it prints to ``types.txt`` of the package ``equipoise.adapters.kubernetes.api.schema``.
"""

from __future__ import annotations

import re
from typing import Any, Final

import kubernetes
from kubernetes import client

from equipoise.adapters.kubernetes.api.resources import ALL_RESOURCES

_ROOTS: Final = ("V1DeleteOptions", "V1Eviction", "V1Binding", "V1Scale", "EventsV1Event")
_OTHER_NAMES: Final = {"Event": "CoreV1Event", "ResourceClaim": "ResourceV1ResourceClaim"}
_SIMPLE: Final = {
    "str": "s", "int": "i", "bool": "b", "float": "f", "datetime": "t", "object": "x",
    "bytearray": "s", "bytes": "s",
}  # fmt: skip
_QUANTITIES: Final = frozenset(
    {"limits", "requests", "capacity", "allocatable", "overhead", "hard", "used", "default",
     "defaultRequest", "max", "min", "maxLimitRequestRatio", "sizeLimit", "maximumVolumeSize",
     "allocatedResources", "divisor", "podFixed"}
)  # fmt: skip
# A number or a text: a count or a percentage, a port or its name.
_EITHER: Final = frozenset({"maxSurge", "maxUnavailable", "minAvailable", "port", "targetPort"})


def main() -> None:
    """Print the types."""
    names = [*_ROOTS, *(_model(resource.kind) for resource in ALL_RESOURCES)]
    lines: dict[str, str] = {}
    while names:
        name = names.pop()
        if name not in lines:
            lines[name], inner = _line(name)
            names += inner
    print(
        f"# Types of Kubernetes, by tools/kubernetes_types.py from client {kubernetes.__version__}."
    )
    for name in sorted(lines):
        print(f"{_short(name)} {lines[name]}".rstrip())


def _model(kind: str) -> str:
    return _OTHER_NAMES.get(kind) or f"V1{kind}"


def _short(name: str) -> str:
    """Return a name without the version, and without the group if it is the core one."""
    return re.sub(r"^(Core)?V1(?=[A-Z])", "", name)


def _line(name: str) -> tuple[str, list[str]]:
    model: Any = getattr(client, name)
    fields, inner = [], []
    for attribute, type_name in model.openapi_types.items():
        key = model.attribute_map[attribute]
        found = re.findall(r"[A-Za-z0-9]+", type_name)
        inner += [each for each in found if re.match(r"[A-Z]\w*V1|V1", each)]
        code = _code(type_name)
        if key in _QUANTITIES:
            code = {"s": "q", "{s}": "{q}"}.get(code, code)
        if code == "x" and key in _EITHER:
            code = "n"
        # Fields whose name is a word of Python have other names here, and none is required.
        field = model.model_fields.get(attribute)
        mark = "!" if field is not None and field.is_required() else ""
        fields.append(f"{key}={mark}{code}")
    return " ".join(sorted(fields)), inner


def _code(type_name: str) -> str:
    if found := re.fullmatch(r"List\[(.*)\]", type_name):
        return f"[{_code(found[1])}]"
    if found := re.fullmatch(r"Dict\[str, (.*)\]", type_name):
        return f"{{{_code(found[1])}}}"
    return _SIMPLE.get(type_name) or _short(type_name)


if __name__ == "__main__":
    main()
