"""Events and actions: tags, encoding, texts and footprints."""

from __future__ import annotations

from typing import get_args

import msgspec

from builders import a_vm
from equipoise.documents.event_text import _TEXTS
from equipoise.model import event as events
from equipoise.model.action import Action, RoleAction, describe, footprint
from equipoise.model.event import (
    Event,
    HostFailed,
    VmArrived,
    decode_event,
    encode_event,
    event_kind,
)
from equipoise.model.quantity import HostId
from equipoise.model.upgrade import event as upgrade_events
from equipoise.model.vm import CpuSettings


def test_every_event_class_is_part_of_the_union_and_has_a_text() -> None:
    classes = {
        member
        for module, base in (
            (events, events._EventBase),
            (upgrade_events, upgrade_events._UpgradeEventBase),
        )
        for member in vars(module).values()
        if isinstance(member, type) and issubclass(member, base) and member.__name__[0] != "_"
    }
    assert classes == set(get_args(Event)) == set(_TEXTS)


def test_tags_are_unique() -> None:
    tags = [kind.__struct_config__.tag for kind in get_args(Event)]
    assert len(tags) == len(set(tags))


def test_an_event_is_one_line_with_its_kind_first() -> None:
    event = HostFailed(at_ms=5, host=HostId("h1"), reason="a\nb")
    line = encode_event(event)
    assert line == b'{"event":"host_failed","at_ms":5,"host":"h1","reason":"a\\nb"}'
    assert decode_event(line) == event
    assert event_kind(event) == "host_failed"


def test_equal_events_have_equal_bytes() -> None:
    made = VmArrived(at_ms=1, vm=a_vm("v1", cpu=CpuSettings(shares=int("1000"))))
    read = decode_event(encode_event(made))
    assert read == made == VmArrived(at_ms=1, vm=a_vm("v1"))
    assert (
        encode_event(read) == encode_event(made) == encode_event(VmArrived(at_ms=1, vm=a_vm("v1")))
    )


def test_every_action_has_a_footprint_and_a_text() -> None:
    for kind in get_args(Action):
        fields: dict[str, object] = dict.fromkeys(kind.__struct_fields__, "x") | (
            {"amount": 1} if "amount" in kind.__struct_fields__ else {}
        )
        if issubclass(kind, RoleAction):
            fields |= {"epoch": 1, "vm": None}
        action = msgspec.convert({"do": kind.__struct_config__.tag, **fields}, kind)
        touched = footprint(action)
        assert touched.vm == getattr(action, "vm", None)
        assert "x" in describe(action)
        assert (touched.switched is None) == hasattr(action, "vm")
        assert touched.used == (action.host if isinstance(action, RoleAction) else None)
