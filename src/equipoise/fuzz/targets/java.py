"""BtrPlace, which is written in Java: built once by Maven, then asked in a process of its own.

One version is pinned. Where the registry at hand lacks it, the newest that registries have is taken
instead, and whoever asks is told which it was. A settings file for Maven is whatever the machine
has; another one is named in the environment variable ``EQUIPOISE_MAVEN_SETTINGS``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from equipoise.fuzz.targets.folder import (
    HERE,
    MissingTarget,
    Target,
    alone,
    take_step,
    without_addresses,
)

SETTINGS: Final = "EQUIPOISE_MAVEN_SETTINGS"
PINNED: Final = Target("btrplace", "1.12.11", "BtrPlace")
OLDER: Final = Target("btrplace", "1.10.2", "BtrPlace")
VERSIONS: Final = (PINNED, OLDER)
TOOLS: Final = "a JDK of version 17 or later and Maven"
OURS: Final = "btrplace-solve-3.jar"
"""What asks BtrPlace, in the version of the pom; an older one has not got all that is needed."""
_SOURCE: Final = HERE / "btrplace"
_MODULES: Final = ("scheduler-api", "scheduler-choco", "scheduler-json")
# The registry was asked and has not got it. Anything else, such as no network, would not get
# better with another version.
_LACKING: Final = re.compile(
    r"Could not find artifact org\.btrplace:|org\.btrplace:\S+ was not found"
)
_ERROR: Final = re.compile(r"\[ERROR\] +(\S.*)")


@dataclass(frozen=True, slots=True)
class Build:
    """BtrPlace in one version, ready to be asked."""

    version: str
    java: str
    lib: Path

    def line(
        self, instance: Path, plan: Path, *, repair: bool, search_s_max: int, heap_mib: int
    ) -> list[str]:
        """The command that solves an instance, writes the plan and answers with a line of JSON."""
        return [
            *(self.java, f"-Xmx{heap_mib}m", "-cp", f"{self.lib}{os.sep}*", "equipoise.Solve"),
            *(str(instance), *(["-r"] if repair else [])),
            *("-t", str(search_s_max), "-o", str(plan)),
        ]

    def worker_line(self, *, heap_mib: int) -> list[str]:
        """The command that answers for many plans, one line of JSON after the other."""
        return [
            # Else a crash that happens often is told without its place after a while.
            *(self.java, f"-Xmx{heap_mib}m", "-XX:+UseSerialGC", "-XX:-OmitStackTraceInFastThrow"),
            *("-cp", f"{self.lib}{os.sep}*", "equipoise.Accept"),
        ]


def find() -> Build | None:
    """Return what was built, in the best version, or nothing if there is none or no Java."""
    java = shutil.which("java")
    if java is None:
        return None
    whole = (target for target in VERSIONS if is_whole(target))
    return next((Build(one.version, java, lib_of(one)) for one in whole), None)


def need() -> Build:
    """Return what was built, or raise ``MissingTarget`` with the reason why it cannot be asked."""
    found = find()
    if found is not None:
        return found
    tool("java")
    why = f"there is no whole build of it in {PINNED.folder}"
    raise MissingTarget(PINNED, why, f"with {TOOLS} on the PATH, run '{PINNED.command}'")


def make() -> Build:
    """Return what was built in the pinned version, or build it, or else the older one.

    Building takes minutes and a registry the first time; without one it raises ``MissingTarget``.
    """
    java = tool("java")
    with alone(PINNED):
        for target in VERSIONS:
            trouble = "" if is_whole(target) else build(target, tool("mvn"))
            if not trouble:
                return Build(target.version, java, lib_of(target))
            if not _LACKING.search(trouble):
                break
    why = f"version {target.version} could not be built ({first_error(trouble)})"
    cure = f"with a Maven registry in reach, run '{PINNED.command}'"
    raise MissingTarget(target, why, cure)


def is_whole(target: Target) -> bool:
    """Whether all that is needed is there, made from this very source.

    One without a stamp was put there by hand, as the pom says, and is as good as its jars.
    """
    lib = lib_of(target)
    jars = [OURS, *(f"{module}-{target.version}.jar" for module in _MODULES)]
    there = all((lib / jar).exists() for jar in jars)
    return there and (not target.stamp.exists() or target.is_stamped(_fingerprint()))


def build(target: Target, mvn: str, *options: str) -> str:
    """Build it and return nothing, or what Maven said when it failed; hold the door meanwhile."""
    fresh = target.folder / "build"
    shutil.rmtree(fresh, ignore_errors=True)
    repository = PINNED.folder / "m2"  # shared by both versions: most of it is Maven's own
    _stand_in_for_parents(repository)
    settings = os.environ.get(SETTINGS)
    done = take_step(
        target,
        *(mvn, "-B", "-q", "-Dstyle.color=never", *(["-s", settings] if settings else [])),
        *("-f", str(_SOURCE / "pom.xml"), f"-Dmaven.repo.local={repository}"),
        *(f"-Dbtrplace.version={target.version}", f"-Dequipoise.build={fresh}", "package"),
        *options,
        tools=TOOLS,
    )
    if done.returncode != 0:
        shutil.rmtree(fresh, ignore_errors=True)
        return f"{done.stdout}\n{done.stderr}"
    # Exchanged at once, so that a folder that was left half made never looks whole.
    shutil.rmtree(lib_of(target), ignore_errors=True)
    (fresh / "lib").rename(lib_of(target))
    shutil.rmtree(fresh)
    target.stamp.write_text(_fingerprint())
    return ""


def _stand_in_for_parents(repository: Path) -> None:
    """Put what the modules of a release name, but no registry has, where Maven looks first."""
    for pom in _SOURCE.glob("parent-*.pom"):
        version = pom.stem.removeprefix("parent-")
        place = repository / "org" / "btrplace" / "scheduler" / version / f"scheduler-{version}.pom"
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(pom, place)


def lib_of(target: Target) -> Path:
    """Where its jars are."""
    return target.folder / "lib"


def _fingerprint() -> str:
    files = sorted(path for path in _SOURCE.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def tool(name: str) -> str:
    """Where a tool is, or ``MissingTarget``."""
    found = shutil.which(name)
    if found is None:
        why = f"there is no '{name}' on the PATH"
        raise MissingTarget(PINNED, why, f"install {TOOLS}, then run '{PINNED.command}'")
    return found


def first_error(output: str) -> str:
    """Maven says first what went wrong, then where to read about it."""
    error = _ERROR.search(output)
    said = error.group(1) if error else output.strip() or "it said nothing"
    return without_addresses(said).removesuffix(" -> [Help 1]")
