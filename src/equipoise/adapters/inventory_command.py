"""An observation by a command that prints the inventory: a script, ``virsh``, or an API client."""

from __future__ import annotations

import shlex
import subprocess
from typing import Final

from equipoise import files
from equipoise.errors import InvalidInput, WorldError
from equipoise.model.inventory import Inventory

TIMEOUT_S: Final = 60
_TAIL: Final = 300


class InventoryCommand:
    """Runs a command; its standard output is an inventory in YAML or JSON."""

    def __init__(self, command: str, timeout_s: int = TIMEOUT_S) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise _refusal(command, str(error)) from None
        if not self._words:
            raise _refusal(command, "it is empty")
        self._timeout_s = timeout_s

    def observe(self) -> Inventory:
        """Return the present inventory; raise ``WorldError`` if the command gives none."""
        name = self._words[0]
        try:
            done = subprocess.run(
                self._words,
                capture_output=True,
                check=False,
                timeout=self._timeout_s,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            what = f"{name} printed no inventory in {self._timeout_s} s"
            raise WorldError(what) from None
        except OSError as error:
            raise WorldError(f"{name} cannot be run: {error.strerror}") from None
        if done.returncode != 0:
            tail = done.stderr.decode(errors="replace").strip()[-_TAIL:]
            raise WorldError(f"{name} ended with code {done.returncode}: {tail}")
        try:
            return files.parse_inventory(done.stdout, name)
        except InvalidInput as error:
            raise WorldError(f"{name} printed no inventory: {error}") from None


def _refusal(command: str, why: str) -> InvalidInput:
    what = f"{command!r} is not a command: {why}"
    return InvalidInput.of("--observe", what, cure="quote it as for a shell", code="syntax-error")
