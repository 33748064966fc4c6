"""Whether a broker answers at the address that a tool was given, found out before the tool begins its work.

`barnabas TOOL` gives up after ten seconds without any broker and says in one line why. Kafka's names of the tools wait as long as Kafka's:
scripts use them to wait for a broker that is about to start. A tool that has once reached a broker has all the time that its client has.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from barnabas.config_def import InvalidConfig
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.tools._failures import complain
from barnabas.tools._grammar import Grammar
from barnabas.tools._text import Waiting

PATIENCE_MS: Final = 10_000
_SETTINGS: Final = ("default.api.timeout.ms", "request.timeout.ms")
_OPTIONS: Final = ("--timeout-ms", "--max-block-ms", "--timeout")
_LINGER_OPTION: Final = "--max-block-ms"  # of the tool whose --timeout is another thing
_SERVERS: Final = "(bootstrap.servers)"
_UNRESOLVED: Final = "No resolvable bootstrap urls given in bootstrap.servers: "

_patience_ms: ContextVar[int | None] = ContextVar("patience_ms", default=None)


@contextmanager
def giving_up_after(patience_ms: int | None) -> Generator[None, None, None]:
    """Tools that run inside end after so long without a broker; with None, a client finds out itself."""
    token = _patience_ms.set(patience_ms)
    try:
        yield
    finally:
        _patience_ms.reset(token)


def patience_ms(grammar: Grammar, words: Sequence[str], settings: Mapping[str, str]) -> int:
    """How long a tool waits for the first broker: what its command line or the settings of its client say, or ten seconds."""
    given, known = grammar.given(words), grammar.known(words)
    options = [name for name in _OPTIONS if not (name == "--timeout" and _LINGER_OPTION in known)]
    values = [given[name] for name in options if name in given]
    for setting in _SETTINGS:
        values += [word.rpartition("=")[2] for word in words if word.startswith(f"{setting}=") or f"={setting}=" in word]
        values += [settings[setting]] if setting in settings else []
    return next((int(value) for value in values if value.isascii() and value.isdigit() and int(value)), PATIENCE_MS)


def require_reachable(config: Mapping[str, Any]) -> None:
    """Raises Ended, with the reason on stderr, where no broker answers in time a client with these settings.

    Other errors, such as a wrong password, are left to the client that the tool makes. It is another one than that which asks here: a
    consumer or a producer warns of the connection from the moment it is made.
    """
    patience = _patience_ms.get()
    if patience is None:
        return
    from barnabas.client.admin.admin import Admin
    from barnabas.client.config import SharedSettings

    # An admin client checks these against each other, and would refuse what a producer or consumer takes.
    settings = {name: value for name, value in config.items() if name not in _SETTINGS}
    with _quiet_clients():
        try:
            with Admin(SharedSettings(settings)) as admin, Waiting("a broker"):
                admin.describe_cluster(timeout_ms=patience)
        except KafkaError as error:
            reason = _reason(error)
            if reason is not None:
                raise complain(f"barnabas: {reason}") from error


def _reason(error: KafkaError) -> str | None:
    if isinstance(error, InvalidConfig) and str(error).startswith(_UNRESOLVED):
        return f"{str(error).removeprefix(_UNRESOLVED)}; correct --bootstrap-server"
    if error.code != ErrorCode.REQUEST_TIMED_OUT:
        return None
    return str(error.__cause__ or error).replace(_SERVERS, "(--bootstrap-server)")


@contextmanager
def _quiet_clients() -> Generator[None, None, None]:
    """What a client would warn of is what the tool says itself."""
    logger = logging.getLogger("barnabas.client")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
