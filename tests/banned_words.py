"""Words that readers had to guess, each with its replacement.

They are refused in prose and in names: ``heed_events`` and ``HeedEvents`` are as wrong as "heed".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

_PERSON: Final = "name the thing: no host, the operator, the decider"

BANNED: Final[Mapping[str, str]] = {
    "nobody|somebody|anybody|someone|anyone|whoever|whomever|no one": _PERSON,
    "people|persons?": "the operator, the user, the reader",
    "everybody|everyone": "name the things: all VMs, every host",
    "(is|are|was|were|be|been) told": "receives, reports, prints",
    "(is|are|was|were|be|been) asked": "calls, requests, queries",
    "(is|are|was|were) heard": "arrives, is received",
    "by chance": "random, drawn from the seed",
    "at odds": "in conflict",
    "wish|wishes|wished|wishing": "goal, desired state, preference",
    "heed|heeds|heeded|heeding|unheeded": "on_event, follow; rejected",
    "reign|reigns": "leader epoch",
    "limbo": "unplaced",
    "unrest|turmoil": "faults",
    "happening|happenings": "scheduled event",
    "mend|mends|mended|mending": "repair",
    "levelling|levelled|evens? out": "rebalance, reduce the imbalance",
    "newcomers?": "arrival",
    "hasten|hastens|hastened": "run at once, run early",
    "deserves?|deserved": "entitlement",
    "climb|climbs|climbed|climber|climbing": "greedy search",
    "goodness": "placement score",
    "familiar|crew": "baseline, known; workers",
    "heirs?": "work transfer",
    "unfold|unfolds|unfolded": "expand",
    "imagined?": "overlay, what-if",
    "(carry|carries|carried) out": "execute",
    "take in": "apply",
    "surely": "certainly; name the proof",
    "torn": "separated, split, incomplete",
    "patience": "search budget, time limit",
    "going on": "in flight, in progress",
    "desk": "command queue",
    "story|stories": "scenario, run, history",
    "doings?": "action, phase",
    "anew": "again",
    "tidings": "events",
    "foretold": "scheduled, forecast",
    "house|doors?": "package, project, entry point",
    "scene|theatre": "view, state",
    "would be as many": "would not reduce the number",
    "decides everything": "random seed",
    "of all there was": "utilisation",
    "reconsider|reconsiders|reconsidered|reconsidering": "review the plan",
    "heart ?beats?": "periodic signal",
    "talks?|talked|talking": "exchange messages, compatibility",
    "hears?": "receives, sees",
    "troubles?": "failure, error",
    "divvied|divvying": "split",
}
"""Alternatives of a regular expression, and what to write instead."""

EXCEPTIONS: Final[Mapping[str, frozenset[str]]] = {
    # Keys, values and event tags of files and journals that earlier versions wrote.
    "src/equipoise/model/scenario/old_keys.py": frozenset(
        {"happenings", "mends", "story", "unrest", "wish"}
    ),
    "src/equipoise/model/event.py": frozenset({"reign"}),
    "src/equipoise/store/schema.py": frozenset({"reign"}),
    "src/equipoise/fuzz/trial/stored.py": frozenset({"nobody"}),
    "src/equipoise/fuzz/schedulers/deciders.py": frozenset({"wish"}),
    "docs/files.md": frozenset({"goodness", "happenings", "story", "unrest", "wish"}),
    "docs/campaigns.md": frozenset({"wish"}),
    "tests/unit/files/test_old_files.py": frozenset(
        {"happenings", "mends", "story", "unrest", "wish"}
    ),
    "tests/unit/store/test_old_journals.py": frozenset({"mends"}),
    "tests/unit/fuzz/trial/test_stored.py": frozenset({"mends", "nobody"}),
    "tests/unit/fuzz/schedulers/test_deciders.py": frozenset({"wish"}),
    # Keys of ``--json``, which programs read.
    "src/equipoise/documents/advice/power.py": frozenset({"mends"}),
    "src/equipoise/documents/advice/rows.py": frozenset({"mends"}),
    "src/equipoise/documents/role_run.py": frozenset({"story"}),
    "tests/e2e/test_roles_cli.py": frozenset({"story"}),
    # Keys of objects of the Kubernetes API, which schedulers read.
    "src/equipoise/adapters/kubernetes/cluster/controllers/node_lifecycle.py": frozenset(
        {"heartbeat"}
    ),
    # Names of random streams: another name would change every figure of a scenario.
    "src/equipoise/sim/world/fault_injection.py": frozenset({"unrest"}),
    "src/equipoise/sim/scenarios/nightly.yaml": frozenset({"everybody"}),
    # The tables of old and new names, and this list with its tests.
    "docs/adr/0015-names-of-the-field.md": frozenset({"*"}),
    "tests/banned_words.py": frozenset({"*"}),
    "tests/test_tidy.py": frozenset({"*"}),
}
"""Files that need old words, by their path from the root; ``*`` allows all."""

# "goodness" is a key of the balance policy, so its field and its readers keep it.
_KEYS_OF_POLICIES: Final = re.compile(r"\bgoodness\b")
_WORDS: Final = re.compile(rf"\b({'|'.join(BANNED)})\b", re.IGNORECASE)
_CAMEL_CASE: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def banned_words(text: str, path: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the word and the cure for each banned word of a file."""
    allowed = EXCEPTIONS.get(path, frozenset())
    if "*" in allowed:
        return
    for number, line in enumerate(text.splitlines(), 1):
        if path.endswith((".py", ".yaml")):
            line = _KEYS_OF_POLICIES.sub("", line)  # noqa: PLW2901
        for match in _WORDS.finditer(_CAMEL_CASE.sub(" ", line).replace("_", " ")):
            word = match.group(1).lower()
            if word not in allowed:
                yield number, word, _cure(word)


def _cure(word: str) -> str:
    return next(cure for words, cure in BANNED.items() if re.fullmatch(words, word))
