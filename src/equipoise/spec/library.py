"""The library: the constraints that come with the product, each in a file that names its origin."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from equipoise.spec.specification import Specification


@cache
def library() -> dict[str, Specification]:
    """The files of the library, by their names."""
    folder = files("equipoise.spec") / "library"
    found = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".spec"))
    return {
        name.removesuffix(".spec"): Specification.read((folder / name).read_text(), name)
        for name in found
    }


@cache
def library_constraints() -> dict[str, Specification]:
    """The specification that declares each constraint of the library, by its name."""
    return {name: one for one in library().values() for name in one.constraints}


def origin_of(constraint: str) -> str | None:
    """The file of the library that declares a constraint, or none."""
    for origin, specification in library().items():
        if constraint in specification.constraints:
            return origin
    return None
