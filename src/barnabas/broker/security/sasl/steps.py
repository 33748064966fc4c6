"""What the exchange of a connection decides about one frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from barnabas.broker.security.sasl.mechanism import ServerExchange
from barnabas.protocol.framing import RequestFrame, response_frame
from barnabas.protocol.message import Message
from barnabas.protocol.slices import Streamed

Frame = Sequence[bytes | memoryview | Streamed]


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The dispatcher handles the request: ApiVersions."""


@dataclass(frozen=True, slots=True)
class Evaluate:
    """The mechanism is to evaluate the token of the client. `header` is None if the token came without Kafka's header."""

    mechanism: ServerExchange
    token: bytes = field(repr=False)
    header: RequestFrame | None
    blocks: bool


@dataclass(frozen=True, slots=True)
class Respond:
    frame: Frame = field(repr=False)


@dataclass(frozen=True, slots=True)
class Fail:
    """The connection is closed, after the response if there is one. `reason` is for the log of the broker."""

    reason: str
    frame: Frame = field(default=(), repr=False)


Step = Dispatch | Evaluate | Respond | Fail


def framed(response: Message, header: RequestFrame) -> Frame:
    return response_frame(response, header.correlation_id, header.version, header.api.response_header_version(header.version))
