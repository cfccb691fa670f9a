"""BtrPlace and SafePlace, which are written in Java: built once with Maven, run as processes.

BtrPlace 1.12.11 is the pinned version. If the Maven registry lacks it, 1.10.2 is built instead;
``BtrPlaceBuild.version`` is the version that was built. Maven uses the settings file of the
machine, or the one named in the environment variable ``EQUIPOISE_MAVEN_SETTINGS``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from equipoise.adapters.targets.environment import (
    ADAPTERS_FOLDER,
    MissingTarget,
    PinnedTarget,
    locked_folder,
    run_setup_step,
    without_urls,
)
from equipoise.errors import WorldError

SETTINGS_VARIABLE: Final = "EQUIPOISE_MAVEN_SETTINGS"
PINNED: Final = PinnedTarget("btrplace", "1.12.11", "BtrPlace")
FALLBACK: Final = PinnedTarget("btrplace", "1.10.2", "BtrPlace")
VERSIONS: Final = (PINNED, FALLBACK)
TOOLS: Final = "a JDK of version 17 or later and Maven"
DRIVER_JAR: Final = "btrplace-driver-4.jar"
"""The classes of ``driver``, in the version of the pom: an older jar lacks some of them."""
_DRIVER_FOLDER: Final = ADAPTERS_FOLDER / "btrplace" / "driver"
_MODULES: Final = ("scheduler-api", "scheduler-choco", "scheduler-json")
# The registry answered and lacks the version. For any other error, such as a network that is down,
# another version would not help.
_LACKING: Final = re.compile(
    r"Could not find artifact org\.btrplace:|org\.btrplace:\S+ was not found"
)
_ERROR: Final = re.compile(r"\[ERROR\] +(\S.*)")


@dataclass(frozen=True, slots=True)
class BtrPlaceBuild:
    """A complete build of BtrPlace in one version."""

    version: str
    java: str
    lib: Path

    def line(
        self, instance: Path, plan: Path, *, repair: bool, search_s_max: int, heap_mib: int
    ) -> list[str]:
        """The command that solves an instance, writes the plan and prints one line of JSON."""
        return [
            *(self.java, f"-Xmx{heap_mib}m", "-cp", f"{self.lib}{os.sep}*", "equipoise.Solve"),
            *(str(instance), *(["-r"] if repair else [])),
            *("-t", str(search_s_max), "-o", str(plan)),
        ]

    def worker_command(self, *, heap_mib: int) -> list[str]:
        """The command that answers for many plans, one line of JSON after the other."""
        return [
            # Otherwise the JVM omits the stack trace of an exception that occurs often.
            *(self.java, f"-Xmx{heap_mib}m", "-XX:+UseSerialGC", "-XX:-OmitStackTraceInFastThrow"),
            *("-cp", f"{self.lib}{os.sep}*", "equipoise.PlanWorker"),
        ]


def find_build() -> BtrPlaceBuild | None:
    """Return the build with the newest version; ``None`` without a build or without Java."""
    java = shutil.which("java")
    if java is None:
        return None
    complete = (target for target in VERSIONS if is_complete(target))
    builds = (BtrPlaceBuild(target.version, java, lib_folder(target)) for target in complete)
    return next(builds, None)


def require_build() -> BtrPlaceBuild:
    """Return the build, or raise ``MissingTarget`` with the reason why there is none."""
    build = find_build()
    if build is not None:
        return build
    find_tool("java")
    why = f"{PINNED.folder} has no complete build"
    raise MissingTarget(PINNED, why, f"run '{PINNED.command}' with {TOOLS} on the PATH")


def make_build() -> BtrPlaceBuild:
    """Return the build of the pinned version, or of the older one; build it if necessary.

    The first build takes minutes and a registry; without one it raises ``MissingTarget``.
    """
    java = find_tool("java")
    with locked_folder(PINNED):
        for target in VERSIONS:
            error = "" if is_complete(target) else run_maven(target, find_tool("mvn"))
            if not error:
                return BtrPlaceBuild(target.version, java, lib_folder(target))
            if not _LACKING.search(error):
                break
    why = f"the build of version {target.version} failed ({first_error(error)})"
    cure = f"run '{PINNED.command}' with access to a Maven registry"
    raise MissingTarget(target, why, cure)


def is_complete(target: PinnedTarget) -> bool:
    """Whether all jars exist and were built from exactly this source.

    A folder without a stamp was filled by hand: it is complete if its jars are.
    """
    lib = lib_folder(target)
    jars = [DRIVER_JAR, *(f"{module}-{target.version}.jar" for module in _MODULES)]
    has_jars = all((lib / jar).exists() for jar in jars)
    return has_jars and (not target.stamp.exists() or target.is_stamped(_driver_fingerprint()))


def run_maven(target: PinnedTarget, mvn: str, *options: str) -> str:
    """Run Maven and return its output if it failed; empty after a success.

    The caller holds the lock of the folder.
    """
    fresh = target.folder / "build"
    shutil.rmtree(fresh, ignore_errors=True)
    repository = PINNED.folder / "m2"  # shared by both versions: most of it are Maven's own plugins
    _install_parent_poms(repository)
    settings = os.environ.get(SETTINGS_VARIABLE)
    done = run_setup_step(
        target,
        *(mvn, "-B", "-q", "-Dstyle.color=never", *(["-s", settings] if settings else [])),
        *("-f", str(_DRIVER_FOLDER / "pom.xml"), f"-Dmaven.repo.local={repository}"),
        *(f"-Dbtrplace.version={target.version}", f"-Dequipoise.build={fresh}", "package"),
        *options,
        tools=TOOLS,
    )
    if done.returncode != 0:
        shutil.rmtree(fresh, ignore_errors=True)
        return f"{done.stdout}\n{done.stderr}"
    # One rename, so that an incomplete folder never looks complete.
    shutil.rmtree(lib_folder(target), ignore_errors=True)
    (fresh / "lib").rename(lib_folder(target))
    shutil.rmtree(fresh)
    target.stamp.write_text(_driver_fingerprint())
    return ""


def _install_parent_poms(repository: Path) -> None:
    """Install the parent poms that released modules name but no registry has."""
    for pom in _DRIVER_FOLDER.glob("parent-*.pom"):
        version = pom.stem.removeprefix("parent-")
        place = repository / "org" / "btrplace" / "scheduler" / version / f"scheduler-{version}.pom"
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(pom, place)


def lib_folder(target: PinnedTarget) -> Path:
    """The folder with the jars of a target."""
    return target.folder / "lib"


def _driver_fingerprint() -> str:
    files = sorted(path for path in _DRIVER_FOLDER.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def find_tool(name: str) -> str:
    """The path of a tool; ``MissingTarget`` if it is not on the PATH."""
    path = shutil.which(name)
    if path is None:
        why = f"'{name}' is not on the PATH"
        raise MissingTarget(PINNED, why, f"install {TOOLS}, then run '{PINNED.command}'")
    return path


def first_error(output: str) -> str:
    """The first error line of Maven's output: the cause comes before the links to help pages."""
    error = _ERROR.search(output)
    message = error.group(1) if error else output.strip() or "no output"
    return without_urls(message).removesuffix(" -> [Help 1]")


