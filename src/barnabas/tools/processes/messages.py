"""The lines of JSON between the parent and a child.

The child reads one line from its standard input, its instructions; the pipe then stays open as long as the parent lives. Secrets of the
settings are in no command line. The child writes to its standard output: one line when clients may connect, then one with its status from
time to time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final

from barnabas.security.new_user import NewUser
from barnabas.security.scram import ScramCredential

ANY_PORT: Final = ":0"  # at the end of a listener


@dataclass(frozen=True)
class Instructions:
    """`socket` is that of the metadata store of the parent; None with `zookeeper.connect`."""

    number: int
    node_id: int
    properties: Mapping[str, str] = field(repr=False)
    socket: str | None
    log_level: str
    log_format: str
    log_directory: str | None = None
    new_users: Sequence[NewUser] = field(default=(), repr=False)

    def encode(self) -> bytes:
        values = {one.name: getattr(self, one.name) for one in fields(self)} | {
            "new_users": [_encode_user(user) for user in self.new_users]
        }
        return json.dumps(values).encode() + b"\n"

    def with_ports(self, listeners: Sequence[str]) -> Instructions:
        """A broker that got any free ports keeps them over a restart, so that its clients find it again."""
        if not any(listener.strip().endswith(ANY_PORT) for listener in self.properties.get("listeners", "").split(",")):
            return self
        return replace(self, properties={**self.properties, "listeners": ",".join(listeners)})

    @classmethod
    def decode(cls, line: bytes) -> Instructions:
        values = json.loads(line)
        return cls(**values | {"new_users": [_decode_user(user) for user in values["new_users"]]})


@dataclass(frozen=True)
class Announcement:
    """A broker that is ready. `advertised` are the addresses for clients."""

    node_id: int
    cluster_id: str
    listeners: Sequence[str]
    advertised: Sequence[str]
    metrics: str | None

    def encode(self) -> bytes:
        return json.dumps({"ready": asdict(self)}).encode() + b"\n"


@dataclass(frozen=True)
class StatusReport:
    """A sign of life. `problem` is empty for a broker that is ready."""

    problem: str

    def encode(self) -> bytes:
        return json.dumps({"problem": self.problem}).encode() + b"\n"


def decode_report(line: bytes) -> Announcement | StatusReport | None:
    """None for a line that is none of these, as a library may print one."""
    try:
        values = json.loads(line)
        return Announcement(**values["ready"]) if "ready" in values else StatusReport(values["problem"])
    except (ValueError, TypeError, KeyError):
        return None


def _encode_user(user: NewUser) -> list[object]:
    return [user.name, user.mechanism, str(user.credential), user.replaces]


def _decode_user(values: list[Any]) -> NewUser:
    name, mechanism, credential, replaces = values
    return NewUser(name, mechanism, ScramCredential.parse(credential), replaces)
