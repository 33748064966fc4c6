"""The tools of Apache Kafka that are run against both brokers, in this order: what one makes, later ones see.

`{bootstrap}`, `{broker}` and `{directory}` stand for what differs from broker to broker.
"""

from __future__ import annotations

from dataclasses import dataclass

TOOLS = "org.apache.kafka.tools"
TOPICS = f"{TOOLS}.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
OFFSETS = f"{TOOLS}.GetOffsetShell"
PRODUCER = f"{TOOLS}.ConsoleProducer"
CONSUMER = f"{TOOLS}.consumer.ConsoleConsumer"
DELETE_RECORDS = f"{TOOLS}.DeleteRecordsCommand"
ELECTIONS = f"{TOOLS}.LeaderElectionCommand"
CLIENT_METRICS = f"{TOOLS}.ClientMetricsCommand"
FEATURES = f"{TOOLS}.FeatureCommand"
REASSIGNMENTS = f"{TOOLS}.reassign.ReassignPartitionsCommand"


@dataclass(frozen=True)
class Command:
    name: str
    main_class: str
    arguments: tuple[str, ...]
    stdin: str = ""
    file: str = ""  # written to {directory}/file before the tool runs
    own_process: bool = False  # for a tool that ends its work in a shutdown hook of its JVM
    any_order: bool = False  # its lines are compared sorted


def command(name: str, main_class: str, arguments: str, *, stdin: str = "", file: str = "", own_process: bool = False) -> Command:
    return Command(name, main_class, ("--bootstrap-server", "{bootstrap}", *arguments.split()), stdin, file, own_process)


def _topics() -> list[Command]:
    return [
        command("topics: a topic is created", TOPICS, "--create --topic plain --partitions 2 --replication-factor 1"),
        command("topics: created with defaults", TOPICS, "--create --topic defaults"),
        command(
            "topics: created with configs", TOPICS, "--create --topic set --config retention.ms=1000000 --config cleanup.policy=compact"
        ),
        command("topics: created with an assignment", TOPICS, "--create --topic assigned --replica-assignment {broker},{broker},{broker}"),
        command("topics: created for records with headers", TOPICS, "--create --topic headers --partitions 1"),
        command("topics: created twice", TOPICS, "--create --topic plain"),
        command("topics: created if not there", TOPICS, "--create --topic plain --if-not-exists"),
        command("topics: created with a name that is not allowed", TOPICS, "--create --topic no/slash"),
        command("topics: created with a name that is too long", TOPICS, f"--create --topic {'n' * 250}"),
        command("topics: created with a dot", TOPICS, "--create --topic with.dot"),
        command("topics: created with a name that collides", TOPICS, "--create --topic with_dot"),
        command("topics: created with an unknown config", TOPICS, "--create --topic bad --config no.such.config=1"),
        command("topics: created with a bad value", TOPICS, "--create --topic bad --config retention.ms=soon"),
        command("topics: created with no partitions", TOPICS, "--create --topic bad --partitions 0"),
        command("topics: created with too many replicas", TOPICS, "--create --topic bad --replication-factor 3"),
        command("topics: created on a broker that is not there", TOPICS, "--create --topic bad --replica-assignment 77"),
        command("topics: listed", TOPICS, "--list"),
        command("topics: listed by pattern", TOPICS, "--list --topic with.*"),
        command("topics: described", TOPICS, "--describe --topic plain"),
        command("topics: all described", TOPICS, "--describe"),
        command("topics: those with overrides described", TOPICS, "--describe --topics-with-overrides"),
        command("topics: under-replicated described", TOPICS, "--describe --under-replicated-partitions"),
        command("topics: unavailable described", TOPICS, "--describe --unavailable-partitions"),
        command("topics: at min isr described", TOPICS, "--describe --at-min-isr-partitions"),
        command("topics: one that is not there described", TOPICS, "--describe --topic nowhere"),
        command("topics: given more partitions", TOPICS, "--alter --topic plain --partitions 3"),
        command("topics: given fewer partitions", TOPICS, "--alter --topic plain --partitions 1"),
        command("topics: given as many partitions", TOPICS, "--alter --topic plain --partitions 3"),
        command(
            "topics: given partitions with an assignment",
            TOPICS,
            "--alter --topic assigned --partitions 4 --replica-assignment {broker},{broker},{broker},{broker}",
        ),
        command("topics: one that is not there altered", TOPICS, "--alter --topic nowhere --partitions 3"),
        command("topics: described after more partitions", TOPICS, "--describe --topic plain"),
    ]


