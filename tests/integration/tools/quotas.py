"""kafka-configs for quotas of users, clients and addresses: set, described and deleted.

Kafka describes entities in any order, so the lines are compared sorted. The quotas are too high for the tools to reach them.
"""

from __future__ import annotations

from dataclasses import replace

from tests.integration.tools.commands import CONFIGS, Command, command

_DORA = "--entity-type users --entity-name dora"
_BOTH = f"{_DORA} --entity-type clients --entity-name c1"
_ALL = "producer_byte_rate=10000000,consumer_byte_rate=20000000,request_percentage=5000.5,controller_mutation_rate=1000"


def _quotas(name: str, arguments: str) -> Command:
    return replace(command(f"quotas: {name}", CONFIGS, arguments), any_order=True)


def quotas() -> list[Command]:
    return [
        _quotas("none described", "--describe --entity-type clients"),
        _quotas("a user's set", f"--alter {_DORA} --add-config {_ALL}"),
        _quotas("a user's described", f"--describe {_DORA}"),
        _quotas("of a user and a client", f"--alter {_BOTH} --add-config producer_byte_rate=1.0E9"),
        _quotas("of a user and a client described", f"--describe {_BOTH}"),
        _quotas("of a user and any client", "--alter --user dora --client-defaults --add-config consumer_byte_rate=9000000"),
        _quotas("of any user and any client", "--alter --user-defaults --client-defaults --add-config consumer_byte_rate=9000001"),
        _quotas("of any user", "--alter --entity-type users --entity-default --add-config producer_byte_rate=9000002"),
        _quotas("of any client", "--alter --client-defaults --add-config producer_byte_rate=9000003"),
        _quotas("of a client with odd characters", "--alter --client c/1~*%41 --add-config producer_byte_rate=9000004"),
        _quotas("of an address", "--alter --ip 127.0.0.3 --add-config connection_creation_rate=50"),
        _quotas("of any address", "--alter --ip-defaults --add-config connection_creation_rate=5000"),
        _quotas("of users described", "--describe --entity-type users"),
        _quotas("of clients described", "--describe --entity-type clients"),
        _quotas("of clients of users described", "--describe --entity-type users --entity-type clients"),
        _quotas("of clients of a user described", f"--describe {_DORA} --entity-type clients"),
        _quotas("of addresses described", "--describe --entity-type ips"),
        _quotas("of any address described", "--describe --ip-defaults"),
        _quotas("of zero", f"--alter {_DORA} --add-config producer_byte_rate=0"),
        _quotas("below zero", f"--alter {_DORA} --add-config request_percentage=-5"),
        _quotas("of half a byte", f"--alter {_DORA} --add-config consumer_byte_rate=0.5"),
        _quotas("too large", f"--alter {_DORA} --add-config consumer_byte_rate=1e30"),
        _quotas("no number", f"--alter {_DORA} --add-config consumer_byte_rate=fast"),
        _quotas("no name of a quota", f"--alter {_DORA} --add-config speed=1"),
        _quotas("for nobody", "--alter --entity-type users --add-config producer_byte_rate=1"),
        _quotas("of no address", "--alter --ip 300.1.1.1 --add-config connection_creation_rate=5"),
        _quotas("of bytes for an address", "--alter --ip 127.0.0.3 --add-config producer_byte_rate=5"),
        _quotas("of an address and a user", f"--alter {_DORA} --entity-type ips --entity-name 127.0.0.3 --add-config producer_byte_rate=5"),
        _quotas("beside a password", f"--alter {_DORA} --add-config SCRAM-SHA-256=[password=x]"),
        _quotas("and a password at once", f"--alter {_DORA} --add-config SCRAM-SHA-256=[password=x],producer_byte_rate=7"),
        _quotas("described with a password", f"--describe {_DORA}"),
        _quotas("one that is not set deleted", f"--alter {_BOTH} --delete-config consumer_byte_rate"),
        _quotas("one deleted", f"--alter {_DORA} --delete-config producer_byte_rate,request_percentage"),
        _quotas("one deleted and one set", f"--alter {_DORA} --delete-config consumer_byte_rate --add-config producer_byte_rate=4000000"),
        _quotas("described after that", f"--describe {_DORA}"),
        _quotas("the last of both deleted", f"--alter {_BOTH} --delete-config producer_byte_rate"),
        _quotas("of any client of a user deleted", "--alter --user dora --client-defaults --delete-config consumer_byte_rate"),
        _quotas("of any client of any user deleted", "--alter --user-defaults --client-defaults --delete-config consumer_byte_rate"),
        _quotas("of any user deleted", "--alter --user-defaults --delete-config producer_byte_rate"),
        _quotas("of any client deleted", "--alter --client-defaults --delete-config producer_byte_rate"),
        _quotas("of any address deleted", "--alter --ip-defaults --delete-config connection_creation_rate"),
        _quotas("the last of the user deleted", f"--alter {_DORA} --delete-config producer_byte_rate,controller_mutation_rate"),
        _quotas("the password is still there", f"--describe {_DORA}"),
        _quotas("the password deleted", f"--alter {_DORA} --delete-config SCRAM-SHA-256"),
        _quotas("what is left", "--describe --entity-type clients"),
    ]


QUOTAS = quotas()
