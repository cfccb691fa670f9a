"""The library: the constraints that come with the product, each in a file that names its origin."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files

from equipoise.spec.specification import Specification


@cache
def origins() -> tuple[str, ...]:
    """The names of the files."""
    folder = files("equipoise.spec") / "library"
    names = (entry.name for entry in folder.iterdir() if entry.name.endswith(".spec"))
    return tuple(sorted(name.removesuffix(".spec") for name in names))


@cache
def of_origin(origin: str) -> Specification:
    """One file of the library. Each is read when it is first asked for: reading takes time."""
    text = (files("equipoise.spec") / "library" / f"{origin}.spec").read_text()
    return Specification.read(text, f"{origin}.spec")


def library() -> dict[str, Specification]:
    """All files of the library, by their names."""
    return {origin: of_origin(origin) for origin in origins()}


@cache
def library_constraints() -> dict[str, Specification]:
    """The specification that declares each constraint of the library, by its name."""
    return {name: one for one in library().values() for name in one.constraints}


@lru_cache(maxsize=8)
def own(text: str, name: str = "specification") -> Specification:
    """A specification of somebody's own, which may call what the library declares."""
    return Specification.read(text, name, library_constraints())


def all_constraints(text: str = "") -> Mapping[str, Specification]:
    """Those of the library and of a text of one's own, by name; of two, one's own counts."""
    known = library_constraints()
    return {**known, **dict.fromkeys(own(text).constraints, own(text))} if text else known


def origin_of(constraint: str) -> str | None:
    """The file of the library that declares a constraint, or none."""
    found = (origin for origin, one in library().items() if constraint in one.constraints)
    return next(found, None)


def constraint_named(name: str) -> str | None:
    """The constraint of the library that somebody means: ``lonely`` is ``Lonely``."""
    known = library_constraints()
    if name in known:
        return name
    return next((one for one in known if one.lower() == name.lower()), None)
