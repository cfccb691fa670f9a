"""Make the folders of the schedulers that are named, or of all of them."""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from equipoise.errors import EquipoiseError
from equipoise.fuzz.targets import java
from equipoise.fuzz.targets.environment import TARGETS, make

MAKERS: Final[Mapping[str, Callable[[], Path]]] = {
    **{name: partial(make, name) for name in TARGETS},
    java.PINNED.name: lambda: java.make().lib,
}


def main(names: list[str]) -> int:
    """Make each, say where it is, and return the exit code."""
    for name in names or list(MAKERS):
        if name not in MAKERS:
            sys.stderr.write(f"there is no target {name!r}; there are {', '.join(MAKERS)}\n")
            return 2
        sys.stderr.write(f"making {name}, which takes some minutes the first time ...\n")
        try:
            sys.stdout.write(f"{MAKERS[name]()}\n")
        except EquipoiseError as error:
            sys.stderr.write(f"{error}\n")
            return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
