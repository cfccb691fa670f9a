"""Throws broken and strange texts at the specification language, and says what it could not bear.

    python tools/fuzz_parser.py --seconds 600 --seed 1

Each text is parsed, printed, read back, checked and, if it was accepted, judged on a small world.
To refuse a text with ``InvalidInput`` is fine. Any other exception, a printed file that reads back
as another one, or more than five seconds before the judging is a failure: the text is shown and
the exit code is 1. With ``--all`` it goes on after a failure, and shows each kind once.

There are formulas that take for ever by what they mean, so the judging is only broken off.

Texts that are answered as no text before, or that reach a line of the language's source which no
text has reached before (beyond the parser, whose lines say little), are kept and changed further.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any, Final, NamedTuple

import equipoise.spec
from equipoise.errors import InvalidInput
from equipoise.model.action import Action, Boot, Migrate, PowerOff
from equipoise.model.event import ActionStarted
from equipoise.model.host import Host
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, ResourceName, StepId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.state.transition import replay
from equipoise.model.vm import Vm, VmState
from equipoise.spec.language.parse import parse
from equipoise.spec.language.print import print_file
from equipoise.spec.language.syntax import Binding, Constraint, Name, Parameter, SourceText
from equipoise.spec.language.vocabulary import SIGNATURES, STATES, SYNONYMS, canonical_name
from equipoise.spec.specification import Specification, context_of

SECONDS_MAX: Final = 5.0
JUDGING_SECONDS_MAX: Final = 0.3
MEMORY_MAX: Final = 4 * 2**30
"""Enough for any sensible text; who takes more gets a MemoryError instead of the whole machine."""
KEPT_MAX: Final = 2000
LENGTH_MAX: Final = 20_000
KEPT_LENGTH_MAX: Final = 1500
ROOT: Final = Path(__file__).parent.parent
SOURCE: Final = str(Path(equipoise.spec.__file__).parent)
TOKENS: Final = re.compile(
    r'"""|"[^"\n]*"|<-->|-->|/?<?<:|/:|/=|[<>]=|::=|/\\|\\/|//|/\*|\w+|\s+|.', re.DOTALL
)
SIGNS: Final[list[str]] = TOKENS.findall(
    '(){}[],;.:<:<<:/:/<:/<<:=/=<= >>=<+-* / /\\\\/&|--><-->!?^$::="""//\n/**/'
)
KEYWORDS: Final = ("not", "let", "in", "always", "sometime", "true", "false", "hard", "soft")
STRANGE: Final = tuple("\0\r\f\x0b\x1c\u2028\ufeffäΩ²٣\U0001f40d\ud800\t\x7f\\'\"`#%~")
NUMBERS: Final = ("0", "1", "7", "007", "-1", "9" * 40, "1" + "0" * 5000, "1e9", "0x10", "1_000")
NAMES: Final = ("vms", "hosts", "int", "string", "x", "y", "v", "a", "Spread", "Among")
WORDS: Final = (*KEYWORDS, *SIGNATURES, *STATES, *SYNONYMS, *NAMES)
EXAMPLES: Final = (
    'a(v : vms, ns <: hosts, g <<: vms, n : int, t : string) ::= label(v, t) = "x" --> n > 0',
    'a ::= let x = [1, 2, 3] in x[1] / 2 = 1 & sum(largest(x, 2)) = 5 | {"a", "b\\"c"} = {}',
    "a ::= !(x, y : {1, 2, 3}; s <: {x, y}) ?(p <<: s) card(p) <= 2 & range(lists(s)) = []",
    "a ::= always sometime !(h : hosts; a : underway(h)) begin(a) < end(a) & kind(a) /= ^label(h)",
    "a ::= b(vms) & $b({v . v : vms, agent(v)}) & ^b({})\nb(s <: vms) ::= not s /<: vms",
    '""" "Words" in "quotes" """\na hard continuous ::= true // and an end',
    "a ::= [{host(v) . v : p} . p : {vms}] <<: hosts <--> -1 + - - 2 * 3 >= 4 --> true --> false",
)


class Hang(BaseException):
    """One text takes too long."""


class Verdict(NamedTuple):
    """What came of one text."""

    outcome: str
    failure: str = ""
    """The kind of failure; nothing if there was none."""


