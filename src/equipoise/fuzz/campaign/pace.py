"""How many trials are judged together: enough to be fast, few enough to end in time.

What comes out of a campaign does not depend on it.
"""

from __future__ import annotations

from math import ceil, inf
from typing import Final

from equipoise.fuzz.campaign.crew import AHEAD

BLOCK_S: Final = 4.0
"""How long a block takes, more or less: as often the limits are looked at."""
LAST_S: Final = 1.0
"""How long the last blocks take at the least; shorter ones would cost more than waiting does."""
FIRST: Final = 128
"""How many trials the first block has, of which nobody knows how long it takes."""
SMALLEST: Final = 32
"""How many trials a block has at the least, however slow the scheduler is."""
LARGEST: Final = 1 << 16
"""How many trials a block has at the most, so that arrays do not grow too large."""


class Pace:
    """Learns from each block how large the next may be."""

    def __init__(self, hands: int) -> None:
        self._hands = hands
        self._per_s = FIRST / BLOCK_S
        """How many trials one hand does in a second."""

    def note(self, trials: int, seconds: float) -> None:
        """Learn from a block, but not too much at once: the first ones are slow."""
        self._per_s = min(16 * self._per_s, trials / max(seconds, 1e-6))

    def size(self, left: float, left_s: float) -> int:
        """How many trials the next block has, if so many trials and seconds are left."""
        wish_s = min(BLOCK_S, left_s / AHEAD)
        # Towards the end ever smaller ones, so that nobody waits long for the last of them.
        share = left if self._hands == 1 else max(left / self._hands, self._per_s * LAST_S)
        wish = max(SMALLEST, min(self._per_s * max(wish_s, 0), share, LARGEST))
        return ceil(min(wish, left)) if left < inf else ceil(wish)
