# Compiled by mypyc: src/compiled.toml lists this module.
"""The audit log: one line a decision on Kafka's logger `kafka.authorizer.logger`.

Denied actions are at INFO, allowed ones at DEBUG. Decisions that only filter a list or compute authorized operations are at TRACE.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Final

from barnabas import loggers
from barnabas.broker.security.authorizer.acl_index import Decision
from barnabas.loggers import TRACE

if TYPE_CHECKING:
    from barnabas.broker.security.authorizer.authorizer import Action
    from barnabas.broker.security.session import Session

AUDIT_LOGGER: Final = loggers.AUTHORIZER

_log: Final = logging.getLogger(AUDIT_LOGGER)


class AuditLog:
    """`is_json`: lines are JSON objects, for programs; otherwise they are in Kafka's words.

    The logger gets the level INFO unless it has one, as in Kafka's own logging settings: a broker that logs warnings only still logs what
    it denies.
    """

    __slots__ = ("_is_json",)

    def __init__(self, is_json: bool = False) -> None:
        self._is_json = is_json
        if _log.level == logging.NOTSET:
            _log.setLevel(logging.INFO)

    @property
    def logs_allowed(self) -> bool:
        """Whether allowed actions have a line. The level of the logger can change at any time."""
        return _log.isEnabledFor(logging.DEBUG)

    def write(self, session: Session, action: Action, decision: Decision) -> None:
        if decision.is_allowed:
            level = logging.DEBUG if action.logs_allowed else TRACE
        else:
            level = logging.INFO if action.logs_denied else TRACE
        if _log.isEnabledFor(level):
            _log.log(
                level, "%s", self._json(session, action, decision) if self._is_json else _one_line(self._text(session, action, decision))
            )

    def _text(self, session: Session, action: Action, decision: Decision) -> str:
        return (
            f"Principal = {session.principal} is {_result(decision)} operation = {action.operation.name} from host = {session.host} "
            f"on resource = {action.resource_type.title}:LITERAL:{action.name} for request = {action.api} "
            f"with resourceRefCount = {action.reference_count} based on rule {decision.rule}"
        )

    def _json(self, session: Session, action: Action, decision: Decision) -> str:
        fields = {
            "principal": str(session.principal),
            "result": _result(decision),
            "operation": action.operation.name,
            "host": session.host,
            "resourceType": action.resource_type.name,
            "resourceName": action.name,
            "request": action.api,
            "resourceRefCount": action.reference_count,
            "rule": decision.rule,
        }
        return json.dumps(fields)


def _one_line(text: str) -> str:
    """Escapes line breaks and other control characters, with which a client could forge lines of the log."""
    return text if text.isprintable() else "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _result(decision: Decision) -> str:
    return "Allowed" if decision.is_allowed else "Denied"
