"""Checks that a broker answers at the address of a tool, before the tool starts its work.

`barnabas TOOL` gives up after ten seconds without a broker and prints one line with the reason. `barnabas kafka-TOOL` waits as long as
Kafka's script does, because scripts use it to wait for a broker that is starting. After the first answer only the timeouts of the client
apply.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from barnabas.config_def import InvalidConfig
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.tools.command_line.failures import complain
from barnabas.tools.command_line.grammar import Grammar
from barnabas.tools.command_line.text import Waiting

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

PATIENCE_MS: Final = 10_000
_SETTINGS: Final = ("default.api.timeout.ms", "request.timeout.ms")
_SERVERS: Final = "(bootstrap.servers)"
_UNRESOLVED: Final = "No resolvable bootstrap urls given in bootstrap.servers: "
_INVALID_URL: Final = "Invalid url in bootstrap.servers: "
_INVALID_PORT: Final = "Invalid port in bootstrap.servers: "

_patience_ms: ContextVar[int | None] = ContextVar("patience_ms", default=None)


@contextmanager
def giving_up_after(patience_ms: int | None) -> Generator[None, None, None]:
    """Within this context, tools end after `milliseconds` without a broker; with None, only the timeouts of the client apply."""
    token = _patience_ms.set(patience_ms)
    try:
        yield
    finally:
        _patience_ms.reset(token)


def says_why_in_one_line() -> bool:
    """Whether `require_reachable` reports a wrong address, so that the tool need not."""
    return _patience_ms.get() is not None


def patience_ms(grammar: Grammar, words: Sequence[str], settings: Mapping[str, str], option: str | None = None) -> int:
    """How long a tool waits for the first broker: from its command line, else from the settings of its client, else ten seconds.

    `option` names the option of the tool that limits this wait, if it has one.
    """
    given = grammar.given(words)
    values = [given[option]] if option in given else []
    for setting in _SETTINGS:
        values += [word.rpartition("=")[2] for word in words if word.startswith(f"{setting}=") or f"={setting}=" in word]
        values += [settings[setting]] if setting in settings else []
    return next((int(value) for value in values if value.isascii() and value.isdigit() and int(value)), PATIENCE_MS)


def require_reachable(config: Mapping[str, Any]) -> None:
    """Raises Ended, after printing the reason on stderr, if no broker answers in time or a broker rejects these settings.

    Other errors are reported by the client of the tool. The check uses a client of its own, because a consumer or a producer logs
    connection warnings as soon as it exists.
    """
    patience = _patience_ms.get()
    if patience is None:
        return
    from barnabas.client.admin.admin import Admin
    from barnabas.client.config.config import SharedSettings

    # An admin client validates these settings against each other and would reject values that a producer or consumer accepts.
    option = "--bootstrap-controller" if config.get("bootstrap.controllers") else "--bootstrap-server"
    settings = {name: value for name, value in config.items() if name not in _SETTINGS}
    with quiet_clients():
        try:
            with Admin(SharedSettings(settings)) as admin, Waiting("a broker", _why_not_yet(admin, option)):
                admin.describe_cluster(timeout_ms=patience)
        except KafkaError as error:
            reason = _reason(error, option)
            if reason is not None:
                raise complain(f"barnabas: {reason}") from error


def _why_not_yet(admin: Admin, option: str) -> Callable[[], str]:
    return lambda: _naming(option, admin.last_connection_error() or "")


def _reason(error: KafkaError, option: str) -> str | None:
    from barnabas.client.config.common_config import PORT_MAX
    from barnabas.security.errors import AuthenticationError

    text = str(error)
    if isinstance(error, InvalidConfig):
        if text.startswith(_UNRESOLVED):
            return f"{text.removeprefix(_UNRESOLVED)}; correct {option}"
        if text.startswith(_INVALID_URL):
            return f"{option} {text.removeprefix(_INVALID_URL)}"
        if text.startswith(_INVALID_PORT):
            return f"{option} {text.removeprefix(_INVALID_PORT)}: a port is a number from 0 to {PORT_MAX}"
    if isinstance(error, AuthenticationError):
        return _naming(option, error)
    return _naming(option, error.__cause__ or error) if error.code == ErrorCode.REQUEST_TIMED_OUT else None


def _naming(option: str, error: object) -> str:
    return str(error).replace(_SERVERS, f"({option})")


@contextmanager
def quiet_clients() -> Generator[None, None, None]:
    """Suppresses the connection warnings of clients: the tool reports the same failure in one line."""
    logger = logging.getLogger("barnabas.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
