"""The upgrade campaigns that come with the product."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from importlib.resources import files as resources

from equipoise.errors import InvalidInput, Problem
from equipoise.model.files import parse_campaign
from equipoise.model.upgrade.campaign import Campaign


def campaign_names() -> tuple[str, ...]:
    """The names of the built-in campaigns, in order."""
    folder = resources("equipoise.sim.upgrading") / "campaigns"
    found = (entry.name for entry in folder.iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml")))


def builtin_campaign(name: str) -> Campaign:
    """Read a built-in campaign."""
    known = campaign_names()
    if name not in known:
        close = get_close_matches(name, known, n=1)
        cure = f"did you mean {close[0]}?" if close else f"one of {', '.join(known)}, or a file"
        problem = Problem(key="", what="there is no such file or built-in campaign", cure=cure)
        raise InvalidInput(name, [problem])
    entry = resources("equipoise.sim.upgrading") / "campaigns" / f"{name}.yaml"
    return parse_campaign(entry.read_bytes(), entry.name)


def all_campaigns() -> Iterator[Campaign]:
    """Read all of them."""
    return (builtin_campaign(name) for name in campaign_names())
