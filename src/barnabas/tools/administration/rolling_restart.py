"""The decisions of a rolling restart: the order of the brokers, the command for each, and what is not in sync. Plain values; this module
sends nothing and runs nothing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.tools.command_line.failures import BadArgument

PLACEHOLDERS: Final = ("host", "port", "id")
_PLACEHOLDER: Final = re.compile(r"(?<!\$)\{([A-Za-z_]\w*)\}")  # ${HOME} is the shell's
_NAMES_MAX: Final = 5


@dataclass(frozen=True)
class RestartedBroker:
    id: int
    host: str
    port: int


@dataclass(frozen=True)
class ReplicaSet:
    """A partition with its replicas and those in sync."""

    name: str
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    has_leader: bool = True

    @property
    def is_full(self) -> bool:
        return self.has_leader and set(self.isr) >= set(self.replicas)


def check_command(command: str) -> None:
    unknown = [name for name in _PLACEHOLDER.findall(command) if name not in PLACEHOLDERS]
    if unknown:
        raise BadArgument(
            f"--command has {{{unknown[0]}}}, which is no placeholder: there are {{host}}, {{port}} and {{id}}; "
            f"write {{ {unknown[0]} }} with blanks where the shell is meant"
        )
    if not command.strip():
        raise BadArgument("--command is empty: give the command that restarts a broker, such as 'ssh {host} systemctl restart barnabas'")


def command_for(command: str, broker: RestartedBroker) -> str:
    """The command of one broker, for a shell."""
    values = {"host": broker.host, "port": str(broker.port), "id": str(broker.id)}
    return _PLACEHOLDER.sub(lambda match: shlex.quote(values[match[1]]), command)


def parse_ids(text: str) -> list[int]:
    """The value of --brokers."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() for word in words):
        raise BadArgument(f"--brokers takes ids with commas between them, as in 1,2,3, not {text}")
    return list(dict.fromkeys(map(int, words)))


def restart_order(brokers: Iterable[RestartedBroker], controller: int | None, chosen: Sequence[int] | None) -> list[RestartedBroker]:
    """By id, the controller last: each restart of a controller costs an election, and this way there is one."""
    known = {broker.id: broker for broker in brokers}
    unknown = [broker for broker in chosen or () if broker not in known]
    if unknown:
        raise BadArgument(f"there is no broker {unknown[0]} (--brokers); the brokers are {', '.join(map(str, sorted(known)))}")
    ids = sorted(known if chosen is None else chosen)
    return [known[broker] for broker in sorted(ids, key=lambda broker: (broker == controller, broker))]


def not_in_sync(partitions: Iterable[ReplicaSet]) -> str:
    """The partitions whose ISR is not full, for a message; empty if there are none."""
    names = [partition.name for partition in partitions if not partition.is_full]
    more = len(names) - _NAMES_MAX
    return ", ".join(names[:_NAMES_MAX]) + (f" and {more} more" if more > 0 else "")
