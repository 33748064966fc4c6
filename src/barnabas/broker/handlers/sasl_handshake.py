"""SaslHandshake: the SASL mechanism of a client, before it authenticates.

Versions 0 and 1.
Behaviour
- the SASL listener answers it, before authentication and to begin a re-authentication (`broker/security/sasl/exchange.py`). It gets here on
  a connection that is authenticated already and whose session does not expire, or on a listener without SASL.
Version notes
- 1: the tokens follow in SaslAuthenticate requests. After 0 they follow without Kafka's header.
Errors: ILLEGAL_SASL_STATE; UNSUPPORTED_SASL_MECHANISM from the listener, with the mechanisms that it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from barnabas.protocol.messages.sasl_handshake_response import SaslHandshakeResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[SaslHandshakeRequest]) -> Reply[SaslHandshakeResponse]:
    return Reply.now(request, SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE))