def _configs() -> list[Command]:
    topic = "--entity-type topics --entity-name plain"
    broker = "--entity-type brokers --entity-name {broker}"
    everyone = "--entity-type brokers --entity-default"
    return [
        command("configs: a topic's are described", CONFIGS, f"--describe {topic}"),
        command("configs: all of a topic's are described", CONFIGS, f"--describe --all {topic}"),
        command(
            "configs: a topic's are altered",
            CONFIGS,
            f"--alter {topic} --add-config max.message.bytes=2000000,cleanup.policy=[compact,delete]",
        ),
        command("configs: a topic's are described once altered", CONFIGS, f"--describe {topic}"),
        command("configs: all of a topic's are described once altered", CONFIGS, f"--describe --all {topic}"),
        command("configs: a topic's is set to a bad value", CONFIGS, f"--alter {topic} --add-config retention.ms=soon"),
        command("configs: a topic's is set out of range", CONFIGS, f"--alter {topic} --add-config min.insync.replicas=0"),
        command("configs: a topic's unknown one is set", CONFIGS, f"--alter {topic} --add-config no.such.config=1"),
        command("configs: a topic's is deleted", CONFIGS, f"--alter {topic} --delete-config cleanup.policy"),
        command("configs: one that is not set is deleted", CONFIGS, f"--alter {topic} --delete-config flush.ms"),
        command("configs: a topic's are described once deleted", CONFIGS, f"--describe {topic}"),
        command("configs: those of all topics are described", CONFIGS, "--describe --entity-type topics"),
        command("configs: a topic that is not there is described", CONFIGS, "--describe --entity-type topics --entity-name nowhere"),
        command(
            "configs: a topic that is not there is altered",
            CONFIGS,
            "--alter --entity-type topics --entity-name nowhere --add-config flush.ms=1",
        ),
        command("configs: all of a broker's are described", CONFIGS, f"--describe --all {broker}"),
        command("configs: a broker's is altered", CONFIGS, f"--alter {broker} --add-config log.cleaner.threads=2"),
        command("configs: every broker's is altered", CONFIGS, f"--alter {everyone} --add-config log.retention.ms=7000000"),
        command("configs: a broker's read-only one is altered", CONFIGS, f"--alter {broker} --add-config log.dirs=/elsewhere"),
        command("configs: a broker's is set to a bad value", CONFIGS, f"--alter {broker} --add-config log.cleaner.threads=none"),
        command("configs: a broker's are described once altered", CONFIGS, f"--describe {broker}"),
        command("configs: every broker's are described", CONFIGS, f"--describe {everyone}"),
        command("configs: a topic follows what every broker has", CONFIGS, "--describe --all --entity-type topics --entity-name defaults"),
        command("configs: a broker's is deleted", CONFIGS, f"--alter {broker} --delete-config log.cleaner.threads"),
        command("configs: every broker's is deleted", CONFIGS, f"--alter {everyone} --delete-config log.retention.ms"),
    ]


