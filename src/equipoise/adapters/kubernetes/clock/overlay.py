"""The overlay: edited copies of the local Go runtime whose package time reads the clock page.

Go's own files stay where they are. The copies are made from them and are given to
``go build -overlay``. An edit identifies its place by an anchor, which must occur as often as the
edit says. Each edit stays on the line of its anchor, so that line numbers, and with them most of
the build cache, stay valid.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from equipoise.errors import InputProblem, InvalidInput

KNOWN_GO: Final = ("1.26",)
"""The versions of Go whose runtime was read and tried; every patch release of them is accepted."""
HERE: Final = Path(__file__).parent
ADDED_FILES: Final[Mapping[str, str]] = {
    "runtime/equipoise_clock.go": "virtual_clock.go",
    "time/equipoise_clock.go": "reading.go",
}
"""Files that are new in the copy, each with its source beside this module."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit of a file below GOROOT/src."""

    path: str
    anchor: str
    before: str = ""
    """What is put before the anchor."""
    after: str = ""
    """What is put after the anchor."""
    instead: str | None = None
    """What replaces the anchor; ``None`` keeps it."""
    times: int = 1
    """How often the anchor occurs."""

    def apply(self, text: str) -> str | None:
        """Return the edited text; ``None`` if the anchor is not where it is expected."""
        if text.count(self.anchor) != self.times:
            return None
        kept = self.anchor if self.instead is None else self.instead
        return text.replace(self.anchor, f"{self.before}{kept}{self.after}")


def _proc(anchor: str, *, before: str = "", after: str = "", instead: str | None = None) -> Edit:
    return Edit("runtime/proc.go", anchor, before, after, instead)


def _epoll(anchor: str, *, before: str = "", after: str = "") -> Edit:
    return Edit("runtime/netpoll_epoll.go", anchor, before, after)


EDITS: Final = (
    # Package time reads the page.
    Edit("runtime/time_linux_amd64.s", "TEXT time·now<", instead="TEXT runtime·realTimeNow<"),
    Edit(
        "runtime/timeasm.go", "//go:linkname time_now time.now", instead="// The assembly function"
    ),
    Edit("runtime/timeasm.go", "func time_now() (", instead="func realTimeNow() ("),
    Edit("runtime/time.go", " nanotime()", instead=" virtualNano()", times=6),
    Edit("runtime/netpoll.go", "d += nanotime()", instead="d += virtualNano()"),
    Edit(
        "time/time.go",
        "return subMono(runtimeNano()-startNano, t.ext)",
        instead="return subMono(runtimeReading()-startNano, t.ext)",
    ),
    # Random numbers do not depend on the order in which goroutines draw them.
    Edit(
        "math/rand/rand.go", "runtime_rand runtime.rand", instead="runtime_rand runtime.virtualRand"
    ),
    Edit(
        "math/rand/v2/rand.go",
        "runtime_rand runtime.rand",
        instead="runtime_rand runtime.virtualRand",
    ),
    # What the runtime does for itself stays on real time.
    Edit("runtime/mgc.go", "sec, nsec, _ := time_now()", instead="sec, nsec, _ := realTimeNow()"),
    Edit(
        "runtime/mgcscavenge.go",
        "func (s *scavengerState) wake() {\n",
        after="\tif virtualClock != nil { return }; ",
    ),
    _proc("now, pollUntil, _ := pp.timers.check(0, nil)", after="; now = realOrUnknown(now)"),
    _proc("newWork := stealWork(now)", instead="newWork := stealWork(realOrUnknown(now))"),
    _proc("now = tnow\n\t\tif w != 0", instead="now = realOrUnknown(tnow)\n\t\tif w != 0"),
    _proc("delay = pollUntil - now\n", instead="delay = pollDelay(pollUntil, now)\n"),
    _proc("next := timeSleepUntil()\n", instead="next := sysmonUntil(timeSleepUntil(), now)\n"),
    # The number of active threads and processors.
    _proc(
        "\tworldStarted()\n\n\tif buildVersion",
        instead="\tworldStarted(); initVirtualClock()\n\n\tif buildVersion",
    ),
    _proc("\tnotesleep(&gp.m.park)", before="\tcountActive(-1);", after="; countActive(1)"),
    _proc("notesleep(&newmHandoff.wake)", before="countActive(-1); ", after="; countActive(1)"),
    _proc("if fn := gp.m.mstartfn; fn != nil {", before="countActive(1); "),
    _proc("lastgomaxprocs := int64(0)", before="countActive(-1); "),
    _proc("// Release the P.\n\thandoffp(releasep())", after="; countActive(-1)"),
    _proc("sched.npidle.Add(1)", after="; countActive(-1)"),
    _proc("sched.npidle.Add(-1)", after="; countActive(1)"),
    _proc(
        "old := gomaxprocs\n\tif old < 0",
        instead="old := gomaxprocs; countActive(int64(nprocs - old))\n\tif old < 0",
    ),
    Edit(
        "runtime/lock_futex.go",
        "\tok := notetsleep_internal(n, ns)",
        before="\tcountActive(-1);",
        after="; countActive(1)",
    ),
    # A signal that waits for its goroutine.
    Edit("runtime/sigqueue.go", "notewakeup(&sig.note)", before="countActive(1); "),
    Edit("runtime/sigqueue.go", "notetsleepg(&sig.note, -1)", after="; countActive(-1)"),
    # One thread always waits for the network, so that the simulator can wake it.
    _proc(
        "(netpollAnyWaiters() || pollUntil != 0) && sched.lastpoll.Swap(0) != 0",
        instead="(netpollAnyWaiters() || pollUntil != 0 || virtualClock != nil)"
        " && sched.lastpoll.Swap(0) != 0",
    ),
    _epoll("netpollEventFd = uintptr(efd)", after="; pollVirtualClock()"),
    _epoll("var one uint64 = 1\n", before="countActive(1); "),
    _epoll("netpollWakeSig.Store(0)", after="; countActive(-1)"),
    _epoll(
        "n, errno := linux.EpollWait(epfd, events[:], int32(len(events)), waitms)",
        before="pollerSleeps(delay); ",
        after="; pollerWakes(delay)",
    ),
    _epoll(
        "if *(**uintptr)(unsafe.Pointer(&ev.Data)) == &netpollEventFd {",
        before="if isAdvance(&ev, delay) { continue }; ",
    ),
)


