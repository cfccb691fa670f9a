"""Make the environments of the named schedulers under test, or of all of them."""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from equipoise.adapters.btrplace import java_build
from equipoise.adapters.kubernetes.clock import build
from equipoise.adapters.targets.environment import PYTHON_TARGETS, make_environment
from equipoise.errors import EquipoiseError

SETUP_COMMANDS: Final[Mapping[str, Callable[[], Path]]] = {
    **{name: partial(make_environment, name) for name in PYTHON_TARGETS},
    java_build.PINNED.name: lambda: java_build.make_build().lib,
    build.PROGRAM: build.build_scheduler,
}


def main(names: list[str]) -> int:
    """Make each environment, print its path, and return the exit code.

    A target that cannot be made does not keep the others from being made.
    """
    unknown = [name for name in names if name not in SETUP_COMMANDS]
    if unknown:
        names_text = ", ".join(SETUP_COMMANDS)
        sys.stderr.write(f"unknown target {unknown[0]!r}; the targets are {names_text}\n")
        return 2
    status = 0
    for name in names or list(SETUP_COMMANDS):
        sys.stderr.write(f"making the environment of {name}: the first time takes minutes ...\n")
        try:
            sys.stdout.write(f"{SETUP_COMMANDS[name]()}\n")
        except EquipoiseError as error:
            sys.stderr.write(f"{error}\n")
            status = 3
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
