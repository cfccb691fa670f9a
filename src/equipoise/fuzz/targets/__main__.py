"""Make the environments of the schedulers that are named, or of all of them."""

import sys

from equipoise.errors import EquipoiseError
from equipoise.fuzz.targets.environment import TARGETS, make


def main(names: list[str]) -> int:
    """Make each, say where it is, and return the exit code."""
    for name in names or list(TARGETS):
        if name not in TARGETS:
            sys.stderr.write(f"there is no target {name!r}; there are {', '.join(TARGETS)}\n")
            return 2
        sys.stderr.write(f"making {name}, which takes some minutes the first time ...\n")
        try:
            sys.stdout.write(f"{make(name)}\n")
        except EquipoiseError as error:
            sys.stderr.write(f"{error}\n")
            return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