def write_overlay(goroot: Path, folder: Path) -> Path:
    """Write the edited copies and ``overlay.json`` into ``folder``, and return the latter's path.

    An unknown version of Go, or a file that differs from what the edits expect, is refused.
    """
    source = goroot / "src"
    replaced = {}
    for name, text in edited_files(goroot).items():
        copy = folder / name.replace("/", "_")
        copy.write_text(text)
        replaced[str(source / name)] = str(copy)
    overlay = folder / "overlay.json"
    overlay.write_text(json.dumps({"Replace": replaced}, indent=1, sort_keys=True))
    return overlay


def overlay_hash(goroot: Path) -> str:
    """The key of an overlay: equal keys give equal programs."""
    digest = hashlib.sha256()
    for name, text in sorted(edited_files(goroot).items()):
        digest.update(f"{name}\0{text}\0".encode())
    return digest.hexdigest()[:16]


def edited_files(goroot: Path) -> Mapping[str, str]:
    """The text of each file of the overlay, by its path below GOROOT/src."""
    version = go_version(goroot)
    if not any(version == known or version.startswith(f"{known}.") for known in KNOWN_GO):
        raise _unknown(goroot, f"Go {version or '?'} is not a version that was tried")
    texts: dict[str, str] = {}
    for edit in EDITS:
        try:
            text = texts.get(edit.path) or (goroot / "src" / edit.path).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise _unknown(goroot, f"its file {edit.path} cannot be read") from error
        edited = edit.apply(text)
        if edited is None:
            raise _unknown(goroot, f"its file {edit.path} differs at {edit.anchor.strip()!r}")
        texts[edit.path] = edited
    added = {name: (HERE / source).read_text() for name, source in ADDED_FILES.items()}
    return texts | added


def go_version(goroot: Path) -> str:
    """The version of the Go in a folder, such as ``1.26.8``; empty if the folder has none."""
    try:
        words = (goroot / "VERSION").read_text().split()
    except (OSError, UnicodeDecodeError):
        return ""
    return words[0].removeprefix("go") if words else ""


def _unknown(goroot: Path, why: str) -> InvalidInput:
    known = " or ".join(f"{version}.x" for version in KNOWN_GO)
    cure = f"install Go {known} for linux/amd64, or use the stock clock"
    return InvalidInput(str(goroot), [InputProblem(key="", what=why, cure=cure, code="go-unknown")])
