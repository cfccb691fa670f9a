"""Says how well the tests of the library notice formulas that say something slightly else.

    python tools/mutation_score.py [CONSTRAINT ...]

Each formula is changed at one point in every way there is. A change is killed if the changed
formula disagrees with the meaning of its constraint in some world; it is equivalent if
``test_library_mutants`` lists it as one that changes nothing. The score is the share of killed ones
among those that are not equivalent. The exit code is 1 if a change survived that is not listed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from equipoise.spec.library import library
from property.spec.test_library_meaning import CONSTRAINTS
from property.spec.test_library_mutants import EQUIVALENT, judged


class Row(NamedTuple):
    """The figures of one constraint, or of all."""

    mutants: int
    killed: int
    equivalent: int
    survived: int

    def told(self, name: str) -> str:
        """One line of the table."""
        return f"{name:<32}" + "".join(f"{number:>12}" for number in self) + "\n"


def row_of(origin: str, name: str) -> tuple[Row, list[str]]:
    """The figures of a constraint, and the changes that survived and are not listed."""
    known = EQUIVALENT.get(name, {})
    verdict = judged(library()[origin], name, known)
    unnoticed = verdict.unnoticed
    survived = sorted(unnoticed - known.keys())
    equivalent = len(unnoticed) - len(survived)
    return Row(verdict.made, verdict.made - len(unnoticed), equivalent, len(survived)), survived


def main(wanted: list[str]) -> int:
    """Print the table; 1 if a change survived that is not listed."""
    sys.stdout.write(f"{'constraint':<32}" + "".join(f"{name:>12}" for name in Row._fields) + "\n")
    rows = []
    for origin, name in CONSTRAINTS:
        if not wanted or name in wanted:
            row, survived = row_of(origin, name)
            rows.append(row)
            sys.stdout.write(row.told(name) + "".join(f"    {mutant}\n" for mutant in survived))
    total = Row(*map(sum, zip(*rows, strict=True))) if rows else Row(0, 0, 0, 0)
    possible = total.mutants - total.equivalent
    score = 100 * total.killed / possible if possible else 100.0
    sys.stdout.write(total.told("all") + f"score: {score:.2f} %\n")
    return 1 if total.survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
