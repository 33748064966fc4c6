"""Settings of KRaft, accepted so that its server.properties work as they are. Barnabas has no Raft quorum.

Definitions of broker settings: name, type, default, validator, importance, update mode, and description. Names, types and defaults are
those of Apache Kafka 4.2; the descriptions are our own.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.config.keys import (
    BOOLEAN,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    READ_ONLY,
    STRING,
    BootstrapServers,
    BrokerConfigKey,
    QuorumVoters,
    key,
)
from barnabas.config_def import ListOf, Range

# fmt: off
KEYS: Final[tuple[BrokerConfigKey, ...]] = (
    key("process.roles", LIST, None, ListOf(("broker", "controller"), empty=False), HIGH, READ_ONLY,
        "Whether the node is a broker, a controller or both. A Barnabas node is both."),
    key("controller.listener.names", LIST, None, ListOf(empty=False), HIGH, READ_ONLY,
        "Listeners for controllers. They are not advertised to clients."),
    key("controller.quorum.voters", LIST, (), QuorumVoters(), HIGH, READ_ONLY,
        "The controllers of a static quorum: id@host:port."),
    key("controller.quorum.bootstrap.servers", LIST, (), BootstrapServers(), HIGH, READ_ONLY,
        "Addresses to find a dynamic quorum by."),
    key("controller.quorum.auto.join.enable", BOOLEAN, False, None, LOW, READ_ONLY,
        "Whether a controller joins the quorum automatically."),
    key("controller.quorum.append.linger.ms", INT, 25, Range(0), MEDIUM, READ_ONLY,
        "How long a quorum leader gathers records before it writes them."),
    key("controller.quorum.election.timeout.ms", INT, 1_000, Range(0), HIGH, READ_ONLY,
        "How long a voter waits for the quorum leader before it calls an election."),
    key("controller.quorum.election.backoff.max.ms", INT, 1_000, Range(0), HIGH, READ_ONLY,
        "The longest pause before the next election."),
    key("controller.quorum.fetch.timeout.ms", INT, 2_000, Range(0), HIGH, READ_ONLY,
        "How long a voter may go without a fetch before an election, and a leader without a majority fetching."),
    key("controller.quorum.request.timeout.ms", INT, 2_000, Range(0), MEDIUM, READ_ONLY,
        "How long a request within the quorum waits for its answer."),
    key("controller.quorum.retry.backoff.ms", INT, 20, Range(0), LOW, READ_ONLY,
        "The pause before such a request is repeated."),
    key("controller.performance.always.log.threshold.ms", LONG, 2_000, Range(0), MEDIUM, READ_ONLY,
        "Events of the controller slower than this are always logged.", hidden=True),
    key("controller.performance.sample.period.ms", LONG, 60_000, Range(100), MEDIUM, READ_ONLY,
        "How often the controller logs how it performs.", hidden=True),
    key("broker.heartbeat.interval.ms", INT, 2_000, None, MEDIUM, READ_ONLY,
        "How often a broker reports to the controller."),
    key("broker.session.timeout.ms", INT, 9_000, None, MEDIUM, READ_ONLY,
        "A broker that has not reported for so long is taken for dead."),
    key("metadata.log.dir", STRING, None, None, HIGH, READ_ONLY,
        "The directory of the metadata log, if not the first of log.dirs."),
    key("metadata.log.max.record.bytes.between.snapshots", LONG, 20_971_520, Range(1), HIGH, READ_ONLY,
        "Bytes of metadata after which a snapshot is written."),
    key("metadata.log.max.snapshot.interval.ms", LONG, 3_600_000, Range(0), HIGH, READ_ONLY,
        "Time after which a snapshot of the metadata is written."),
    key("metadata.log.segment.bytes", INT, 1_073_741_824, Range(8_388_608), HIGH, READ_ONLY,
        "Segment size of the metadata log."),
    key("metadata.log.segment.ms", LONG, 604_800_000, None, HIGH, READ_ONLY,
        "After this time a segment of the metadata log is rolled."),
    key("metadata.max.idle.interval.ms", INT, 500, Range(0), LOW, READ_ONLY,
        "How often an idle controller writes a no-op record; 0 is never."),
    key("metadata.max.retention.bytes", LONG, 104_857_600, None, HIGH, READ_ONLY,
        "How large the metadata log may grow with its snapshots."),
    key("metadata.max.retention.ms", LONG, 604_800_000, None, HIGH, READ_ONLY,
        "How long the metadata log and its snapshots are kept."),
    key("internal.metadata.delete.delay.millis", LONG, 60_000, None, LOW, READ_ONLY,
        "How long a deleted file of the metadata log stays on disk.", hidden=True),
    key("internal.metadata.log.segment.bytes", INT, None, None, LOW, READ_ONLY,
        "Overrides metadata.log.segment.bytes without its lower limit, for tests.", hidden=True),
    key("internal.metadata.max.batch.size.in.bytes", INT, 8_388_608, None, LOW, READ_ONLY,
        "The largest batch of the metadata log.", hidden=True),
    key("internal.metadata.max.fetch.size.in.bytes", INT, 8_388_608, None, LOW, READ_ONLY,
        "The most one fetch of the metadata log answers with.", hidden=True),
)
# fmt: on
