"""The audit log of the console: one JSON line for each change, failed change, login, logout and refused login. It has no values of records
and no passwords."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Final

AUDIT_LOGGER: Final = "barnabas.console.audit"
_log = logging.getLogger(AUDIT_LOGGER)
_TEXT_MAX: Final = 1_000


def audit(action: str, *, cluster: str, user: str | None, address: str, what: str) -> None:
    """`action` is `change`, `change-failed`, `login`, `logout` or `login-refused`."""
    entry = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "action": action,
        "cluster": cluster,
        "user": user,
        "address": address,
        "what": what[:_TEXT_MAX],
    }
    _log.info("%s", json.dumps(entry))  # escapes what is not ASCII: a name cannot forge a line