# The world that accepted constraints are judged on


def small_world() -> tuple[Snapshot, tuple[Step, ...]]:
    """Two hosts, three VMs and a plan in motion."""
    licences = {ResourceName("licences"): 2}
    machines = [
        Host(id=HostId(name), cores=4, mhz_per_core=1000, memory_mib=4096, capacity=licences)
        for name in ("h1", "h2")
    ]
    guests = [
        Vm(id=VmId("v1"), vcpus=1, memory_mib=512, host=HostId("h1"), labels={"rack": "r1"}),
        Vm(id=VmId("v2"), vcpus=1, memory_mib=512, host=HostId("h1"), consumption=licences),
        Vm(id=VmId("v3"), vcpus=1, memory_mib=512, state=VmState.READY),
    ]
    actions: tuple[Action, ...] = (
        Migrate(vm=VmId("v1"), source=HostId("h1"), target=HostId("h2")),
        Boot(vm=VmId("v3"), target=HostId("h2")),
        PowerOff(host=HostId("h1")),
    )
    steps = tuple(
        Step(id=StepId(f"s{number}"), action=action, end_ms=1000 + number)
        for number, action in enumerate(actions)
    )
    started = [ActionStarted(at_ms=0, step=step, attempt=1) for step in steps[:2]]
    snapshot = Snapshot.of(Inventory(hosts=tuple(machines), vms=tuple(guests)))
    return replay(snapshot, started), steps


