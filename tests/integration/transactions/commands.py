"""The commands of Apache Kafka's tool for transactions, run against both brokers in this order, on what stage.py has made."""

from __future__ import annotations

from tests.integration.tools.commands import TOOLS, Command, command
from tests.integration.transactions.stage import ABORTED, COMMITTED, EMPTY, HANGING, OFFSETS, ONGOING, STAGE

TRANSACTIONS = f"{TOOLS}.TransactionsCommand"


def tool(name: str, arguments: str) -> Command:
    return command(f"transactions: {name}", TRANSACTIONS, arguments)


def _lists() -> list[Command]:
    return [
        tool("listed", "list"),
        tool("listed by pattern", f"list --transactional-id-pattern {STAGE}-.*ed"),
        tool("listed by a pattern that matches none", "list --transactional-id-pattern nothing"),
        tool("listed by a pattern that is none", "list --transactional-id-pattern ("),
        tool("those that last long listed", "list --duration-filter 3600000"),
    ]


def _descriptions() -> list[Command]:
    names = (EMPTY, ONGOING, COMMITTED, ABORTED, OFFSETS, HANGING, "nobody")
    described = [tool(f"{name} described", f"describe --transactional-id {STAGE}-{name}") for name in names]
    where = f"describe-producers --topic {STAGE}"
    return [
        *described,
        *(tool(f"producers of partition {partition} described", f"{where} --partition {partition}") for partition in range(3)),
        tool("producers described by a broker", f"{where} --partition 0 --broker-id {{broker}}"),
    ]


def _hanging() -> list[Command]:
    where = f"--topic {STAGE} --partition 1"
    return [
        tool("hanging ones found on a broker", "find-hanging --broker-id {broker}"),
        tool("hanging ones found in a topic", f"find-hanging --topic {STAGE}"),
        tool("hanging ones found in a partition", f"find-hanging {where}"),
        tool("hanging ones found where there are none", f"find-hanging --topic {STAGE} --partition 0"),
        tool("hanging ones found among those of a day", "find-hanging --broker-id {broker} --max-transaction-timeout 1440"),
        tool("hanging ones found nowhere", "find-hanging"),
        tool("hanging ones found in a topic that is not there", "find-hanging --topic nowhere"),
        tool("aborted where none begins", f"abort {where} --start-offset 1"),
        tool("aborted without saying which", f"abort {where}"),
        tool("the hanging one aborted", f"abort {where} --start-offset 3"),
        tool("the hanging one aborted again", f"abort {where} --start-offset 3"),
        tool("producers described once aborted", f"describe-producers {where}"),
        tool("hanging ones found once aborted", "find-hanging --broker-id {broker}"),
        tool("one aborted by its producer's id and epoch", f"abort {where} --producer-id 2 --producer-epoch 0 --coordinator-epoch 0"),
        tool("producers described once aborted by id", f"describe-producers {where}"),
    ]


def _terminations() -> list[Command]:
    return [
        tool("one terminated", f"forceTerminateTransaction --transactionalId {STAGE}-{OFFSETS}"),
        tool("one terminated that nobody knows", f"forceTerminateTransaction --transactionalId {STAGE}-nobody"),
        tool("the terminated one described", f"describe --transactional-id {STAGE}-{OFFSETS}"),
    ]


COMMANDS = _lists() + _descriptions() + _hanging() + _terminations()
