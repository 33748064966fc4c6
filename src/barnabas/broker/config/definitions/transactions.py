"""Transactions and idempotent producers.

Definitions of broker settings: name, type, default, validator, importance, update mode, and description. Names, types and defaults are
those of Apache Kafka 4.2; the descriptions are our own.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.config.keys import BOOLEAN, CLUSTER_WIDE, HIGH, INT, LOW, READ_ONLY, SHORT, BrokerConfigKey, key
from barnabas.config_def import Range

# fmt: off
KEYS: Final[tuple[BrokerConfigKey, ...]] = (
    key("add.partitions.to.txn.retry.backoff.ms", INT, 20, Range(1), HIGH, READ_ONLY,
        "The first pause when partitions cannot be added to a transaction yet."),
    key("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, Range(0), HIGH, READ_ONLY,
        "The longest such pause. After it, a client that retries itself receives an error."),
    key("producer.id.expiration.ms", INT, 86_400_000, Range(1), LOW, CLUSTER_WIDE,
        "A producer id that has not written for so long is forgotten."),
    key("producer.id.expiration.check.interval.ms", INT, 600_000, Range(1), LOW, READ_ONLY,
        "How often expired producer ids are looked for.", hidden=True),
    key("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10_000, Range(1), LOW, READ_ONLY,
        "How often transactions past their timeout are looked for."),
    key("transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3_600_000, Range(1), LOW, READ_ONLY,
        "How often expired transactional ids are looked for."),
    key("transaction.max.timeout.ms", INT, 900_000, Range(1), HIGH, READ_ONLY,
        "The longest timeout a producer may ask for."),
    key("transaction.partition.verification.enable", BOOLEAN, True, None, LOW, CLUSTER_WIDE,
        "Whether a leader asks the coordinator before it takes transactional records for a partition."),
    key("transaction.state.log.load.buffer.size", INT, 5_242_880, Range(1), HIGH, READ_ONLY,
        "How much of the transaction topic is read at a time when it is loaded."),
    key("transaction.state.log.min.isr", INT, 2, Range(1), HIGH, READ_ONLY,
        "min.insync.replicas of the transaction topic."),
    key("transaction.state.log.num.partitions", INT, 50, Range(1), HIGH, READ_ONLY,
        "Partitions of the transaction topic. Not to be changed afterwards."),
    key("transaction.state.log.replication.factor", SHORT, 3, Range(1), HIGH, READ_ONLY,
        "Replicas of the transaction topic."),
    key("transaction.state.log.segment.bytes", INT, 104_857_600, Range(1), HIGH, READ_ONLY,
        "Segment size of the transaction topic: small ones compact and load fast."),
    key("transaction.two.phase.commit.enable", BOOLEAN, False, None, LOW, READ_ONLY,
        "Whether transactions may take part in a two-phase commit, which never times out."),
    key("transactional.id.expiration.ms", INT, 604_800_000, Range(1), HIGH, READ_ONLY,
        "How long a transactional id is kept after its last use."),
)
# fmt: on
