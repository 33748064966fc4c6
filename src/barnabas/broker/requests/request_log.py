"""The request log: each completed request as JSON with its times, on Kafka's logger `kafka.request.logger`.

It is off, as in Kafka, until the logger's level is DEBUG or TRACE. Beyond Kafka, each API has a child of that logger
(`kafka.request.logger.Produce`), and with barnabas.request.log.slow.ms only requests that took as long are logged. The message is converted
after its response was sent, so that a request that is not logged costs nothing. Secrets are hidden: those of SASL, SCRAM and delegation
tokens, and the values of settings that are passwords or not known.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from barnabas import loggers
from barnabas.broker.config.describe import is_hidden
from barnabas.broker.security.session import Session
from barnabas.protocol import api_keys
from barnabas.protocol.message import Message
from barnabas.protocol.registry import APIS

if TYPE_CHECKING:
    from barnabas.broker.requests.request import Request
    from barnabas.network.exchange import Exchange

_log: Final = logging.getLogger(loggers.REQUEST)
_WITH_CONFIG_VALUES: Final = frozenset({api_keys.ALTER_CONFIGS, api_keys.INCREMENTAL_ALTER_CONFIGS})


_KEY_NAMES: Final = {key: name for name, key in vars(api_keys).items() if isinstance(key, int)}  # `PRODUCE`


class RequestLog:
    """`slow_ms` returns the current threshold in milliseconds; 0 logs every request. `is_on` is all that is read while it is off."""

    def __init__(self, slow_ms: Callable[[], int]) -> None:
        if _log.level == logging.NOTSET:
            _log.setLevel(logging.WARNING)  # as in Kafka: a broker at DEBUG does not log every request
        self._slow_ms = slow_ms
        self._apis: frozenset[int] = frozenset()
        self.is_on = False
        self.refresh()
        _logs.add(self)

    def refresh(self) -> None:
        """Reads the levels of the loggers. Called when one has changed."""
        self._apis = frozenset(key for key, api in APIS.items() if _logger_of(api.name).isEnabledFor(logging.DEBUG))
        self.is_on = bool(self._apis)

    def watch(self, request: Request[Any]) -> None:
        """Has the request logged when its response was sent, if its API is switched on; not those of an authentication, as in Kafka."""
        is_authenticated = isinstance(request.connection.session, Session)
        if is_authenticated and request.api.key in self._apis and request.message is not None:
            request.exchange.watcher = LoggedRequest(self, request)

    def write(self, request: Request[Any], response: Message | None, times: RequestTimes) -> None:
        """Logs a completed request. Its connection must not notice that this fails, nor that a handler of the loggers does."""
        try:
            self._write(request, response, times)
        except Exception as error:
            with suppress(Exception):
                _log.warning("The request %s could not be logged: %r", request, error)

    def _write(self, request: Request[Any], response: Message | None, times: RequestTimes) -> None:
        if times.total_ms < self._slow_ms():
            return
        logger = _logger_of(request.api.name)
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("Completed request:%s", json.dumps(_described(request, response, times), separators=(",", ":")))


_logs: WeakSet[RequestLog] = WeakSet()


def refresh_all() -> None:
    """The loggers of a process are shared by all its brokers: a level that one changes counts for the requests of each."""
    for log in _logs:
        log.refresh()


class RequestTimes:
    """When a request was received, dequeued, handled, completed, and its response sent, in nanoseconds of one clock."""

    __slots__ = ("complete_ns", "dequeued_ns", "handled_ns", "received_ns", "sending_ns", "sent_ns", "throttle_ms")

    def __init__(
        self, received_ns: int, dequeued_ns: int, handled_ns: int, complete_ns: int, sending_ns: int, sent_ns: int, throttle_ms: int = 0
    ) -> None:
        self.received_ns = received_ns
        self.dequeued_ns = dequeued_ns
        self.handled_ns = handled_ns
        self.complete_ns = complete_ns
        self.sending_ns = sending_ns
        self.sent_ns = sent_ns
        self.throttle_ms = throttle_ms

    @property
    def total_ms(self) -> float:
        return _ms(self.sent_ns - self.received_ns)


class LoggedRequest:
    """A request that is logged when its exchange is complete. `response` is None for a response that was sent as bytes or not at all."""

    __slots__ = ("_log", "_request", "response")

    def __init__(self, log: RequestLog, request: Request[Any]) -> None:
        self._log = log
        self._request = request
        self.response: Message | None = None

    def response_made(self, response: Message) -> None:
        self.response = response

    def completed(self, exchange: Exchange, handled_ns: int, complete_ns: int, sending_ns: int, sent_ns: int) -> None:
        received_ns, dequeued_ns = exchange.received_ns, exchange.dequeued_ns
        times = RequestTimes(received_ns, dequeued_ns, handled_ns, complete_ns, sending_ns, sent_ns, exchange.throttle_ms)
        self._log.write(self._request, self.response, times)


def _logger_of(api: str) -> logging.Logger:
    """The logger of an API if it was given a level, else that of all requests."""
    name = f"{loggers.REQUEST}.{api}"
    return logging.getLogger(name) if name in logging.Logger.manager.loggerDict else _log


def _described(request: Request[Any], response: Message | None, times: RequestTimes) -> dict[str, Any]:
    """The fields and the order of Kafka's RequestConvertToJson."""
    from barnabas.protocol.message_json import message_json  # reads Kafka's schemas, which a broker otherwise does not need

    api, version, connection = request.api, request.version, request.connection
    header: dict[str, Any] = {"requestApiKey": api.key, "requestApiVersion": version, "correlationId": request.correlation_id}
    if api.request_header_version(version) > 0:
        header["clientId"] = request.client_id
    header["requestApiKeyName"] = _KEY_NAMES[api.key]
    software = connection.client_software or ("unknown", "unknown")
    return {
        "isForwarded": False,
        "requestHeader": header,
        "request": _without_passwords(api.key, message_json(request.message, version)),
        "response": "" if response is None else message_json(response, version),
        "connection": connection.id,
        "totalTimeMs": times.total_ms,
        "requestQueueTimeMs": _ms(times.dequeued_ns - times.received_ns),
        "localTimeMs": _ms(times.handled_ns - times.dequeued_ns),
        "remoteTimeMs": _ms(times.complete_ns - times.handled_ns),
        "throttleTimeMs": times.throttle_ms,
        "responseQueueTimeMs": _ms(times.sending_ns - times.complete_ns),
        "sendTimeMs": _ms(times.sent_ns - times.sending_ns),
        "securityProtocol": _security_protocol(request),
        "principal": str(request.session.principal),
        "listener": request.listener_name,
        "clientInformation": {"softwareName": software[0], "softwareVersion": software[1]},
    }


def _security_protocol(request: Request[Any]) -> str:
    has_tls = request.connection.extra_info("ssl_object") is not None
    if request.session.mechanism is None:
        return "SSL" if has_tls else "PLAINTEXT"
    return "SASL_SSL" if has_tls else "SASL_PLAINTEXT"


def _without_passwords(api_key: int, request: dict[str, Any]) -> dict[str, Any]:
    from barnabas.protocol.message_json import HIDDEN

    if api_key in _WITH_CONFIG_VALUES:
        for resource in _structures(request["resources"]):
            for config in _structures(resource["configs"]):
                if config.get("value") is not None and is_hidden(resource["resourceType"], config["name"]):
                    config["value"] = HIDDEN
    return request


def _structures(elements: list[Any]) -> list[dict[str, Any]]:
    """The elements without the text that ends a list of which some are left out."""
    return [element for element in elements if not isinstance(element, str)]


def _ms(nanoseconds: int) -> float:
    return max(nanoseconds, 0) // 1_000 / 1_000
