"""Transactions: which ids there are, what they have open, and transactions that hang, which can be ended here."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from starlette.responses import Response

from barnabas.administration.hanging_transactions import PARTITIONS_MAX, Hanging, find_hanging
from barnabas.client.admin.topics.transactions import AbortTransactionSpec, TransactionDescription, TransactionListing, TransactionState
from barnabas.client.errors import TransactionalIdNotFound
from barnabas.console.failures import failure_of, sentence
from barnabas.console.web.routes import get, post, segment
from barnabas.console.web.visit import Visit
from barnabas.errors import KafkaError
from barnabas.topic_partition import TopicPartition

ROWS_A_PAGE: Final = 100
SHOWN_CHARACTERS_MAX: Final = 300
HANGING_MINUTES: Final = 15
_SEARCH_TIMEOUT_S: Final = 20.0


async def transactions(visit: Visit, error: str | None = None, status: int = 200) -> Response:
    search, state = visit.argument("q"), visit.argument("state")
    unknown, listed = None, []
    chosen = TransactionState.parse(state)
    states = [] if chosen is TransactionState.UNKNOWN else [chosen]
    try:
        outcomes = await visit.cluster.admin.list_transactions(states=states)
        listed = [one for listings in outcomes.successes.values() for one in listings if search.lower() in one.transactional_id.lower()]
        if outcomes.errors:
            failed = next(iter(outcomes.errors.values()))
            unknown = f"{len(outcomes.errors)} of {len(outcomes)} brokers did not answer. {sentence(failed)}"
    except KafkaError as refusal:
        unknown = sentence(refusal)
    listed.sort(key=lambda one: (one.state is not TransactionState.ONGOING, one.transactional_id))
    pages = max(-(-len(listed) // ROWS_A_PAGE), 1)
    page = visit.number_argument("page", 1, 1, pages)
    shown = listed[(page - 1) * ROWS_A_PAGE : page * ROWS_A_PAGE]
    return visit.page(
        "transactions.html",
        status=status,
        rows=shown,
        open_since=await _open_since(visit, shown),
        now_ms=int(time.time() * 1000),
        total=len(listed),
        page=page,
        pages=pages,
        search=search,
        state=state,
        states=[str(one) for one in TransactionState if one is not TransactionState.UNKNOWN],
        unknown=unknown,
        error=error,
    )


async def transaction(visit: Visit, error: str | None = None, status: int = 200) -> Response:
    name = visit.path("id")
    description = await _description(visit, name)
    return visit.page(
        "transaction.html",
        status=status,
        name=name,
        description=description,
        partitions=sorted(description.topic_partitions),
        now_ms=int(time.time() * 1000),
        is_open=description.state is TransactionState.ONGOING,
        error=error,
    )


async def terminate(visit: Visit) -> Response:
    """Ends what an id has open: its producer is fenced, and the coordinator aborts."""
    name = visit.path("id")
    if (await _description(visit, name)).state is not TransactionState.ONGOING:
        return await transaction(visit, "Nothing is open any more: the transaction has ended.", 409)
    try:
        (await visit.cluster.admin.fence_producers([name])).all()
    except KafkaError as refusal:
        return await transaction(visit, sentence(refusal), failure_of(refusal).status)
    return visit.changed(f"The transaction of {name} is aborted, and its producer is fenced.", f"/transactions/id/{segment(name)}")


async def hanging(visit: Visit, error: str | None = None, status: int = 200) -> Response:
    """Transactions that no coordinator knows. They stay open, and readers of committed records stop before them."""
    topic = visit.argument("topic")
    minutes = visit.number_argument("minutes", HANGING_MINUTES, 0, 100_000)
    snapshot = await visit.cluster.snapshots.current()
    partitions = [
        TopicPartition(name, one.partition)
        for name, topic_snapshot in sorted(snapshot.topics.items())
        if not topic or name == topic
        for one in topic_snapshot.partitions
        if one.leader is not None and one.leader >= 0
    ]
    unknown: str | None = None
    hanging_transactions: list[Hanging] = []
    searched = partitions[:PARTITIONS_MAX]
    if visit.argument("search") or topic:
        try:
            async with asyncio.timeout(_SEARCH_TIMEOUT_S):
                hanging_transactions = await find_hanging(visit.cluster.admin, searched, minutes * 60_000, int(time.time() * 1000))
        except TimeoutError:
            unknown = "The search took too long. Choose one topic."
        except KafkaError as refusal:
            unknown = sentence(refusal)
    return visit.page(
        "transactions_hanging.html",
        status=status,
        rows=hanging_transactions,
        topic=topic,
        minutes=minutes,
        topics=sorted(snapshot.topics)[:2_000],
        asked=bool(visit.argument("search") or topic),
        searched=len(searched),
        partitions=len(partitions),
        unknown=unknown,
        error=error,
    )


async def abort(visit: Visit) -> Response:
    form = await visit.form()
    numbers: dict[str, int] = {}
    for field in ("partition", "producer_id", "producer_epoch", "coordinator_epoch"):
        text = form.get(field, "")
        if not text.isascii() or not text.isdigit() or len(text) > 19:
            return await hanging(visit, "Choose a transaction from the list.", 422)
        numbers[field] = int(text)
    partition = TopicPartition(form.get("topic", ""), numbers["partition"])
    spec = AbortTransactionSpec(partition, numbers["producer_id"], numbers["producer_epoch"], numbers["coordinator_epoch"])
    try:
        hanging_transactions = await find_hanging(visit.cluster.admin, [partition], -1, int(time.time() * 1000))
        if (spec.producer_id, spec.producer_epoch) not in [
            (one.producer.producer_id, one.producer.producer_epoch) for one in hanging_transactions
        ]:
            return await hanging(visit, f"Producer {spec.producer_id} has no transaction that hangs on {partition}. Search again.", 409)
        await visit.cluster.admin.abort_transaction(spec)
    except KafkaError as refusal:
        return await hanging(visit, sentence(refusal), failure_of(refusal).status)
    what = f"The transaction of producer {spec.producer_id} on {partition} is aborted."
    return visit.changed(what, "/transactions/hanging")


async def _description(visit: Visit, name: str) -> TransactionDescription:
    """Of an id that a broker lists. To look for the coordinator of any name would make the cluster create `__transaction_state`. Raises
    KafkaError, TransactionalIdNotFound for other names."""
    listings = await visit.cluster.admin.list_transactions()
    if not any(one.transactional_id == name for listed in listings.successes.values() for one in listed):
        for error in listings.errors.values():
            raise error  # it may be listed by a broker that did not answer
        raise TransactionalIdNotFound(f"No broker lists the transactional id {name[:SHOWN_CHARACTERS_MAX]}")
    return (await visit.cluster.admin.describe_transactions([name]))[name]


async def _open_since(visit: Visit, shown: list[TransactionListing]) -> dict[str, TransactionDescription]:
    """The descriptions of the transactions of this page that are open."""
    names = [one.transactional_id for one in shown if one.state is TransactionState.ONGOING]
    if not names:
        return {}
    try:
        return (await visit.cluster.admin.describe_transactions(names)).successes
    except KafkaError:
        return {}


ROUTES: Final = (
    get("/transactions", transactions),
    get("/transactions/id/{id}", transaction),
    post("/transactions/id/{id}", terminate),
    get("/transactions/hanging", hanging),
    post("/transactions/hanging", abort),
)