def _records() -> list[Command]:
    keyed = "--reader-property parse.key=true --reader-property key.separator=:"
    everything = " ".join(f"--formatter-property print.{part}=true" for part in ("key", "offset", "partition", "headers"))
    lines = "".join(f"k{number}:v{number}\n" for number in range(100))
    delete = '{{"version": 1, "partitions": [{{"topic": "defaults", "partition": 0, "offset": {0}}}]}}'
    return [
        command("console-producer: keys and values", PRODUCER, f"--topic defaults {keyed}", stdin=lines),
        command("console-producer: one record", PRODUCER, "--topic with.dot --sync", stdin="one\n"),
        command(
            "console-producer: headers and nulls",
            PRODUCER,
            f"--topic headers --sync {keyed} --reader-property parse.headers=true --reader-property headers.delimiter=; "
            "--reader-property null.marker=NULL --compression-codec zstd",
            stdin="a:1,b:2;k:v\nc:3;NULL:x\nd:NULL;k:NULL\n",
        ),
        command("console-producer: to a topic that it makes", PRODUCER, "--topic made --sync", stdin="first\nsecond\n"),
        command(
            "console-consumer: headers and nulls",
            CONSUMER,
            f"--topic headers --partition 0 --offset earliest --max-messages 3 {everything}",
        ),
        command(
            "console-consumer: from a topic that was made by a producer", CONSUMER, "--topic made --partition 0 --offset 0 --max-messages 2"
        ),
        command(
            "console-consumer: from the beginning of a partition",
            CONSUMER,
            f"--topic defaults --partition 0 --offset earliest --max-messages 100 {everything}",
        ),
        command("console-consumer: from an offset", CONSUMER, "--topic defaults --partition 0 --offset 90 --max-messages 10"),
        command("console-consumer: past the end", CONSUMER, "--topic defaults --partition 0 --offset latest --timeout-ms 1000"),
        command("get-offsets: the end", OFFSETS, "--topic defaults"),
        command("get-offsets: of all topics", OFFSETS, ""),
        command("get-offsets: by pattern and partition", OFFSETS, "--topic-partitions plain:0-2,defaults"),
        command("get-offsets: the beginning", OFFSETS, "--topic defaults --time earliest"),
        command("get-offsets: the largest timestamp", OFFSETS, "--topic with.dot --time max-timestamp"),
        command("get-offsets: a time before all", OFFSETS, "--topic defaults --time 1000"),
        command("get-offsets: a time after all", OFFSETS, "--topic defaults --time 4102444800000"),
        command("get-offsets: what is local", OFFSETS, "--topic defaults --time -4"),
        command("get-offsets: what is remote", OFFSETS, "--topic defaults --time -5"),
        command("get-offsets: of a topic that is not there", OFFSETS, "--topic nowhere"),
        command("delete-records: up to an offset", DELETE_RECORDS, "--offset-json-file {directory}/file", file=delete.format(40)),
        command("get-offsets: the beginning once records are deleted", OFFSETS, "--topic defaults --time earliest"),
        command(
            "console-consumer: from the beginning once records are deleted",
            CONSUMER,
            "--topic defaults --partition 0 --offset earliest --max-messages 5",
        ),
        command("delete-records: past the end", DELETE_RECORDS, "--offset-json-file {directory}/file", file=delete.format(1000)),
        command("delete-records: all", DELETE_RECORDS, "--offset-json-file {directory}/file", file=delete.format(-1)),
        command("get-offsets: the beginning once all is deleted", OFFSETS, "--topic defaults --time earliest"),
        command("log-dirs: of some topics", f"{TOOLS}.LogDirsCommand", "--describe --topic-list with.dot,plain"),
        command("log-dirs: of one broker", f"{TOOLS}.LogDirsCommand", "--describe --broker-list {broker} --topic-list with.dot"),
    ]


def _client_metrics() -> list[Command]:
    alter = "--alter --name m --interval 5000 --metrics a,b --match client_id=x,client_software_name=y"
    return [
        command("client-metrics: none listed", CLIENT_METRICS, "--list"),
        command("client-metrics: altered", CLIENT_METRICS, alter),
        command("client-metrics: listed", CLIENT_METRICS, "--list"),
        command("client-metrics: described", CLIENT_METRICS, "--describe --name m"),
        command("client-metrics: all described", CLIENT_METRICS, "--describe"),
        command("client-metrics: one that is not there described", CLIENT_METRICS, "--describe --name nowhere"),
        command("client-metrics: an interval that is too short", CLIENT_METRICS, "--alter --name m --interval 10"),
        command("client-metrics: a pattern for nothing", CLIENT_METRICS, "--alter --name m --match foo=1"),
        command("client-metrics: a pattern that is none", CLIENT_METRICS, "--alter --name m --match client_id=("),
        command("client-metrics: described after that", CLIENT_METRICS, "--describe --name m"),
        command("client-metrics: deleted", CLIENT_METRICS, "--delete --name m"),
        command("client-metrics: deleted twice", CLIENT_METRICS, "--delete --name m"),
        command("client-metrics: none listed any more", CLIENT_METRICS, "--list"),
    ]


def _features() -> list[Command]:
    """Of the features that both have; a level that changes is set back."""
    both = "--feature transaction.version=2 --feature group.version=1"
    return [
        command("features: an upgrade to the same, for a test", FEATURES, f"upgrade {both} --dry-run"),
        command("features: an upgrade to too much", FEATURES, "upgrade --feature group.version=7"),
        command("features: an upgrade that is a downgrade", FEATURES, "upgrade --feature transaction.version=1"),
        command("features: a downgrade", FEATURES, "downgrade --feature transaction.version=1"),
        command("features: a downgrade that is an upgrade", FEATURES, "downgrade --feature transaction.version=2"),
        command("features: an upgrade", FEATURES, f"upgrade {both}"),
        command("features: one disabled for a test", FEATURES, "disable --feature group.version --dry-run"),
        command("features: one that is not there disabled", FEATURES, "disable --feature cats"),
        command("features: one that is not there upgraded", FEATURES, "upgrade --feature cats=1"),
        command("features: what a release has", FEATURES, "version-mapping --release-version 4.2-IV1"),
        command("features: what a level depends on", FEATURES, "feature-dependencies --feature group.version=1"),
    ]


