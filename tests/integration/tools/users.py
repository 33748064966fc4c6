"""kafka-configs for users: SCRAM credentials set, described and deleted.

Kafka describes users in any order, so the lines are compared sorted.
"""

from __future__ import annotations

from dataclasses import replace

from tests.integration.tools.commands import CONFIGS, Command, command

_ALICE = "--entity-type users --entity-name alice"
_ODD = "--entity-type users --entity-name CN=odd,O=*~"


def _users(name: str, arguments: str) -> Command:
    return replace(command(f"users: {name}", CONFIGS, arguments), any_order=True)


def users() -> list[Command]:
    return [
        _users("none described", "--describe --entity-type users"),
        _users("one that is not there described", f"--describe {_ALICE}"),
        _users("a password set", f"--alter {_ALICE} --add-config SCRAM-SHA-256=[iterations=8192,password=alice-secret]"),
        _users("another mechanism", f"--alter {_ALICE} --add-config SCRAM-SHA-512=[password=alice-secret]"),
        _users("both at once", "--alter --user bob --add-config SCRAM-SHA-256=[password=x],SCRAM-SHA-512=[password=y]"),
        _users("a name with odd characters", f"--alter {_ODD} --add-config SCRAM-SHA-256=[password=x]"),
        _users("too few iterations", f"--alter {_ALICE} --add-config SCRAM-SHA-256=[iterations=4095,password=x]"),
        _users("too many iterations", f"--alter {_ALICE} --add-config SCRAM-SHA-256=[iterations=16385,password=x]"),
        _users("no password", f"--alter {_ALICE} --add-config SCRAM-SHA-256=[iterations=4096]"),
        _users("no mechanism of Kafka", f"--alter {_ALICE} --add-config SCRAM-SHA-1=[password=x]"),
        _users("a password for all", "--alter --entity-type users --entity-default --add-config SCRAM-SHA-256=[password=x]"),
        _users("described", f"--describe {_ALICE}"),
        _users("all described", "--describe --entity-type users"),
        _users("an odd one described", f"--describe {_ODD}"),
        _users("quotas of clients described", "--describe --entity-type clients"),
        _users("set and deleted at once", f"--alter {_ALICE} --add-config SCRAM-SHA-256=[password=x] --delete-config SCRAM-SHA-512"),
        _users("both deleted at once", f"--alter {_ALICE} --delete-config SCRAM-SHA-256,SCRAM-SHA-512"),
        _users("deleted", f"--alter {_ALICE} --delete-config SCRAM-SHA-256"),
        _users("deleted twice", f"--alter {_ALICE} --delete-config SCRAM-SHA-256"),
        _users("described after that", "--describe --entity-type users"),
        _users("the last deleted", f"--alter {_ALICE} --delete-config SCRAM-SHA-512"),
        _users("described when it is gone", f"--describe {_ALICE}"),
    ]


USERS = users()