class Mill:
    """Takes a text through everything the language does with it."""

    def __init__(self) -> None:
        self._state, self._steps = small_world()
        self._phase = ""
        self.lines: set[tuple[str, int]] = set()

    def grind(self, text: str) -> Verdict:
        """Say what came of a text; no exception leaves but those that stop the program."""
        began = perf_counter()
        try:
            outcome = self._go_through(text)
        except Hang:
            outcome = "too long to judge" if self._phase == "judge" else "hang"
        except Exception as error:
            return Verdict("failure", _kind_of(error, self._phase))
        finally:
            sys.settrace(None)
            signal.setitimer(signal.ITIMER_REAL, 0)
        late = (
            self._phase != "judge" and perf_counter() - began > SECONDS_MAX
        )  # C code ignores the alarm
        return Verdict(outcome, f"hang in {self._phase}" if late or outcome == "hang" else "")

    def _go_through(self, text: str) -> str:
        self._start("parse", SECONDS_MAX)
        try:
            constraints = parse(text)
        except InvalidInput as error:
            return f"refused by the parser: {_said(error)} {error.problems[0].cure}"
        self._start("print", SECONDS_MAX)
        printed = print_file(constraints)
        self._start("read back", SECONDS_MAX)
        if parse(printed) != constraints:
            raise ValueError("what is printed reads back as something else")
        self._start("check", SECONDS_MAX)
        sys.settrace(self._enter if len(text) <= KEPT_LENGTH_MAX else None)
        try:
            specification = Specification(SourceText("text", text), constraints)
        except InvalidInput as error:
            return f"refused by the checker: {_said(error)}"
        self._start("judge", JUDGING_SECONDS_MAX)
        answers = {self._judge(specification, constraint) for constraint in constraints}
        return f"accepted: {', '.join(sorted(answers)) or 'nothing in it'}"

    def _start(self, phase: str, seconds: float) -> None:
        self._phase = phase
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def _judge(self, specification: Specification, constraint: Constraint) -> str:
        arguments = {parameter.name: _argument(parameter) for parameter in constraint.parameters}
        if None in arguments.values():
            return "not asked"
        context = context_of(self._state, steps=self._steps)
        try:
            return str(specification.holds(constraint.name, arguments, context))
        except InvalidInput as error:
            return _said(error)

    def _enter(self, context: FrameType, _event: str, _argument: Any) -> Any:
        return self._note if context.f_code.co_filename.startswith(SOURCE) else None

    def _note(self, context: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            self.lines.add((context.f_code.co_filename, context.f_lineno))
        return self._note


def _argument(parameter: Parameter) -> Any:
    """A value for a parameter; none if it ranges over something unusual."""
    domain = canonical_name(parameter.domain.name) if isinstance(parameter.domain, Name) else ""
    one = {"vms": "v1", "hosts": "h1", "int": 1, "string": "rack"}.get(domain)
    if one is None or parameter.binding is Binding.MEMBER:
        return one
    group = frozenset([one])
    return group if parameter.binding is Binding.SUBSET else frozenset([group])


def _said(error: InvalidInput) -> str:
    """What was wrong, without names and numbers."""
    first = re.split(r"[':]", error.problems[0].what)[0]
    return re.sub(r"[0-9]+", "0", first)[:40]


def _kind_of(error: Exception, phase: str) -> str:
    """Return the name of a failure; a stack overflow ends at a random place, so it has none."""
    trace, place = error.__traceback__, ""
    while trace is not None and not isinstance(error, RecursionError | MemoryError):
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(SOURCE):
            place = f" ({Path(code.co_filename).name}, {code.co_name})"
        trace = trace.tb_next
    return f"{type(error).__name__} in {phase}{place}"


# Where texts come from


class Texts:
    """Makes texts: some out of nothing, most by changing texts that were interesting."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.kept = list(beginnings())

    def keep(self, text: str) -> None:
        """Remember a text; old ones make room, the first ones stay."""
        self.kept.append(text)
        if len(self.kept) > KEPT_MAX:
            del self.kept[KEPT_MAX // 4]

    def text(self) -> str:
        """The next text."""
        kinds = (self._noise, self._soup, self._nested, *[self._changed] * 9)
        return self._chance.choice(kinds)()[:LENGTH_MAX]

    def _noise(self) -> str:
        size = self._chance.choice((1, 5, 50, 500))
        if self._chance.choice((True, False)):
            data = self._chance.randbytes(size)
            return data.decode(self._chance.choice(("latin-1", "ascii")), "surrogateescape")
        return "".join(chr(self._chance.randrange(0x500)) for _ in range(size))

    def _soup(self) -> str:
        size = self._chance.choice((2, 5, 10, 40))
        body = " ".join(self._token() for _ in range(size))
        return self._chance.choice(("", "a ::= ", "a(v : vms) ::= ")) + body

    def _token(self) -> str:
        kinds: list[Sequence[str]] = [*[SIGNS] * 5, *[WORDS] * 4, STRANGE, NUMBERS]
        return self._chance.choice(self._chance.choice(kinds))

    def _nested(self) -> str:
        """Something deep or long."""
        times = self._chance.choice((10, 150, 250, 1000, 5000))
        before, core, after = self._chance.choice(DEEP)
        return f"a ::= {before * times}{core}{after * times}"

    def _changed(self) -> str:
        whole = self._chance.choice(self.kept)
        text = self._chance.choice((whole, whole, self._chance.choice(whole.split("\n\n"))))
        for _ in range(self._chance.choice((1, 1, 2, 3, 8))):
            text = self._chance.choice(CHANGES)(self, text)
        return text

    def changed_tokens(self, text: str) -> str:
        """Delete, double, swap, replace or insert a token."""
        tokens = TOKENS.findall(text) or [""]
        place, kind = self._chance.randrange(len(tokens)), self._chance.randrange(5)
        other = self._chance.choice((self._token(), self._chance.choice(tokens)))
        end = place + self._chance.choice((1, 1, 1, 3, 9))
        some = tokens[place:end]
        tokens[place:end] = ([], some * 2, some[::-1], [other], [*some, " ", other, " "])[kind]
        return "".join(tokens)

    def changed_characters(self, text: str) -> str:
        """Put in, replace or leave out a character."""
        place = self._chance.randrange(len(text) + 1)
        new = self._chance.choice((*STRANGE, "", "(", '"', '"""', "/*", "//", "\n", "]"))
        return text[:place] + new + text[place + self._chance.randrange(2) :]

    def spliced(self, text: str) -> str:
        """The beginning of one text and the end of another."""
        other = self._chance.choice(self.kept)
        place = self._chance.randrange(len(text) + 1)
        return text[:place] + other[self._chance.randrange(len(other) + 1) :]

    def wrapped(self, text: str) -> str:
        """Something deep or long around a word."""
        before, _, after = self._chance.choice(DEEP)
        times = self._chance.choice((1, 2, 3, 50, 300))
        words = list(re.finditer(r"\w+(\([^()]*\))?", text))
        if not words:
            return before * times + text + after * times
        word = self._chance.choice(words)
        middle = before * times + word.group() + after * times
        return text[: word.start()] + middle + text[word.end() :]


CHANGES: Final[tuple[Callable[[Texts, str], str], ...]] = (
    *[Texts.changed_tokens] * 6, *[Texts.changed_characters] * 3, Texts.spliced, Texts.wrapped,
)  # fmt: skip
DEEP: Final = (
    ("(", "true", ")"), ("{", "1", "}"), ("[", "1", "]"), ("card([", "1", "])"), ("^f(", "x", ")"),
    ("not ", "true", ""), ("-", "1 = 1", ""), ("- ", "1 = 1", ""), ("always ", "true", ""),
    ("!(x : vms) ", "true", ""), ("?x : {} . ", "true", ""), ("let x = 1 in ", "true", ""),
    ("true & ", "true", ""), ("true --> ", "true", ""), ("", "true", " <--> true"),
    ("1 + ", "1 = 1", ""), ("vms \\/ ", "vms = vms", ""), ("", "[1]", "[0]"),
    ("// ) \n", "true", ""), ('")" = ")" & ', "true", ""), ("{x . x : ", "vms", "}"),
    ("true b ::= ", "true", ""), ("/* ", "true", " */"), ("1", "0 = 1", ""),
    ("a", " ::= 1 = 1", ""),
)  # fmt: skip
"""What may stand before and after something, many times."""


def beginnings() -> Iterator[str]:
    """The texts to begin with: the library, the examples of the documentation, and our own."""
    yield from EXAMPLES
    for path in sorted((Path(SOURCE) / "library").glob("*.spec")):
        yield path.read_text()
    documentation = (ROOT / "docs" / "spec-language.md").read_text()
    yield from re.findall(r"```spec\n(.*?)```", documentation, re.DOTALL)


# The run


class Run:
    """Counts what came of all texts."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.texts, self.mill = Texts(random.Random(seed)), Mill()
        self.counts: Counter[str] = Counter()
        self.outcomes: set[str] = set()
        self.failures: dict[str, str] = {}

    def judge(self, text: str) -> None:
        """Take a text through the mill and count it; keep it if it showed something new."""
        known = len(self.mill.lines)
        verdict = self.mill.grind(text)
        self.counts[verdict.outcome.split(":")[0]] += 1
        if verdict.failure:
            self.failures.setdefault(verdict.failure, text)
        elif verdict.outcome not in self.outcomes or len(self.mill.lines) > known:
            self.outcomes.add(verdict.outcome)
            if len(text) <= KEPT_LENGTH_MAX:
                self.texts.keep(text)

    def smallest(self, failure: str) -> str:
        """A shorter text that fails in the same way, as far as that is found quickly."""
        text = self.failures[failure]
        size, tries = len(text) // 2, 0 if "hang" in failure else 400
        while size > 0 and tries > 0:
            place = 0
            while place < len(text) and tries > 0:
                shorter, tries = text[:place] + text[place + size :], tries - 1
                if self.mill.grind(shorter).failure == failure:
                    text = shorter
                else:
                    place += size
            size //= 2
        return text

    def summary(self) -> str:
        """All figures on one line."""
        counts = ", ".join(f"{count:,} {what}" for what, count in self.counts.most_common())
        return (
            f"seed {self.seed}: {self.counts.total():,} texts ({counts}); "
            f"{len(self.outcomes)} different answers, {len(self.mill.lines)} lines reached, "
            f"{len(self.failures)} kinds of failure"
        )


def _alarm(_signal: int, _frame: FrameType | None) -> None:
    raise Hang


def main() -> int:
    """Run for the time that was given; 1 if there was a failure."""
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--all", action="store_true", help="go on after a failure")
    given = options.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    signal.signal(signal.SIGALRM, _alarm)
    run, end = Run(given.seed), perf_counter() + given.seconds
    for text in list(run.texts.kept):
        run.judge(text)
    while perf_counter() < end and (given.all or not run.failures):
        run.judge(run.texts.text())
    for failure in sorted(run.failures):
        sys.stdout.write(f"{failure}:\n{run.smallest(failure)[:2000]!r}\n\n")
    sys.stdout.write(f"{run.summary()}\n")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
