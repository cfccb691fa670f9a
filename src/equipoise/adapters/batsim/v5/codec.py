"""The dialect of Batsim 5 (batprotocol in JSON) for both ends of an exchange."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from struct import pack, unpack_from
from typing import Any, Final

import msgspec

from equipoise.adapters.batsim.protocol.codec import Request
from equipoise.adapters.batsim.protocol.messages import SchedulerError
from equipoise.adapters.batsim.protocol.options import ProtocolOptions
from equipoise.adapters.batsim.v5.decisions import decode_decision, encode_decision
from equipoise.adapters.batsim.v5.events import (
    BATPROTOCOL_VERSION,
    decode_event,
    encode_event,
)
from equipoise.adapters.batsim.v5.session import Session, WantedFeatures

_BINARY: Final = 1
_JSON: Final = 2
_LENGTH: Final = 4
_HELLO: Final = "EDCHelloEvent"


class BatprotocolCodec:
    """The simulator's end."""

    def __init__(self, init: bytes = b"") -> None:
        self._init = init
        """What the scheduler receives first, as it is."""
        self._session = Session()
        self.scheduler = ""
        """Name and version of the scheduler, once it has introduced itself."""

    def greet(self, request: Request, options: ProtocolOptions) -> ProtocolOptions:
        """Send the initial bytes, read what the scheduler wants."""
        answer = request(pack("=I", len(self._init)) + self._init)
        if len(answer) < _LENGTH:
            raise SchedulerError(_HELLO, "is too short", "send four bytes of flags first")
        (flags,) = unpack_from("=I", answer)
        if flags & _BINARY or not flags & _JSON:
            what = f"the flags {flags} ask for binary messages" if flags & _BINARY else "no format"
            raise SchedulerError(_HELLO, what, "choose JSON in the scheduler: flag 2, not 1")
        hello = self._hello(_read(answer[_LENGTH:], _HELLO))
        features = hello.get("requested_simulation_features") or {}
        known = {key: bool(features.get(key)) for key in asdict(WantedFeatures())}
        wanted = WantedFeatures(**known)
        self._session.features = wanted
        name, version = hello["decision_component_name"], hello["decision_component_version"]
        self.scheduler = f"{name} {version}"
        return replace(
            options,
            version=5,
            compute_sharing=True,
            forward_unknown_events=True,
            dynamic_jobs=wanted.dynamic_registration,
            acknowledge_dynamic_jobs=wanted.acknowledge_dynamic_jobs,
            profile_reuse=wanted.profile_reuse,
            forward_profiles=wanted.forward_profiles_on_job_submission,
        )

    def _hello(self, message: object) -> Mapping[str, Any]:
        try:
            assert isinstance(message, dict)
            (event,) = message["events"]
            hello: Mapping[str, Any] = event["event"]
            if event["event_type"] != _HELLO:
                raise ValueError(event["event_type"])
            for key in ("decision_component_name", "decision_component_version"):
                str(hello[key])
        except (AssertionError, KeyError, TypeError, ValueError):
            what = "the first message is another one, or lacks a field"
            raise SchedulerError(_HELLO, what, f"send one {_HELLO} with name and version") from None
        return hello

    def encode(self, message: dict[str, Any]) -> bytes:
        """Return the JSON text of a message in version 5, and a byte of value 0."""
        self._session.now_s = message["now"]
        events = [encode_event(event, self._session) for event in message["events"]]
        return msgspec.json.encode({"now": message["now"], "events": events}) + b"\0"

    def decode(self, frame: bytes) -> object:
        """Return the reply in its form of version 4."""
        reply = _read(frame.rstrip(b"\0"), "reply")
        if not isinstance(reply, dict) or not isinstance(reply.get("events"), list):
            return reply
        return {**reply, "events": [self._decode(event) for event in reply["events"]]}

    def _decode(self, event: Any) -> object:
        well_formed = (
            isinstance(event, dict)
            and isinstance(event.get("event_type"), str)
            and isinstance(event.get("event"), dict)
            and isinstance(event.get("timestamp"), int | float)
        )
        if not well_formed:
            what = f"{event!r} is no event"
            raise SchedulerError("reply", what, "send timestamp, event_type, event")
        return _translate(event["event_type"], lambda: decode_decision(event, self._session))


class DecisionCodec:
    """The scheduler's end: it reads messages of a simulator and writes replies."""

    def __init__(self, features: WantedFeatures | None = None) -> None:
        self._session = Session(features=features or WantedFeatures())

    def hello(self, name: str, version: str) -> bytes:
        """Return the answer to the first frame of the simulator."""
        event = {
            "batprotocol_version": BATPROTOCOL_VERSION,
            "decision_component_name": name,
            "decision_component_version": version,
            "decision_component_commit": "",
            "requested_simulation_features": asdict(self._session.features),
        }
        events = [{"timestamp": 0.0, "event_type": _HELLO, "event": event}]
        return pack("=I", _JSON) + msgspec.json.encode({"now": 0.0, "events": events})

    def decode(self, frame: bytes) -> dict[str, Any]:
        """Return a message of the simulator in its form of version 4."""
        message = _read(frame.rstrip(b"\0"), "message")
        if not isinstance(message, dict):
            raise SchedulerError("message", "is no JSON object", "send now and events")
        self._session.now_s = message["now"]
        events = [
            _translate(str(event["event_type"]), lambda event=event: self._event(event))  # type: ignore[misc]
            for event in message["events"]
        ]
        return {"now": message["now"], "events": events}

    def _event(self, event: dict[str, Any]) -> dict[str, Any]:
        return decode_event(event, self._session)

    def encode(self, reply: Mapping[str, Any]) -> bytes:
        """Return the frame of a reply."""
        events = [encode_decision(event, self._session) for event in reply["events"]]
        return msgspec.json.encode({"now": reply["now"], "events": events})


def _translate(kind: str, translate: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return translate()
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise SchedulerError(kind, what, "correct its data") from None


def _read(frame: bytes, event: str) -> object:
    try:
        return msgspec.json.decode(frame)
    except msgspec.DecodeError as error:
        raise SchedulerError(event, f"is no JSON: {error}", "send one JSON text") from None
