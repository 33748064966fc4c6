"""The cluster that the tests of the console look at: three secured brokers with users, topics, groups, transactions, quotas and ACLs.

Two consoles show it: the one of `barnabas up`, which only reads, and one that may write.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import confluent_kafka

from barnabas.client import Admin, NewTopic, OffsetAndMetadata, Producer, TopicPartition
from barnabas.client.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    AlterConfigOp,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ConfigResource,
    ConfigResourceType,
    PatternType,
    ResourcePattern,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from barnabas.properties import parse_properties
from tests.integration.console.starting import started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ALICE: Final = "alice"  # may read and write topics that begin with orders
STRANGER: Final = "stranger"  # has a password and no ACL
PASSWORD: Final = "correct-horse-battery"
ORDERS: Final = "orders"
RETURNS: Final = "orders-returned"  # a few of them, and one that is broken
CLEAN: Final = "orders-clean"
DEAD: Final = "orders-dead"
PAYMENTS: Final = "payments"
GROUP: Final = "billing"  # has committed offsets, and no member
COMMITTED: Final = 20
LIVE_GROUP: Final = "shipping"  # has a member
TRANSACTION: Final = "checkout"  # has a transaction open
QUERY: Final = "order-cleaning"
RECORDS: Final = 240
BROKEN: Final = b'{"id": 7, "total": '  # is no JSON
CUSTOMERS: Final = ("ann", "bob", "gus", "dan", "eve", "jon")  # as keys, they reach all three partitions
_ITERATIONS: Final = 4096  # the fewest: each login hashes so often


@dataclass(frozen=True)
class World:
    """The addresses and the files of a secured cluster and of its consoles."""

    reading: str  # the address of the console of `barnabas up`
    writing: str  # that of the console with --console-write
    client: Mapping[str, str]  # the settings of an admin's clients
    librdkafka: Mapping[str, str]
    audit_log: Path
    consumer: confluent_kafka.Consumer  # the member of LIVE_GROUP; it has read one record

    @property
    def admin_password(self) -> str:
        return self.librdkafka["sasl.password"]


@contextmanager
def running(directory: Path) -> Generator[World, None, None]:
    """The cluster with its contents, until the end of the block."""
    data, audit_log = directory / "data", directory / "audit.log"
    up = ("up", "--secure", "--brokers", "3", "--port", "0", "--host", "127.0.0.1", "--data", str(data), "--console-port", "0")
    metrics = ("--override", "metrics.listener=https://localhost:0", "--override", "metrics.listener.authentication=basic")
    tokens = ("--override", "delegation.token.secret.key=a-key-for-tests")
    few = ("--override", "offsets.topic.num.partitions=3", "--override", "transaction.state.log.num.partitions=3")
    with ExitStack() as stack:
        cluster = stack.enter_context(started(directory / "up.txt", *up, *metrics, *tokens, *few))
        (reading,) = cluster.find_all(r"console at (http://\S+?),")
        bootstrap = ",".join(one.removeprefix("SASL_SSL://") for one in cluster.ready.split("listeners=")[1].split()[0].split(","))
        console = ("console", "--bootstrap-server", bootstrap, "--command-config", str(data / "secure" / "console.properties"))
        urls = [word for url in dict.fromkeys(cluster.find_all(r"https://localhost:\d+/metrics")) for word in ("--metrics", url)]
        options = ("--port", "0", "--console-write", "--name", "shop", "--audit-log", str(audit_log))
        writing = stack.enter_context(started(directory / "console.txt", *console, *urls, *options))
        settings = {
            name: {**parse_properties((data / "secure" / f"{name}.properties").read_text()), "bootstrap.servers": bootstrap}
            for name in ("client", "librdkafka")
        }
        member = {"group.id": LIVE_GROUP, "client.id": "shipping-1", "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer({**settings["librdkafka"], **member})
        stack.callback(consumer.close)
        url = writing.ready.split("url=")[1].split()[0]
        world = World(reading, url, settings["client"], settings["librdkafka"], audit_log, consumer)
        stack.enter_context(_filled(world))
        yield world


@contextmanager
def _filled(world: World) -> Generator[None, None, None]:
    """Contents, and the clients that have to live as long as they are looked at."""
    with Admin(world.client) as admin:
        topics = [NewTopic(ORDERS, 3, 3), NewTopic(RETURNS, 1, 3), NewTopic(CLEAN, 3, 3), NewTopic(DEAD, 1, 3), NewTopic(PAYMENTS, 1, 3)]
        admin.create_topics(topics).all()
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, _ITERATIONS)
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, info, PASSWORD) for user in (ALICE, STRANGER)]).all()
        admin.create_acls([_may(ALICE, operation, ORDERS) for operation in (AclOperation.READ, AclOperation.WRITE)]).all()
        admin.alter_client_quotas([ClientQuotaAlteration(ClientQuotaEntity({"user": ALICE}), {"producer_byte_rate": 1_000_000.0})]).all()
        pushed = [AlterConfigOp("metrics", "org.apache.kafka.producer."), AlterConfigOp("interval.ms", "60000")]
        admin.incremental_alter_configs({ConfigResource(ConfigResourceType.CLIENT_METRICS, "producers"): pushed}).all()
        admin.create_delegation_token()
        _write_orders(world)
        offsets = {TopicPartition(ORDERS, number): OffsetAndMetadata(COMMITTED) for number in range(3)}
        admin.alter_consumer_group_offsets(GROUP, offsets).all()
    paying = confluent_kafka.Producer({**world.librdkafka, "transactional.id": TRANSACTION, "transaction.timeout.ms": 900_000})
    try:
        world.consumer.subscribe([ORDERS])
        paying.init_transactions()
        paying.begin_transaction()
        paying.produce(PAYMENTS, b'{"order": 1, "amount": 12.5}', b"ann")
        paying.flush()
        while world.consumer.poll(0.1) is None:
            pass
        world.consumer.commit(asynchronous=False)
        yield
    finally:
        paying.abort_transaction()


def _may(user: str, operation: AclOperation, prefix: str) -> AclBinding:
    pattern = ResourcePattern(ResourceType.TOPIC, prefix, PatternType.PREFIXED)
    return AclBinding(pattern, AccessControlEntry(f"User:{user}", "*", operation, AclPermissionType.ALLOW))


def order(number: int) -> dict[str, Any]:
    customer = CUSTOMERS[number % len(CUSTOMERS)]
    return {
        "id": number,
        "customer": customer,
        "total": round(5 + number * 1.25, 2),
        "items": [{"sku": f"A-{number % 9}", "count": 1 + number % 3}],
    }


def _write_orders(world: World) -> None:
    """An order every five seconds until now, and some that came back, of which one is broken."""
    began_ms = int(time.time() * 1000) - RECORDS * 5_000
    with Producer(world.client) as producer:
        for number in range(RECORDS):
            value, key = json.dumps(order(number)).encode(), CUSTOMERS[number % len(CUSTOMERS)].encode()
            producer.send(ORDERS, value, key=key, timestamp=began_ms + number * 5_000, headers=[("trace", b"t-%d" % number)])
            if number % 50 == 0:
                producer.send(RETURNS, BROKEN if number == 100 else value, key=key, timestamp=began_ms + number * 5_000)
        producer.flush()


def start_query(world: World, spark: SparkSession, checkpoint: Path) -> StreamingQuery:
    """The Spark query that cleans orders: those that are no JSON become dead letters."""
    options = {f"kafka.{name}": value for name, value in world.client.items()}
    source = {"subscribe": f"{ORDERS},{RETURNS}", "startingOffsets": "earliest", "includeHeaders": "true"}
    values = {"value.format": "json", "value.schema": "id INT, customer STRING, total DOUBLE", "value.deadLetterTopic": DEAD}
    orders = spark.readStream.format("barnabas").options(**options, **source, **values).load()
    written = orders.selectExpr("key", "to_json(value) AS value").writeStream.format("barnabas").options(**options, topic=CLEAN)
    return written.option("checkpointLocation", str(checkpoint)).queryName(QUERY).trigger(processingTime="1 second").start()
