"""What the channels of the controller log about control requests, in Kafka's words."""

from __future__ import annotations

import logging
from typing import Final

from barnabas import loggers
from barnabas.controller.channel import ControlRequest
from barnabas.loggers import TRACE
from barnabas.protocol.message import Message
from barnabas.protocol.message_text import kafka_text

_log: Final = logging.getLogger("barnabas.broker.cluster.remote_channel")  # the same for both channels
_state_changes: Final = logging.getLogger(loggers.STATE_CHANGE)


def log_not_sent(request: ControlRequest, broker_id: int) -> None:
    _log.warning(
        "Not sending request %s with controllerId=%d, controllerEpoch=%d, brokerEpoch=%d to broker %d, since it is offline.",
        _api(request),
        request.controller_id,
        request.controller_epoch,
        request.broker_epoch,
        broker_id,
    )


def log_response(request: ControlRequest, response: Message, broker_id: int) -> None:
    if _state_changes.isEnabledFor(TRACE):
        _state_changes.log(
            TRACE,
            "[Controller id=%d epoch=%d] Received response %s for request %s sent to broker %d",
            request.controller_id,
            request.controller_epoch,
            kafka_text(response),
            _api(request),
            broker_id,
        )


def _api(request: ControlRequest) -> str:
    return type(request).__name__.removesuffix("Request")
