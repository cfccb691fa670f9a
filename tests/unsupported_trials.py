"""The check that a scheduler rejects a trial as unsupported, with a code of the registry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from equipoise.adapters.targets.scheduler import UnsupportedTrial
from equipoise.errors import CODES


@contextmanager
def unsupported(code: str, detail: str = "") -> Iterator[None]:
    """The block raises ``UnsupportedTrial`` with a code; ``detail`` matches names and figures."""
    with pytest.raises(UnsupportedTrial, match=detail or None) as caught:
        yield
    assert caught.value.code == code
    assert code in CODES
