"""What each constraint of the library means, in plain Python.

Each function is written from the sentence that documents its constraint, without the formula.
Nothing here knows the language of the formulas.
"""

from __future__ import annotations

from meanings.btrplace import BTRPLACE
from meanings.core import CORE
from meanings.drs import DRS
from meanings.kubernetes import KUBERNETES
from meanings.more import MORE
from meanings.nova import NOVA
from meanings.world import Arguments, Meaning, World

__all__ = ["MEANINGS", "Arguments", "Meaning", "World"]

MEANINGS: dict[str, Meaning] = CORE | BTRPLACE | DRS | NOVA | KUBERNETES | MORE
