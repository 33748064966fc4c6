"""What a hostile client writes into the fields of a request: mostly what makes sense to the broker, so that it gets deep, and often what
makes none.

Everything is drawn from the `Random` that is given. Topics have their own pools: some are there and hold data, some are made and deleted
again and again, some can never be. None of them is a topic of a well-behaved client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from barnabas.protocol.generator.schema import Field
from barnabas.uuid import Uuid
from tests.fuzz import batches

STABLE = ("fuzz-plain", "fuzz-compact", "fuzz-old", "fuzz-timed")  # they stay, with data in them
DOOMED = tuple(f"doomed-{number}" for number in range(8))  # they are created, altered and deleted
IMPOSSIBLE = ("", ".", "..", "doomed_1", "a/b", "x" * 250, "x" * 10_000, "ünï", "fuzz\x00plain", "a b", "\ud7ff", "-1", "__")
UNKNOWN = ("nowhere", "fuzz-plain-0", "FUZZ-PLAIN")
INTERNAL = ("__cluster_metadata",)  # known to be internal, and never there

INTS = {
    "int8": (0, 1, 2, 3, 4, 5, -1, 8, 16, 32, 64, 127, -128),
    "int16": (0, 1, 2, -1, -2, 3, 100, 32767, -32768),
    "uint16": (0, 1, 0x7FFF, 0x8000, 0xFFFF),
    "int32": (0, 0, 1, 2, 3, -1, -2, 7, 100, 65536, 2**31 - 1, 2**31 - 2, -(2**31)),
    "int64": (0, 0, 1, 2, 5, -1, -2, -3, -4, -5, -6, 1000, 2**31, 2**32, 2**53, 2**63 - 1, 2**63 - 2, -(2**63)),
}
TEXTS = ("", "a", "0", "1", "99", "-1", "true", "ünïcødé ✓ 𝄞", "x" * 130, "x" * 32_767, "\x00", "%s%n{}", "2147483648", "1e400", "NaN")
TRANSACTIONAL_IDS = ("fuzz-tx", "fuzz-tx", "fuzz-tx", "fuzz-ty", "", "x" * 300)
# A request may have 10,000 partitions made, and is obeyed: no attack that a broker could refuse. What they take has a test of its own.
TOO_MANY_PARTITIONS = 20_001
PATIENCE_MS_MAX = 50  # how long a request of ours normally waits
WAITS = ("max_wait_ms", "timeout_ms")

TOPIC_CONFIGS = (
    "cleanup.policy", "compression.type", "delete.retention.ms", "file.delete.delay.ms", "flush.messages", "flush.ms",
    "index.interval.bytes", "max.compaction.lag.ms", "max.message.bytes", "message.timestamp.type", "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms", "min.insync.replicas", "preallocate", "retention.bytes", "retention.ms", "segment.bytes",
    "segment.index.bytes", "segment.jitter.ms", "segment.ms", "unclean.leader.election.enable", "message.format.version",
    "message.downconversion.enable", "leader.replication.throttled.replicas", "compression.gzip.level", "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms", "remote.storage.enable", "local.retention.ms", "no.such.config", "", "x" * 1000,
)  # fmt: skip
CONFIG_VALUES = (
    "", "0", "1", "-1", "-2", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "1024", "1048588", "0.5", "-0.5",
    "nan", "inf", "true", "false", "TRUE", "delete", "compact", "compact,delete", "delete,delete", "zstd", "gzip", "producer", "zip",
    "LogAppendTime", "CreateTime", "0.9.0", "9.9", "*", "0:1,1:2", "1:0", "none", "INFO", "FATAL", "\x00", "x" * 10_000, " 5 ", "0x10",
    "1e3",
    "１２", "1_000", "${env:HOME}", "${file:/etc/passwd:root}",
)  # fmt: skip
# Settings of a broker that anybody else would feel are only ever tried on brokers that are not there.
BROKER_CONFIGS = (
    "log.cleaner.threads", "background.threads", "log.message.timestamp.type", "num.io.threads", "num.network.threads", "broker.id",
    "log.dirs", "zookeeper.connect", "leader.replication.throttled.rate", "log.cleaner.io.max.bytes.per.second",
    "", "no.such", "num.recovery.threads.per.data.dir", "log.cleaner.backoff.ms", "remote.log.reader.threads",
)  # fmt: skip
FELT_BY_OTHERS = (
    "listeners", "advertised.listeners", "max.connections", "max.connections.per.ip", "max.connections.per.ip.overrides",
    "max.connection.creation.rate", "message.max.bytes", "log.retention.ms", "log.retention.bytes", "ssl.keystore.location",
    "listener.security.protocol.map", "min.insync.replicas", "unclean.leader.election.enable", "compression.type", "log.segment.bytes",
)  # fmt: skip
RESOURCE_TYPES = (2, 2, 2, 4, 4, 8, 16, 32, 0, 1, 3, 127, -1)
LOGGERS = ("barnabas.storage.log.loader", "kafka.log.Log", "no.such.logger", "", "barnabas.records")
BROKERS_NOT_HERE = ("99", "-1", "xyz", "2147483648")  # no turned bit makes them the broker that is here


class Values:
    """Draws for the fields of one request. `ids` are those that the topics have on the broker that is asked."""

    def __init__(self, api: str, version: int, random: Random, ids: Mapping[str, Uuid]) -> None:
        self.api = api
        self.version = version
        self.random = random
        self.ids = ids
        self.may_wait = False  # longer than PATIENCE_MS_MAX
        self.has_no_answer = False  # Produce with acks=0
        self.may_be_unknown = False  # Kafka itself answers UNKNOWN_SERVER_ERROR
        self.resource_type = 0
        self.is_felt = False
        self.records_version = version

    def count(self, one: Field) -> int:
        return self.random.choice((0, 1, 1, 1, 2, 2, 3, 5))

    def number(self, one: Field) -> int:
        name, random = one.attribute, self.random
        if name in WAITS:
            return self._wait()
        if name in ("index", "partition", "partition_index", "partitions", "partition_indexes"):
            return random.choice((0, 0, 0, 0, 1, 1, 2, 3, -1, 2**31 - 1, -(2**31)))
        if name == "acks":
            acks = random.choice((-1, -1, -1, 1, 1, 0, 2, -2, 32767))
            self.has_no_answer = acks == 0
            return acks
        if name == "isolation_level":
            level = random.choice((0, 0, 0, 0, 1, 1, 1, 2, -1))
            self.may_be_unknown |= level not in (0, 1)
            return level
        if name == "replica_id":
            return random.choice((-1, -1, -1, -1, -1, -2, 0, 1, 2, 2**31 - 1))
        if name in ("current_leader_epoch", "last_fetched_epoch", "leader_epoch"):
            return random.choice((-1, -1, -1, -1, 0, 0, 1, 5, -2, 2**31 - 1))
        if name.endswith(("producer_id", "producer_epoch")):
            likely = (0, 0, 0, 1, 1, 2, 3) if name.endswith("epoch") else (0, 0, 1, 2, 1000, 1001)
            number: int = random.choice((*likely, *likely, *INTS[one.type]))
            self.may_be_unknown |= number < 0 and self.api == "WriteTxnMarkers"
            return number
        if name == "transaction_version":
            level = random.choice((0, 1, 2, 2, 2, *INTS[one.type]))
            self.may_be_unknown |= level < 0
            return level
        if name == "key_type":
            return random.choice((0, 0, 1, 1, 1, 2, 3, -1))
        if name == "num_partitions" or (name == "count" and self.api == "CreatePartitions"):
            return random.choice((1, 1, 2, 3, 4, -1, 0, -2, 5, TOO_MANY_PARTITIONS, 2**31 - 1, 2_000_000_000, -(2**31)))
        if name == "replication_factor":
            return random.choice((1, 1, 1, 1, -1, -1, 0, 2, 32767, -2))
        if name == "broker_ids":
            return random.choice((1, 1, 1, 1, 2, -1, 0, 2**31 - 1))
        if name == "min_bytes":
            return random.choice((0, 1, 1, 1, 1000, 2**31 - 1, -1))
        if name in ("max_bytes", "partition_max_bytes"):
            size = random.choice((0, 1, 100, 4096, 65536, 65536, 1 << 20, 2**31 - 1, 1 << 20, 65536, -1, -(2**31)))
            self.may_be_unknown |= size < 0
            return size
        if name == "max_num_offsets":
            most = random.choice(INTS[one.type])
            self.may_be_unknown |= most < 0
            return most
        if name == "config_operation":
            operation = random.choice((0, 0, 0, 1, 1, 2, 3, 4, -1))
            self.may_be_unknown |= operation not in (0, 1)
            return operation
        if name in ("resource_type", "resource_types"):
            self.resource_type = random.choice(RESOURCE_TYPES)
            return self.resource_type
        return random.choice(INTS[one.type])

    def _wait(self) -> int:
        if self.random.random() < 0.99:
            return self.random.choice((0, 1, 5, 20, PATIENCE_MS_MAX, -1, -(2**31)))
        self.may_wait = True
        return self.random.choice((2**31 - 1, 100_000))

    def text(self, struct: str, one: Field) -> str:
        name, random = one.attribute, self.random
        if one.attribute in ("topic", "topic_name", "topic_names", "topics") or (name == "name" and "Config" not in struct):
            return self._topic()
        if name == "resource_name":
            return self._resource()
        if name == "value":
            return random.choice(CONFIG_VALUES)
        if name in ("name", "configuration_keys"):  # of a config
            return self._config()
        if name == "path":
            return random.choice(("/tmp/nowhere", "", "relative", "/", "\x00", "x" * 5000))
        if name.endswith(("transactional_id", "transactional_ids")):
            return random.choice(TRANSACTIONAL_IDS)
        return random.choice(TEXTS)

    def _topic(self) -> str:
        random = self.random
        makes_or_deletes = self.api in ("CreateTopics", "DeleteTopics", "CreatePartitions")
        likely, other = (DOOMED, STABLE) if makes_or_deletes else (STABLE, DOOMED)
        drawn = random.random()
        if drawn < 0.7:
            return random.choice(likely)
        if drawn < 0.8 and not (makes_or_deletes and random.random() < 0.95):
            return random.choice(other)
        return random.choice(IMPOSSIBLE + UNKNOWN + INTERNAL)

    def _resource(self) -> str:
        random = self.random
        self.is_felt = False
        if self.resource_type == 2:
            if random.random() < 0.01:
                return "x" * 32_767  # an error message about it has no room for it
            return random.choice(DOOMED + DOOMED + DOOMED + STABLE + IMPOSSIBLE) if self.api != "DescribeConfigs" else self._topic()
        if self.resource_type == 4:
            self.is_felt = random.random() < 0.5
            return random.choice(BROKERS_NOT_HERE) if self.is_felt else random.choice(("1", "1", ""))
        if self.resource_type == 8:
            return random.choice(("1", "1", "2", "", "x"))
        return random.choice(("group", "metrics", "", "x" * 1000, "1"))

    def _config(self) -> str:
        random = self.random
        if self.resource_type == 4 and self.api != "CreateTopics":
            return random.choice(FELT_BY_OTHERS if self.is_felt else BROKER_CONFIGS)
        if self.resource_type == 8 and self.api != "CreateTopics":
            return random.choice(LOGGERS)
        return random.choice(TOPIC_CONFIGS)

    def byte_string(self, one: Field) -> bytes:
        return self.random.randbytes(self.random.choice((0, 1, 200)))

    def records(self) -> bytes:
        return batches.hostile(self.random, self.version)

    def topic_id(self) -> Uuid:
        random = self.random
        known: Sequence[Uuid] = [self.ids[name] for name in STABLE]
        drawn = random.random()
        if self.api in ("DeleteTopics", "Metadata") and drawn < 0.8:
            return Uuid.ZERO
        if drawn < 0.8:
            return random.choice(known)
        return random.choice((Uuid.ZERO, Uuid.METADATA_TOPIC_ID, Uuid(random.randbytes(16))))