def _elections() -> list[Command]:
    file = "--path-to-json-file {directory}/file"
    listed = '{{"partitions": [{0}]}}'
    known = '{"topic": "plain", "partition": 0}, {"topic": "plain", "partition": 2}'
    unknown = '{"topic": "nowhere", "partition": 1}'
    return [
        command("leader-election: of a partition", ELECTIONS, "--election-type preferred --topic plain --partition 0"),
        command("leader-election: of all partitions", ELECTIONS, "--election-type preferred --all-topic-partitions"),
        command("leader-election: unclean of a partition", ELECTIONS, "--election-type unclean --topic plain --partition 0"),
        command("leader-election: unclean of all partitions", ELECTIONS, "--election-type unclean --all-topic-partitions"),
        command("leader-election: of listed partitions", ELECTIONS, f"--election-type preferred {file}", file=listed.format(known)),
        command(
            "leader-election: some of them not there",
            ELECTIONS,
            f"--election-type preferred {file}",
            file=listed.format(f"{known}, {unknown}"),
        ),
        command("leader-election: of a topic that is not there", ELECTIONS, "--election-type preferred --topic nowhere --partition 0"),
        command("leader-election: of a partition that is not there", ELECTIONS, "--election-type unclean --topic plain --partition 9"),
    ]


def _reassignments() -> list[Command]:
    """On one broker nothing can move; what can be asked for is through at once."""
    file = "--reassignment-json-file {directory}/file"
    generate = "--generate --topics-to-move-json-file {directory}/file"
    plan = '{{"version": 1, "partitions": [{{"topic": "{0}", "partition": {1}, "replicas": [{2}]}}]}}'
    topics = '{"version": 1, "topics": [{"topic": "plain"}]}'
    stays = plan.format("plain", 0, "1")
    return [
        command("reassign-partitions: none in progress", REASSIGNMENTS, "--list"),
        command("reassign-partitions: generated", REASSIGNMENTS, f"{generate} --broker-list {{broker}}", file=topics),
        command(
            "reassign-partitions: generated for a broker that is not there", REASSIGNMENTS, f"{generate} --broker-list 77", file=topics
        ),
        command("reassign-partitions: executed", REASSIGNMENTS, f"--execute {file}", file=stays),
        command("reassign-partitions: verified", REASSIGNMENTS, f"--verify {file}", file=stays),
        command("reassign-partitions: cancelled", REASSIGNMENTS, f"--cancel {file}", file=stays),
        command(
            "reassign-partitions: to a broker that is not there", REASSIGNMENTS, f"--execute {file}", file=plan.format("plain", 0, "77")
        ),
        command(
            "reassign-partitions: of a topic that is not there", REASSIGNMENTS, f"--execute {file}", file=plan.format("nowhere", 0, "1")
        ),
        command(
            "reassign-partitions: of a partition that is not there", REASSIGNMENTS, f"--execute {file}", file=plan.format("plain", 9, "1")
        ),
    ]


def _load() -> list[Command]:
    perf = "--topic plain --num-records 5000 --record-size 100 --throughput -1"
    verifiable = "--topic set --max-messages 20 --acks -1 --value-prefix 7 --repeating-keys 5"
    return [
        command("producer-perf-test", f"{TOOLS}.ProducerPerformance", perf),
        command("producer-perf-test: without acks", f"{TOOLS}.ProducerPerformance", f"{perf} --command-property acks=0"),
        command("verifiable-producer", f"{TOOLS}.VerifiableProducer", verifiable, own_process=True),
        command("get-offsets: after verifiable-producer", OFFSETS, "--topic set"),
        command("broker-api-versions", f"{TOOLS}.BrokerApiVersionsCommand", ""),
    ]


def _deletion() -> list[Command]:
    return [
        command("topics: deleted", TOPICS, "--delete --topic plain"),
        command("topics: one that is not there deleted", TOPICS, "--delete --topic nowhere"),
        command("topics: one that may be missing deleted", TOPICS, "--delete --topic nowhere --if-exists"),
        command("topics: deleted by pattern", TOPICS, "--delete --topic with.*"),
        command("topics: listed once some are deleted", TOPICS, "--list"),
        command("topics: described once deleted", TOPICS, "--describe --topic plain"),
        command("topics: created again", TOPICS, "--create --topic plain --partitions 1"),
        command("get-offsets: of a topic created again", OFFSETS, "--topic plain"),
    ]


COMMANDS = _topics() + _configs() + _client_metrics() + _features() + _records() + _elections() + _reassignments() + _load() + _deletion()