SAFEPLACE: Final = PinnedTarget("safeplace", PINNED.version, "SafePlace")
SAFEPLACE_S_MAX: Final = 600.0
_STDERR_CHARS_MAX: Final = 2000


def safeplace_tests_per_s(tests: int) -> float:
    """The tests per second of SafePlace at 10 VMs on 10 hosts, after a warm-up of as many tests.

    Builds the driver if necessary, which needs SafePlace in the Maven repository of BtrPlace's
    build. Raises ``MissingTarget`` if the build fails, and ``WorldError`` if SafePlace fails.
    """
    line = [find_tool("java"), "-XX:+UseSerialGC", "-cp", f"{_built_lib()}{os.sep}*"]
    try:
        done = subprocess.run(
            [*line, "equipoise.SafePlaceRate", str(tests)],
            capture_output=True, text=True, check=True, timeout=SAFEPLACE_S_MAX,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        result = json.loads(done.stdout)
        return float(result["tests"]) / float(result["seconds"])
    except subprocess.CalledProcessError as error:
        raise WorldError(
            f"{SAFEPLACE.about} failed:\n{error.stderr[-_STDERR_CHARS_MAX:]}", code="worker-died"
        ) from error
    except subprocess.TimeoutExpired as error:
        text = f"{SAFEPLACE.about} took longer than {SAFEPLACE_S_MAX:g} s"
        raise WorldError(text, code="scheduler-timeout") from error
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise WorldError(
            f"{SAFEPLACE.about} sent an invalid answer: {done.stdout[:200]!r}",
            code="worker-answer-invalid",
        ) from error


def _built_lib() -> str:
    """The folder with the jars of SafePlace's driver, built if necessary."""
    with locked_folder(PINNED):  # both builds share one Maven repository
        if not is_complete(SAFEPLACE):
            error = run_maven(SAFEPLACE, find_tool("mvn"), "-Psafeplace")
            if error:
                why = f"the build of version {SAFEPLACE.version} failed ({first_error(error)})"
                cure = f"install it into the Maven repository {PINNED.folder / 'm2'}"
                raise MissingTarget(SAFEPLACE, why, cure)
    return str(lib_folder(SAFEPLACE))
