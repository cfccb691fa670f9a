"""How fast SafePlace is, the campaigns that BtrPlace comes with: what ours are measured by."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Final

from equipoise.errors import WorldError
from equipoise.fuzz.targets.folder import MissingTarget, Target, alone
from equipoise.fuzz.targets.java import PINNED, build, first_error, is_whole, lib_of, tool

SAFEPLACE: Final = Target("safeplace", PINNED.version, "SafePlace")
SECONDS_MAX: Final = 600.0
_WORDS_MAX: Final = 2000


def safeplace_rate(tests: int) -> float:
    """How many tests a second it does at 10 VMs on 10 hosts, out of so many, once it is warm.

    Builds what asks it if it is not there, which needs SafePlace in the repository of BtrPlace's
    build; raises ``MissingTarget`` if that cannot be done, and ``WorldError`` if it breaks.
    """
    line = [tool("java"), "-XX:+UseSerialGC", "-cp", f"{_made()}{os.sep}*"]
    try:
        done = subprocess.run(
            [*line, "equipoise.SafePlaceRate", str(tests)],
            capture_output=True, text=True, check=True, timeout=SECONDS_MAX,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        said = json.loads(done.stdout)
        return float(said["tests"]) / float(said["seconds"])
    except subprocess.CalledProcessError as error:
        raise WorldError(f"{SAFEPLACE.about} broke:\n{error.stderr[-_WORDS_MAX:]}") from error
    except subprocess.TimeoutExpired as error:
        raise WorldError(f"{SAFEPLACE.about} took longer than {SECONDS_MAX:g} s") from error
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise WorldError(f"{SAFEPLACE.about} answered nonsense: {done.stdout[:200]!r}") from error


def _made() -> str:
    """Where its jars are, once they are there."""
    with alone(PINNED):  # whose repository it shares
        if not is_whole(SAFEPLACE):
            trouble = build(SAFEPLACE, tool("mvn"), "-Psafeplace")
            if trouble:
                why = f"version {SAFEPLACE.version} could not be built ({first_error(trouble)})"
                cure = f"install it into the repository in {PINNED.folder / 'm2'}"
                raise MissingTarget(SAFEPLACE, why, cure)
    return str(lib_of(SAFEPLACE))
