"""The library of constraints: one file for each origin, such as DRS, BtrPlace or Nova."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files

from equipoise.spec.specification import Specification


@cache
def library_files() -> tuple[str, ...]:
    """Return the names of the files, without their suffix."""
    folder = files("equipoise.spec") / "library"
    names = (entry.name for entry in folder.iterdir() if entry.name.endswith(".spec"))
    return tuple(sorted(name.removesuffix(".spec") for name in names))


@cache
def library_file(origin: str) -> Specification:
    """Return one file of the library; it is read on first use, because parsing takes time."""
    text = (files("equipoise.spec") / "library" / f"{origin}.spec").read_text()
    return Specification.read(text, f"{origin}.spec")


def library() -> dict[str, Specification]:
    """Return all files of the library, by name."""
    return {origin: library_file(origin) for origin in library_files()}


@cache
def library_constraints() -> dict[str, Specification]:
    """Return the specification that declares each constraint of the library, by constraint."""
    return {name: owner for owner in library().values() for name in owner.constraints}


# Every pass binds every rule again, and each asks for the specification of its inventory.
@lru_cache(maxsize=8)
def custom_specification(text: str, name: str = "specification") -> Specification:
    """Read a specification of the user, which may call constraints of the library."""
    return Specification.read(text, name, library_constraints())


def all_constraints(text: str = "") -> Mapping[str, Specification]:
    """Return the constraints of the library and of a user's text; the user's hide the library's."""
    known = library_constraints()
    return (
        {
            **known,
            **dict.fromkeys(custom_specification(text).constraints, custom_specification(text)),
        }
        if text
        else known
    )


def origin_of(constraint: str) -> str | None:
    """Return the file of the library that declares a constraint, or ``None``."""
    origins = (origin for origin, owner in library().items() if constraint in owner.constraints)
    return next(origins, None)


def find_constraint(name: str) -> str | None:
    """Return the constraint of the library with this name in any case, or ``None``."""
    known = library_constraints()
    if name in known:
        return name
    return next((constraint for constraint in known if constraint.lower() == name.lower()), None)
