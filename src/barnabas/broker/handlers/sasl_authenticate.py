"""SaslAuthenticate: a token of the client's SASL mechanism.

Versions 0 to 2.
Behaviour
- the SASL listener answers it, during authentication and re-authentication (`broker/security/sasl/exchange.py`). It gets here only on a
  connection that is authenticated already, or on a listener without SASL.
Version notes
- 1: the response has the lifetime of the session, after which the client has to authenticate again (KIP-368).
Errors: ILLEGAL_SASL_STATE; SASL_AUTHENTICATION_FAILED from the listener.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[SaslAuthenticateRequest]) -> Reply[SaslAuthenticateResponse]:
    text = "SaslAuthenticate request received after successful authentication"
    return Reply.now(request, SaslAuthenticateResponse(ErrorCode.ILLEGAL_SASL_STATE, text))
