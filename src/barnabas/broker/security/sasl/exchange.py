"""Kafka's SaslServerAuthenticator: the state of one authentication, which decides about each frame of the connection.

A client may send ApiVersions, and sends SaslHandshake. After SaslHandshake version 1 tokens are in SaslAuthenticate requests. After
version 0 they are the whole frame, as for clients before Kafka 1.0. A client of Kafka 0.9 sends no request at all, only tokens of GSSAPI.

It does no I/O and reads no clock: `SaslListener` carries out the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from barnabas.broker.security.sasl.mechanism import Mechanism, SaslFailure, ServerExchange
from barnabas.broker.security.sasl.steps import Dispatch, Evaluate, Fail, Frame, Respond, Step, framed
from barnabas.errors import KafkaError
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode, MalformedMessage
from barnabas.protocol.framing import RequestFrame, parse_request
from barnabas.protocol.messages.metadata_request import MetadataRequest
from barnabas.protocol.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from barnabas.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from barnabas.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from barnabas.protocol.registry import Api
from barnabas.security.errors import AuthenticationError

SIZE_PREFIX: Final = 4
GSSAPI: Final = "GSSAPI"
_ELEMENTS_MAX: Final = 0  # neither request of SASL has an array
_TOPICS_MAX: Final = 1_000  # of a Metadata request that is refused


class State(Enum):
    INITIAL = auto()  # a token of GSSAPI, SaslHandshake or ApiVersions
    HANDSHAKE_OR_VERSIONS = auto()
    HANDSHAKE = auto()  # after ApiVersions
    AUTHENTICATE = auto()
    REAUTHENTICATE_OTHER_MECHANISM = auto()  # the next request fails
    COMPLETE = auto()
    FAILED = auto()


class SaslExchange:
    """`previous_mechanism` is that of the session to renew; None in the first authentication of a connection."""

    def __init__(self, mechanisms: Mapping[str, Mechanism], previous_mechanism: str | None = None) -> None:
        self._mechanisms = mechanisms
        self._previous_mechanism = previous_mechanism
        self._state = State.INITIAL if previous_mechanism is None else State.HANDSHAKE
        self._has_headers = False  # whether tokens are in SaslAuthenticate requests
        self._server: ServerExchange | None = None
        self._blocks = False
        self.mechanism = ""

    @property
    def kind(self) -> str:
        """As Kafka's texts name it."""
        return "authentication" if self._previous_mechanism is None else "re-authentication"

    @property
    def is_over(self) -> bool:
        return self._state in (State.COMPLETE, State.FAILED)

    def receive(self, frame: bytes) -> Step:
        """The next step after a frame, which is given without its size."""
        if self.is_over:
            return self._fail(f"The client sends a request after the end of its {self.kind}")
        try:
            if self._state is State.AUTHENTICATE or self._state is State.REAUTHENTICATE_OTHER_MECHANISM:
                return self._token(frame)
            return self._request(frame)
        except (MalformedMessage, AuthenticationError) as error:
            return self._fail(str(error))

    def evaluated(self, step: Evaluate, challenge: bytes, lifetime_ms: int | None) -> Respond:
        """The mechanism has accepted the token. `lifetime_ms` is that of the session, if the exchange is complete."""
        is_complete = step.mechanism.is_complete
        if is_complete:
            self._state = State.COMPLETE
        if step.header is None:
            frame: Frame = (len(challenge).to_bytes(SIZE_PREFIX, "big") + challenge,)
        else:
            sent_ms = lifetime_ms or 0 if is_complete else 0
            frame = framed(SaslAuthenticateResponse(auth_bytes=challenge, session_lifetime_ms=sent_ms), step.header)
        return Respond(frame)

    def rejected(self, step: Evaluate, error: Exception) -> Fail:
        """The mechanism has rejected the token. The client gets the text of a KafkaError only: another may tell which users exist."""
        text = f"Authentication failed during {self.kind} due to invalid credentials with SASL mechanism {self.mechanism}"
        code = int(ErrorCode.SASL_AUTHENTICATION_FAILED)
        if isinstance(error, KafkaError):
            text, code = str(error), error.code
        reason = f"{text} ({error})" if isinstance(error, SaslFailure) else text
        return self._fail(reason, () if step.header is None else framed(SaslAuthenticateResponse(code, text), step.header))

    def _request(self, frame: bytes) -> Step:
        try:
            header = parse_request(frame)
        except MalformedMessage:
            if self._state is not State.INITIAL:
                raise
            return self._token_of_old_client(frame)
        if self._state is State.INITIAL:
            self._state = State.HANDSHAKE_OR_VERSIONS
        if header.api.key == api_keys.SASL_HANDSHAKE:
            return self._handshake(header)
        if header.api.key == api_keys.API_VERSIONS and self._state is State.HANDSHAKE_OR_VERSIONS:
            if not header.is_unsupported_api_versions:
                self._state = State.HANDSHAKE
            return Dispatch()
        return self._fail(f"Unexpected Kafka request of type {_kafka_name(header.api)} during SASL handshake.")

    def _token_of_old_client(self, frame: bytes) -> Step:
        if GSSAPI not in self._mechanisms:
            return self._fail("Exception handling first SASL packet from client, GSSAPI is not supported by server")
        self._begin(GSSAPI)
        return self._token(frame)

    def _handshake(self, header: RequestFrame) -> Step:
        message = header.message(_ELEMENTS_MAX)
        assert isinstance(message, SaslHandshakeRequest)
        self._has_headers = header.version >= 1
        names = list(self._mechanisms)
        if message.mechanism not in self._mechanisms:
            frame = framed(SaslHandshakeResponse(int(ErrorCode.UNSUPPORTED_SASL_MECHANISM), names), header)
            return self._fail(f"Unsupported SASL mechanism {message.mechanism[:100]!r}", frame)
        self.mechanism = message.mechanism
        if self._previous_mechanism in (None, message.mechanism):
            self._begin(message.mechanism)
        else:
            self._state = State.REAUTHENTICATE_OTHER_MECHANISM
        return Respond(framed(SaslHandshakeResponse(int(ErrorCode.NONE), names), header))

    def _begin(self, mechanism: str) -> None:
        self.mechanism = mechanism
        self._server = self._mechanisms[mechanism].begin()
        self._blocks = self._mechanisms[mechanism].blocks
        self._state = State.AUTHENTICATE

    def _token(self, frame: bytes) -> Step:
        if self._state is State.REAUTHENTICATE_OTHER_MECHANISM:
            return self._fail(
                f"SASL mechanism '{self.mechanism}' requested by client is not supported for re-authentication of mechanism "
                f"'{self._previous_mechanism}'"
            )
        assert self._server is not None
        if not self._has_headers:
            return Evaluate(self._server, frame, None, self._blocks)
        header = parse_request(frame)
        if header.api.key != api_keys.SASL_AUTHENTICATE:
            return self._fail(f"Unexpected Kafka request of type {_kafka_name(header.api)} during SASL authentication.", _refusal(header))
        message = header.message(_ELEMENTS_MAX)
        assert isinstance(message, SaslAuthenticateRequest)
        return Evaluate(self._server, message.auth_bytes, header, self._blocks)

    def _fail(self, reason: str, frame: Frame = ()) -> Fail:
        self._state = State.FAILED
        return Fail(reason, frame)


def _refusal(header: RequestFrame) -> Frame:
    """ILLEGAL_SASL_STATE in the response of any API that has an error of the whole, or for each topic of Metadata, which has none."""
    if not header.api.has_version(header.version):
        return ()
    if header.api.key == api_keys.METADATA:
        return framed(_metadata_refusal(header), header)
    response = header.api.response()
    if "error_code" not in response.field_names():
        return ()
    response.error_code = int(ErrorCode.ILLEGAL_SASL_STATE)  # type: ignore[attr-defined]
    return framed(response, header)


def _metadata_refusal(header: RequestFrame) -> MetadataResponse:
    request = header.message(_TOPICS_MAX)
    assert isinstance(request, MetadataRequest)
    code = int(ErrorCode.ILLEGAL_SASL_STATE)
    return MetadataResponse(topics=[MetadataResponseTopic(code, topic.name or "", topic.topic_id) for topic in request.topics or ()])


def _kafka_name(api: Api) -> str:
    """As Kafka's texts name it: SASL_HANDSHAKE."""
    return "".join(f"_{letter}" if letter.isupper() and at else letter for at, letter in enumerate(api.name)).upper()
