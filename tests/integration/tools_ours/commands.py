"""What is run twice against each broker: by Apache Kafka's Java tool and by ours, in this order; what one makes, later ones see.

`{bootstrap}`, `{broker}` and `{directory}` stand for what differs from broker to broker, `{who}` for what differs from tool to tool: each
works on topics and groups of its own, so that both can make and delete them.
"""

from __future__ import annotations

from dataclasses import dataclass

_TOOLS = "org.apache.kafka.tools"
JAVA = {
    "topics": f"{_TOOLS}.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "get-offsets": f"{_TOOLS}.GetOffsetShell",
    "consumer-groups": f"{_TOOLS}.consumer.group.ConsumerGroupCommand",
    "groups": f"{_TOOLS}.GroupsCommand",
    "delete-records": f"{_TOOLS}.DeleteRecordsCommand",
    "log-dirs": f"{_TOOLS}.LogDirsCommand",
    "broker-api-versions": f"{_TOOLS}.BrokerApiVersionsCommand",
    "leader-election": f"{_TOOLS}.LeaderElectionCommand",
    "transactions": f"{_TOOLS}.TransactionsCommand",
    "features": f"{_TOOLS}.FeatureCommand",
    "cluster": f"{_TOOLS}.ClusterTool",
    "console-producer": f"{_TOOLS}.ConsoleProducer",
    "console-consumer": f"{_TOOLS}.consumer.ConsoleConsumer",
    "producer-perf-test": f"{_TOOLS}.ProducerPerformance",
    "consumer-perf-test": f"{_TOOLS}.ConsumerPerformance",
    "e2e-latency": f"{_TOOLS}.EndToEndLatency",
    "verifiable-producer": f"{_TOOLS}.VerifiableProducer",
    "verifiable-consumer": f"{_TOOLS}.VerifiableConsumer",
    "acls": f"{_TOOLS}.AclCommand",
    "reassign-partitions": f"{_TOOLS}.reassign.ReassignPartitionsCommand",
    "delegation-tokens": f"{_TOOLS}.DelegationTokenCommand",
    "client-metrics": f"{_TOOLS}.ClientMetricsCommand",
    "streams-application-reset": f"{_TOOLS}.StreamsResetter",
    "replica-verification": f"{_TOOLS}.ReplicaVerificationTool",
}


@dataclass(frozen=True)
class Command:
    name: str
    tool: str
    arguments: tuple[str, ...]
    stdin: str = ""
    file: str = ""  # written to {directory}/file before the tool runs
    any_order: bool = False  # Kafka prints the lines in the order of a hash table
    brokers: tuple[str, ...] = ("ours", "kafka")
    distinct: bool = False  # how often a line is printed, and the numbers in it, depend on the timing
    ends_jvm: bool = False  # Kafka's tool ends its JVM there, by System.exit or a shutdown hook: it gets one of its own
    ours: str = ""  # what ours is given instead, where Kafka's has no option for it


def run(name: str, arguments: str, *, bare: bool = False, **more: object) -> Command:
    """`tool: what it does`; --bootstrap-server is added unless it is `bare`."""
    tool = name.partition(":")[0]
    words = () if bare else ("--bootstrap-server", "{bootstrap}")
    return Command(name, tool, (*words, *arguments.split()), **more)  # type: ignore[arg-type]


KAFKA_ONLY = ("kafka",)


def _topics() -> list[Command]:
    return [
        run("topics: created", "--create --topic {who}-plain --partitions 2 --replication-factor 1"),
        run("topics: created with configs", "--create --topic {who}-set --config retention.ms=1000000 --config cleanup.policy=compact"),
        run("topics: created with an assignment", "--create --topic {who}-assigned --replica-assignment {broker},{broker},{broker}"),
        run("topics: created twice", "--create --topic {who}-plain"),
        run("topics: created if not there", "--create --topic {who}-plain --if-not-exists"),
        run("topics: created with a dot", "--create --topic {who}.dot"),
        run("topics: created with a name that collides", "--create --topic {who}_dot"),
        run("topics: created with a bad name", "--create --topic no/slash"),
        run("topics: created with an unknown config", "--create --topic bad --config no.such.config=1"),
        run("topics: created with a bad value", "--create --topic bad --config retention.ms=soon"),
        run("topics: created with a config without a value", "--create --topic bad --config retention.ms"),
        run("topics: created with no partitions", "--create --topic bad --partitions 0"),
        run("topics: created with partitions that are no number", "--create --topic bad --partitions many"),
        run("topics: created with no replicas", "--create --topic bad --replication-factor 0"),
        run("topics: created with too many replicas", "--create --topic bad --replication-factor 3"),
        run("topics: created on a broker that is not there", "--create --topic bad --replica-assignment 77"),
        run("topics: created with a repeated broker", "--create --topic bad --replica-assignment 1:1"),
        run("topics: created with different replication factors", "--create --topic bad --replica-assignment 1:2,3"),
        run("topics: created with a partition left out", "--create --topic bad --replica-assignment 1,,1"),
        run("topics: created with an assignment and partitions", "--create --topic bad --replica-assignment 1 --partitions 1"),
        run("topics: listed", "--list --topic {who}.*"),
        run("topics: listed without those that are internal", "--list --exclude-internal --topic {who}.*"),
        run("topics: described", "--describe --topic {who}-plain"),
        run("topics: several described", "--describe --topic {who}-.*", any_order=True),
        run("topics: those with overrides described", "--describe --topics-with-overrides --topic {who}-.*"),
        run("topics: under-replicated described", "--describe --under-replicated-partitions --topic {who}-.*"),
        run("topics: unavailable described", "--describe --unavailable-partitions --topic {who}-.*"),
        run("topics: at min isr described", "--describe --at-min-isr-partitions --topic {who}-plain"),
        run("topics: under min isr described", "--describe --under-min-isr-partitions --topic {who}-plain"),
        run("topics: one that is not there described", "--describe --topic {who}-nowhere"),
        run("topics: one that may be missing described", "--describe --topic {who}-nowhere --if-exists"),
        run("topics: an unknown id described", "--describe --topic-id AAAAAAAAAAAAAAAAAAAAAg"),
        run("topics: given more partitions", "--alter --topic {who}-plain --partitions 3"),
        run("topics: given fewer partitions", "--alter --topic {who}-plain --partitions 1"),
        run("topics: given as many partitions", "--alter --topic {who}-plain --partitions 3"),
        run(
            "topics: given partitions with an assignment",
            "--alter --topic {who}-assigned --partitions 4 --replica-assignment {broker},{broker},{broker},{broker}",
        ),
        run("topics: one that is not there altered", "--alter --topic {who}-nowhere --partitions 3"),
        run("topics: altered with configs", "--alter --topic {who}-plain --config flush.ms=1"),
        run("topics: altered without partitions", "--alter --topic {who}-plain"),
        run("topics: two actions", "--list --describe"),
        run("topics: no action", "--topic {who}-plain"),
        run("topics: no broker", "--list", bare=True),
        run("topics: an address without a port", "--bootstrap-server localhost --list", bare=True),
        run("topics: an option that is none", "--list --no-such-option"),
        run("topics: an option without its value", "--list --topic"),
        run("topics: options that do not go together", "--list --partitions 3"),
        run("topics: a report of what is not described", "--list --unavailable-partitions"),
        run("topics: a config file that is not there", "--list --command-config /no/such/file"),
        run("topics: help", "--help"),
        run("topics: version", "--version"),
        run("topics: nothing at all", "", bare=True),
    ]


def _configs() -> list[Command]:
    topic = "--entity-type topics --entity-name {who}-plain"
    broker = "--entity-type brokers --entity-name {broker}"
    everyone = "--entity-type brokers --entity-default"
    return [
        run("configs: of a topic", f"--describe {topic}"),
        run("configs: all of a topic", f"--describe --all {topic}"),
        run("configs: altered", f"--alter {topic} --add-config max.message.bytes=2000000,cleanup.policy=[compact,delete]"),
        run("configs: of a topic once altered", f"--describe {topic}"),
        run("configs: of a topic by its flag", "--describe --topic {who}-plain"),
        run("configs: a bad value", f"--alter {topic} --add-config retention.ms=soon"),
        run("configs: a value out of range", f"--alter {topic} --add-config min.insync.replicas=0"),
        run("configs: an unknown name", f"--alter {topic} --add-config no.such.config=1"),
        run("configs: a name without a value", f"--alter {topic} --add-config retention.ms"),
        run("configs: a name with a bad character", f"--alter {topic} --add-config re/tention=1"),
        run("configs: deleted", f"--alter {topic} --delete-config cleanup.policy"),
        run("configs: two deleted, one of them not set", f"--alter {topic} --delete-config max.message.bytes,flush.ms"),
        run("configs: one that is not set deleted", f"--alter {topic} --delete-config flush.ms"),
        run("configs: from a file", f"--alter {topic} --add-config-file {{directory}}/file", file="retention.ms=5000\nsegment.ms=1000\n"),
        run("configs: of a topic after the file", f"--describe {topic}"),
        run("configs: of a topic that is not there", "--describe --entity-type topics --entity-name {who}-nowhere"),
        run("configs: all of a topic that is not there", "--describe --all --entity-type topics --entity-name {who}-nowhere"),
        run(
            "configs: a topic that is not there altered", "--alter --entity-type topics --entity-name {who}-nowhere --add-config flush.ms=1"
        ),
        run("configs: of a bad topic name", "--describe --entity-type topics --entity-name no/slash"),
        run("configs: of a broker", f"--describe {broker}"),
        run("configs: all of a broker", f"--describe --all {broker}"),
        run("configs: a broker's altered", f"--alter {broker} --add-config log.cleaner.threads=2"),
        run("configs: of a broker once altered", f"--describe {broker}"),
        run("configs: a broker's deleted", f"--alter {broker} --delete-config log.cleaner.threads", brokers=()),
        run("configs: every broker's altered", f"--alter {everyone} --add-config log.retention.ms=7000000"),
        run("configs: every broker's", f"--describe {everyone}"),
        run("configs: a broker's read-only one altered", f"--alter {broker} --add-config log.dirs=/elsewhere"),
        run("configs: of a broker that is none", "--describe --entity-type brokers --entity-name first"),
        run("configs: of a broker that is not there", "--describe --entity-type brokers --entity-name 777"),
        run("configs: of a broker's loggers", "--alter --broker-logger {broker} --add-config no.such.Logger=INFO", brokers=KAFKA_ONLY),
        run("configs: a type that is none", "--describe --entity-type cats"),
        run("configs: no type", "--describe"),
        run("configs: no broker", f"--describe {topic}", bare=True),
        run("configs: no action", f"{topic}"),
        run("configs: both actions", f"--alter --describe {topic}"),
        run("configs: described with configs to add", f"--describe {topic} --add-config a=b"),
        run("configs: nothing to alter", f"--alter {topic}"),
        run("configs: altered without a name", "--alter --entity-type topics --add-config flush.ms=1"),
        run("configs: a type twice", "--describe --entity-type topics --entity-type topics"),
        run("configs: two types that do not go together", "--describe --entity-type topics --entity-type brokers"),
        run("configs: a type and a flag", "--describe --entity-type topics --topic {who}-plain"),
        run("configs: a default of topics", "--describe --entity-type topics --entity-default"),
        run("configs: a file and a list", f"--alter {topic} --add-config a=b --add-config-file x"),
        run("configs: an option that is none", "--no-such-option"),
        run("configs: help", "--help"),
        run("configs: a quota set", "--alter --entity-type clients --entity-name {who} --add-config producer_byte_rate=1e7"),
        run("configs: a quota", "--describe --entity-type clients --entity-name {who}"),
        run(
            "configs: quotas of a user and a client",
            "--alter --entity-type users --entity-name u-{who} --entity-type clients --entity-name {who} "
            "--add-config request_percentage=200,producer_byte_rate=1024,consumer_byte_rate=2048,controller_mutation_rate=0.5",
        ),
        run("configs: a quota of both", "--describe --user u-{who} --client {who}"),
        run("configs: quotas of a user's clients", "--describe --entity-type users --entity-name u-{who} --entity-type clients"),
        run("configs: a user's default client", "--alter --user u-{who} --client-defaults --add-config consumer_byte_rate=5"),
        run("configs: of a user's default client", "--describe --user u-{who} --client-defaults"),
        run(
            "configs: a user's default client without a quota",
            "--alter --user u-{who} --client-defaults --delete-config consumer_byte_rate",
        ),
        run("configs: a quota that is none", "--alter --client {who} --add-config retention.ms=1"),
        run("configs: a quota that is no number", "--alter --client {who} --add-config producer_byte_rate=fast"),
        run("configs: a quota of zero", "--alter --client {who} --add-config producer_byte_rate=0"),
        run("configs: a quota below zero", "--alter --client {who} --add-config request_percentage=-1"),
        run("configs: a quota of half a byte", "--alter --client {who} --add-config producer_byte_rate=1.5"),
        run("configs: a quota for nobody", "--alter --entity-type clients --add-config producer_byte_rate=1"),
        run("configs: a quota that is not set deleted", "--alter --client {who} --delete-config consumer_byte_rate"),
        run("configs: a quota deleted", "--alter --client {who} --delete-config producer_byte_rate"),
        run("configs: a quota that is deleted", "--describe --client {who}"),
        run("configs: a user's quota", "--alter --user q-{who} --add-config producer_byte_rate=1024"),
        run("configs: of a user with a quota", "--describe --user q-{who}"),
        run("configs: a SCRAM credential", "--alter --user u-{who} --add-config SCRAM-SHA-256=[password=p]"),
        run("configs: SCRAM with too few iterations", "--alter --user u-{who} --add-config SCRAM-SHA-256=[iterations=12,password=p]"),
        run("configs: SCRAM without a password", "--alter --user u-{who} --add-config SCRAM-SHA-256=[iterations=5000]"),
        run("configs: of a user", "--describe --user u-{who}"),
        run("configs: a SCRAM credential deleted", "--alter --user u-{who} --delete-config SCRAM-SHA-256"),
        run("configs: an ip's quota", "--alter --ip 127.0.0.2 --add-config connection_creation_rate=100"),
        run("configs: of an ip", "--describe --ip 127.0.0.2"),
        run("configs: the quota of an ip that is none", "--alter --ip 300.0.0.1 --add-config connection_creation_rate=100"),
        run("configs: an ip's quota of bytes", "--alter --ip 127.0.0.2 --add-config producer_byte_rate=1"),
        run("configs: the default of ips", "--alter --ip-defaults --add-config connection_creation_rate=20000"),
        run("configs: of the default of ips", "--describe --ip-defaults"),
    ]


def _records() -> list[Command]:
    keyed = "--reader-property parse.key=true --reader-property key.separator=:"
    everything = " ".join(f"--formatter-property print.{part}=true" for part in ("key", "offset", "partition", "headers"))
    lines = "".join(f"k{number}:v{number}\n" for number in range(100))
    delete = '{{"version": 1, "partitions": [{{"topic": "WHO-set", "partition": 0, "offset": {0}}}]}}'
    read = "--topic {who}-set --partition 0"
    last = "--topic {who}-set --tail"
    return [
        run("console-producer: keys and values", f"--topic {{who}}-set {keyed}", stdin=lines),
        run(
            "console-producer: headers and nulls",
            f"--topic {{who}}.dot --sync {keyed} --reader-property parse.headers=true --reader-property headers.delimiter=; "
            "--reader-property null.marker=NULL --compression-codec zstd",
            stdin="a:1,b:2;k:v\nc:3;NULL:x\nd:NULL;k:NULL\n",
        ),
        run("console-producer: to a topic that it makes", "--topic {who}-made --sync", stdin="first\nsecond\n"),
        run("console-producer: a line without a key", f"--topic {{who}}-made {keyed}", stdin="no key here\n"),
        run("console-producer: no topic", "", stdin=""),
        run("console-producer: no broker", "--topic t", bare=True, stdin=""),
        run("console-producer: an option that is none", "--topic t --no-such-option", stdin=""),
        run("console-producer: a bad setting", "--topic t --command-property acks=7", stdin="x\n"),
        run("console-producer: a setting that was renamed", "--topic {who}-made --producer-property acks=1", stdin="third\n"),
        run("console-producer: both names of a setting", "--topic t --producer-property acks=1 --command-property acks=1", stdin=""),
        run("console-consumer: headers and nulls", f"--topic {{who}}.dot --partition 0 --offset earliest --max-messages 3 {everything}"),
        run("console-consumer: from a topic that was made", "--topic {who}-made --partition 0 --offset 0 --max-messages 3"),
        run("console-consumer: from the beginning", f"{read} --offset earliest --max-messages 100 {everything}"),
        run("console-consumer: from an offset", f"{read} --offset 90 --max-messages 10"),
        run("console-consumer: the last", f"{read} --offset 95 --max-messages 5", ours=f"{read} --tail 5 --max-messages 5"),
        run("console-consumer: the last of all partitions", f"{read} --offset 97 --max-messages 3", ours=f"{last} 3 --max-messages 3"),
        run("console-consumer: the last, of fewer", f"{read} --offset earliest --max-messages 100", ours=f"{last} 1000 --max-messages 100"),
        run("console-consumer: the last none", f"{read} --offset latest --timeout-ms 500", ours=f"{last} 0 --timeout-ms 500"),
        run("console-consumer: past the end", f"{read} --offset latest --timeout-ms 500"),
        run("console-consumer: with a group", "--topic {who}-set --from-beginning --group {who}-group --max-messages 60"),
        run("console-consumer: the group goes on", "--topic {who}-set --group {who}-group --max-messages 10"),
        run(
            "console-consumer: deserializers",
            f"{read} --offset 0 --max-messages 2 --formatter-property print.key=true "
            "--key-deserializer org.apache.kafka.common.serialization.StringDeserializer "
            "--value-deserializer org.apache.kafka.common.serialization.ShortDeserializer",
        ),
        run(
            "console-consumer: separators",
            f"{read} --offset 0 --max-messages 2 --formatter-property print.key=true --formatter-property key.separator=| "
            "--formatter-property line.separator=; --formatter-property print.timestamp=false --formatter-property print.epoch=true",
        ),
        run(
            "console-consumer: nothing is printed", f"{read} --offset 0 --max-messages 2 --formatter {_TOOLS}.consumer.NoOpMessageFormatter"
        ),
        run("console-consumer: a formatter that is none", f"{read} --formatter no.such.Formatter"),
        run("console-consumer: a bad offset", f"{read} --offset soon"),
        run("console-consumer: an offset without a partition", "--topic {who}-set --offset 1"),
        run("console-consumer: a partition without a topic", "--include x --partition 1"),
        run("console-consumer: neither topic nor pattern", ""),
        run("console-consumer: a group and a partition", f"{read} --group g"),
        run("console-consumer: two groups", "--topic t --group a --command-property group.id=b"),
        run("console-consumer: two resets", "--topic t --from-beginning --command-property auto.offset.reset=latest"),
        run("console-consumer: no broker", "--topic t", bare=True),
        run("get-offsets: the end", "--topic {who}-set"),
        run("get-offsets: by pattern and partition", "--topic-partitions {who}-plain:0-2,{who}-set"),
        run("get-offsets: some partitions", "--topic {who}-plain --partitions 0,2"),
        run("get-offsets: the beginning", "--topic {who}-set --time earliest"),
        run("get-offsets: the largest timestamp", "--topic {who}.dot --time max-timestamp"),
        run("get-offsets: a time before all", "--topic {who}-set --time 1000"),
        run("get-offsets: a time after all", "--topic {who}-set --time 4102444800000"),
        run("get-offsets: what is local", "--topic {who}-set --time -4"),
        run("get-offsets: what is remote", "--topic {who}-set --time -5"),
        run("get-offsets: of a topic that is not there", "--topic {who}-nowhere"),
        run("get-offsets: a bad time", "--topic {who}-set --time soon"),
        run("get-offsets: bad partitions", "--topic {who}-set --partitions one"),
        run("get-offsets: a bad rule", "--topic-partitions a:b:c"),
        run("get-offsets: rules and a topic", "--topic-partitions a --topic b"),
        run("get-offsets: no broker", "--topic t", bare=True),
        run("get-offsets: an address without a port", "--bootstrap-server localhost --topic t", bare=True),
        run("get-offsets: an option that is none", "--no-such-option"),
        run("delete-records: up to an offset", "--offset-json-file {directory}/file", file=delete.format(40)),
        run("get-offsets: the beginning once records are deleted", "--topic {who}-set --time earliest"),
        run("delete-records: past the end", "--offset-json-file {directory}/file", file=delete.format(1000)),
        run("delete-records: all", "--offset-json-file {directory}/file", file=delete.format(-1)),
        run("delete-records: half a file", "--offset-json-file {directory}/file", file='{"partitions": ['),
        run("delete-records: a file without partitions", "--offset-json-file {directory}/file", file="{}"),
        run("delete-records: a file with a wrong type", "--offset-json-file {directory}/file", file='{"partitions": [{"topic": 1}]}'),
        run("delete-records: a file of another version", "--offset-json-file {directory}/file", file='{"version": 9}'),
        run(
            "delete-records: a partition twice",
            "--offset-json-file {directory}/file",
            file='{"partitions": [{"topic": "t", "partition": 0, "offset": 1}, {"topic": "t", "partition": 0, "offset": 2}]}',
        ),
        run("delete-records: a file that is not there", "--offset-json-file /no/such/file"),
        run("delete-records: no file", ""),
        run("log-dirs: of a topic", "--describe --topic-list {who}.dot"),
        run("log-dirs: of a broker", "--describe --broker-list {broker} --topic-list {who}.dot"),
        run("log-dirs: of a broker that is not there", "--describe --broker-list 77"),
        run("log-dirs: of a broker that is no number", "--describe --broker-list first"),
        run("log-dirs: no action", ""),
    ]


def _groups() -> list[Command]:
    group = "--group {who}-group"
    reset = f"--reset-offsets {group} --topic {{who}}-set"
    return [
        run("consumer-groups: described", f"--describe {group}"),
        run("consumer-groups: described at length", f"--describe {group} --offsets --verbose"),
        run("consumer-groups: its state", f"--describe {group} --state"),
        run("consumer-groups: its state at length", f"--describe {group} --state --verbose"),
        run("consumer-groups: its members", f"--describe {group} --members"),
        run("consumer-groups: its members at length", f"--describe {group} --members --verbose"),
        run("consumer-groups: one that is not there", "--describe --group {who}-nobody"),
        run("consumer-groups: two of which one is not there", f"--describe {group} --group {{who}}-nobody"),
        run("consumer-groups: reset to the beginning", f"{reset} --to-earliest --dry-run"),
        run("consumer-groups: reset to the end", f"{reset} --to-latest --dry-run"),
        run("consumer-groups: reset to an offset", f"{reset} --to-offset 50 --execute"),
        run("consumer-groups: reset past the end", f"{reset} --to-offset 5000 --execute"),
        run("consumer-groups: reset by a shift", f"{reset} --shift-by -5 --execute"),
        run("consumer-groups: reset to what is committed", f"{reset} --to-current --execute"),
        run("consumer-groups: reset to a time", f"{reset} --to-datetime 2020-01-01T00:00:00.000 --execute"),
        run("consumer-groups: reset to a time to come", f"{reset} --to-datetime 2120-01-01T00:00:00.000+01:00 --dry-run"),
        run("consumer-groups: reset by a duration", f"{reset} --by-duration P1DT2H3M4.5S --dry-run"),
        run("consumer-groups: reset to a bad time", f"{reset} --to-datetime yesterday --dry-run"),
        run("consumer-groups: reset to a time that is short", f"{reset} --to-datetime 2020-01-01T00:00 --dry-run"),
        run("consumer-groups: reset by a bad duration", f"{reset} --by-duration long --dry-run"),
        run("consumer-groups: reset, exported", f"{reset} --to-earliest --dry-run --export"),
        run(
            "consumer-groups: reset from a file",
            f"--reset-offsets {group} --from-file {{directory}}/file --execute",
            file="WHO-set,0,70\n",
        ),
        run("consumer-groups: reset of all topics", f"--reset-offsets {group} --all-topics --to-latest --execute"),
        run("consumer-groups: reset of one partition", f"--reset-offsets {group} --topic {{who}}-set:0 --to-latest --execute"),
        run(
            "consumer-groups: reset of a partition that is not there",
            f"--reset-offsets {group} --topic {{who}}-set:7 --to-latest --dry-run",
        ),
        run(
            "consumer-groups: reset of a topic that is not there", f"--reset-offsets {group} --topic {{who}}-nowhere --to-latest --dry-run"
        ),
        run("consumer-groups: reset of a bad partition", f"--reset-offsets {group} --topic {{who}}-set:x --to-latest --dry-run"),
        run("consumer-groups: reset without saying where", f"{reset} --dry-run"),
        run("consumer-groups: reset without a topic", f"--reset-offsets {group} --to-latest --dry-run"),
        run("consumer-groups: reset neither shown nor done", f"{reset} --to-latest"),
        run("consumer-groups: reset both shown and done", f"{reset} --to-latest --dry-run --execute"),
        run("consumer-groups: reset to two places", f"{reset} --to-latest --to-earliest --dry-run"),
        run(
            "consumer-groups: reset of a group that is not there",
            "--reset-offsets --group {who}-nobody --topic {who}-set --to-latest --dry-run",
        ),
        run("consumer-groups: a shift without an offset", "--reset-offsets --group {who}-nobody --topic {who}-set --shift-by 1 --dry-run"),
        run("consumer-groups: offsets deleted", f"--delete-offsets {group} --topic {{who}}-set"),
        run("consumer-groups: offsets of a topic that is not there deleted", f"--delete-offsets {group} --topic {{who}}-nowhere"),
        run("consumer-groups: offsets deleted without a topic", f"--delete-offsets {group}"),
        run("consumer-groups: deleted", f"--delete {group}"),
        run("consumer-groups: one that is not there deleted", "--delete --group {who}-nobody"),
        run("consumer-groups: deleted with a topic", f"--delete {group} --topic t"),
        run("consumer-groups: types that are none", "--list --type cats"),
        run("consumer-groups: a state of what is described", f"--describe {group} --state stable"),
        run("consumer-groups: members of what is listed", "--list --members"),
        run("consumer-groups: no action", ""),
        run("consumer-groups: no broker", "--list", bare=True),
        run("consumer-groups: described without a group", "--describe"),
        run("consumer-groups: listed with a group", f"--list {group}"),
        run("consumer-groups: an option that is none", "--no-such-option"),
        run("consumer-groups: a bad timeout", "--list --timeout soon"),
        run("consumer-groups: help", "--help"),
        run("consumer-groups: a regular expression", "--validate-regex a.*b", bare=True),
        run("consumer-groups: a bad regular expression", "--validate-regex (a", bare=True),
        run("groups: no action", ""),
        run("groups: no broker", "--list", bare=True),
        run("groups: a type that is none", "--list --group-type cats"),
        run("groups: two filters", "--list --consumer --share"),
        run("groups: of a protocol that nobody has", "--list --protocol cats"),
    ]


def _cluster() -> list[Command]:
    partition = '{{"partitions": [{{"topic": "{0}", "partition": {1}}}]}}'
    elect = "--election-type preferred"
    return [
        run("broker-api-versions: all", ""),
        run("broker-api-versions: no broker", "", bare=True),
        run("cluster: its id", "cluster-id --bootstrap-server {bootstrap}", bare=True),
        run("cluster: its endpoints", "list-endpoints --bootstrap-server {bootstrap}", bare=True),
        run("cluster: no command", "", bare=True, ends_jvm=True, brokers=KAFKA_ONLY),
        run("cluster: a command that is none", "no-such-command", bare=True, ends_jvm=True, brokers=KAFKA_ONLY),
        run("cluster: no broker", "cluster-id", bare=True, ends_jvm=True, brokers=KAFKA_ONLY),
        run(
            "cluster: an unknown argument",
            "cluster-id --bootstrap-server {bootstrap} --no-such-option",
            bare=True,
            ends_jvm=True,
            brokers=KAFKA_ONLY,
        ),
        run(
            "cluster: an id that is no number",
            "unregister --bootstrap-server {bootstrap} --id first",
            bare=True,
            ends_jvm=True,
            brokers=KAFKA_ONLY,
        ),
        run("cluster: unregister without an id", "unregister --bootstrap-server {bootstrap}", bare=True, ends_jvm=True, brokers=KAFKA_ONLY),
        run("features: described", "describe"),
        run("features: described at a node", "describe --node-id {broker}"),
        run("features: what a release has", "version-mapping --release-version 3.9-IV0"),
        run("features: what the newest release has", "version-mapping"),
        run("features: what an unknown release has", "version-mapping --release-version 99.9"),
        run("features: dependencies", "feature-dependencies --feature eligible.leader.replicas.version=1 --feature metadata.version=20"),
        run("features: dependencies of an unknown level", "feature-dependencies --feature group.version=9"),
        run("features: dependencies of an unknown feature", "feature-dependencies --feature cats=1"),
        run("features: dependencies of half a feature", "feature-dependencies --feature cats"),
        run("features: an upgrade of nothing", "upgrade"),
        run("features: an upgrade by two ways", "upgrade --release-version 4.2-IV1 --feature group.version=1"),
        run("features: an upgrade to the same", "upgrade --feature group.version=1 --dry-run"),
        run("features: an upgrade to too much", "upgrade --feature group.version=7"),
        run("features: a downgrade", "downgrade --feature streams.version=0 --dry-run", brokers=KAFKA_ONLY),
        run("features: an unknown one disabled", "disable --feature cats"),
        run("features: an upgrade that is a downgrade", "upgrade --feature group.version=0"),
        run("features: a downgrade of what both have", "downgrade --feature transaction.version=1"),
        run("features: a downgrade that is an upgrade", "downgrade --feature transaction.version=2"),
        run("features: upgraded again", "upgrade --feature transaction.version=2 --feature group.version=1"),
        run("features: a negative level", "upgrade --feature group.version=-1"),
        run("features: disabled for a test", "disable --feature group.version --dry-run --unsafe"),
        run("cluster: one that is not there unregistered", "unregister --bootstrap-server {bootstrap} --id 99", bare=True),
        run("features: no command", "", ends_jvm=True, brokers=KAFKA_ONLY),
        run("transactions: an unknown one described", "describe --transactional-id {who}-nobody"),
        run("transactions: of a partition", "describe-producers --topic {who}-plain --partition 0"),
        run("transactions: of a partition that is not there", "describe-producers --topic {who}-nowhere --partition 0", brokers=()),
        run("transactions: none is open there", "abort --topic {who}-plain --partition 0 --start-offset 5"),
        run("transactions: abort of what", "abort --topic {who}-plain --partition 0"),
        run("transactions: abort without an epoch", "abort --topic {who}-plain --partition 0 --producer-id 5"),
        run("transactions: hanging ones of a topic", "find-hanging --topic {who}-plain"),
        run("transactions: hanging ones of what", "find-hanging"),
        run("transactions: hanging ones of a partition of what", "find-hanging --broker-id {broker} --partition 1"),
        run("transactions: an unknown one terminated", "forceTerminateTransaction --transactionalId {who}-nobody", brokers=()),
        run("transactions: those of a pattern that nobody has", "list --transactional-id-pattern nobody"),
        run("transactions: no command", ""),
        run("transactions: no broker", "list", bare=True),
        run("transactions: a partition that is no number", "describe-producers --topic t --partition first"),
        run("transactions: version", "--version", bare=True),
        run("leader-election: preferred", f"{elect} --topic {{who}}-plain --partition 0"),
        run("leader-election: unclean", "--election-type unclean --topic {who}-plain --partition 0"),
        run("leader-election: of a partition that is not there", f"{elect} --topic {{who}}-nowhere --partition 0"),
        run("leader-election: from a file", f"{elect} --path-to-json-file {{directory}}/file", file=partition.format("WHO-plain", 1)),
        run("leader-election: half a file", f"{elect} --path-to-json-file {{directory}}/file", file="{"),
        run("leader-election: a file without partitions", f"{elect} --path-to-json-file {{directory}}/file", file="{}"),
        run("leader-election: an election that is none", "--election-type fair --all-topic-partitions"),
        run("leader-election: of nothing", elect),
        run("leader-election: without a partition", f"{elect} --topic {{who}}-plain"),
        run("leader-election: a partition without a topic", f"{elect} --all-topic-partitions --partition 1"),
        run("leader-election: without a type", "--all-topic-partitions"),
    ]


def _load() -> list[Command]:
    perf = "--topic {who}-plain --num-records 500 --record-size 100 --throughput -1"
    return [
        run("producer-perf-test: some records", perf),
        run("producer-perf-test: monotonic payloads", "--topic {who}-plain --num-records 50 --payload-monotonic --throughput 1000"),
        run("producer-perf-test: with warmup", f"{perf} --warmup-records 100"),
        run("producer-perf-test: in transactions", f"{perf} --transaction-duration-ms 100"),
        run(
            "producer-perf-test: from a file",
            "--topic {who}-plain --num-records 5 --payload-file {directory}/file --throughput -1",
            file="a\nb\n",
        ),
        run("producer-perf-test: with its metrics", f"{perf} --print-metrics", distinct=True),
        run("producer-perf-test: from a file that is not there", "--topic t --num-records 5 --payload-file /no/such --throughput -1"),
        run("producer-perf-test: no payload", "--topic t --num-records 5 --throughput -1"),
        run("producer-perf-test: two payloads", "--topic t --num-records 5 --throughput -1 --record-size 1 --payload-monotonic"),
        run("producer-perf-test: no records", "--topic t --num-records 0 --record-size 1 --throughput -1"),
        run("producer-perf-test: no size", "--topic t --num-records 5 --record-size 0 --throughput -1"),
        run("producer-perf-test: records that are no number", "--topic t --num-records many --record-size 1 --throughput -1"),
        run("producer-perf-test: no topic", "--num-records 5 --record-size 1 --throughput -1"),
        run("producer-perf-test: no broker", "--topic t --num-records 5 --record-size 1 --throughput -1", bare=True),
        run("consumer-perf-test: some records", "--topic {who}-plain --num-records 500"),
        run("consumer-perf-test: more than there are", "--topic {who}-plain --num-records 5000 --timeout 500 --hide-header"),
        run("consumer-perf-test: the old name of an option", "--topic {who}-plain --messages 100 --show-detailed-stats"),
        run("consumer-perf-test: with its metrics", "--topic {who}-plain --num-records 500 --print-metrics", distinct=True),
        run("consumer-perf-test: no records", "--topic {who}-plain"),
        run("consumer-perf-test: no topic", "--num-records 5"),
        run("consumer-perf-test: no broker", "--topic t --num-records 5", bare=True),
        run("consumer-perf-test: an option that is none", "--no-such-option"),
        run("e2e-latency: some records", "--topic {who}-e2e --num-records 20 --producer-acks all --record-size 20"),
        run(
            "e2e-latency: with keys and headers",
            "--topic {who}-e2e --num-records 5 --producer-acks 1 --record-size 20 --record-key-size 5 "
            "--num-headers 2 --record-header-key-size 3 --record-header-size 4",
        ),
        run("e2e-latency: by position", "{bootstrap} {who}-e2e 5 all 20", bare=True),
        run("e2e-latency: too few words", "{bootstrap} {who}-e2e 5", bare=True),
        run("e2e-latency: no acks", "--topic t --num-records 5 --record-size 20"),
        run("e2e-latency: acks that are none", "--topic t --num-records 5 --record-size 20 --producer-acks 0"),
        run(
            "verifiable-producer: some records",
            "--topic {who}-set --max-messages 20 --acks -1 --value-prefix 7 --repeating-keys 5",
            ends_jvm=True,
        ),
        run("verifiable-producer: no topic", "--max-messages 20", ends_jvm=True, brokers=KAFKA_ONLY),
        run("get-offsets: after verifiable-producer", "--topic {who}-set"),
        run(
            "verifiable-consumer: some records",
            "--topic {who}-set --group-id {who}-v --max-messages 20 --reset-policy earliest",
            distinct=True,
            ends_jvm=True,
        ),
        run("verifiable-consumer: no group", "--topic {who}-plain", ends_jvm=True, brokers=KAFKA_ONLY),
    ]


def _unreachable() -> list[Command]:
    hurry = "default.api.timeout.ms=1000\nrequest.timeout.ms=500\n"

    def nobody(name: str, before: str, after: str = "") -> Command:
        line = f"{before} --bootstrap-server 127.0.0.1:1 --command-config {{directory}}/file {after}"
        return run(name, line, bare=True, file=hurry, brokers=KAFKA_ONLY)

    return [
        nobody("topics: of nobody", "--list"),
        nobody("configs: of nobody", "--describe --topic t"),
        nobody("consumer-groups: of nobody", "--list --timeout 1000"),
        nobody("groups: of nobody", "--list"),
        nobody("get-offsets: of nobody", ""),
        nobody("log-dirs: of nobody", "--describe"),
        nobody("cluster: of nobody", "cluster-id"),
        nobody("transactions: of nobody", "", "list"),
        nobody("features: of nobody", "", "describe"),
        run(
            "topics: by a protocol that is none",
            "--list --command-config {directory}/file",
            file="security.protocol=CATS\n",
            brokers=KAFKA_ONLY,
        ),
    ]


def _deletion() -> list[Command]:
    return [
        run("topics: deleted", "--delete --topic {who}-plain"),
        run("topics: one that is not there deleted", "--delete --topic {who}-nowhere"),
        run("topics: one that may be missing deleted", "--delete --topic {who}-nowhere --if-exists"),
        run("topics: deleted by pattern", "--delete --topic {who}.dot"),
        run("topics: listed once some are deleted", "--list --topic {who}.*"),
    ]


def _elections() -> list[Command]:
    """Of a tool that Kafka no longer has: compared with that of the last Kafka that had it."""
    tool, named = "preferred-replica-election", "--path-to-json-file {directory}/file"
    one = '{"partitions":[{"topic":"WHO-assigned","partition":0},{"topic":"WHO-assigned","partition":2}]}'
    return [
        run(f"{tool}: where it is not needed", named, file=one),
        run(f"{tool}: of all", ""),
        run(f"{tool}: of one that is not there", named, file='{"partitions":[{"topic":"WHO-nowhere","partition":0}]}'),
        run(f"{tool}: of one twice", named, file='{"partitions":[{"topic":"a","partition":0},{"topic":"a","partition":0}]}'),
        run(f"{tool}: of no partition", named, file="{}"),
        run(f"{tool}: of no topic", named, file='{"partitions":[{"partition":0}]}'),
        run(f"{tool}: of a number", named, file='{"partitions":[{"topic":7,"partition":0}]}'),
        run(f"{tool}: without a broker", "", bare=True),
        run(f"{tool}: with settings of a client and no broker", "--admin.config {directory}/file", bare=True),
        run(f"{tool}: an option that is none", "--no-such-option"),
    ]


_PARSED_OTHERWISE = ("cluster", "features", "transactions", "producer-perf-test", "verifiable-producer", "verifiable-consumer")
_OLD_STYLE = "e2e-latency"  # takes a single word for the beginning of its old arguments


def _usage() -> list[Command]:
    """What every tool answers to nothing, to what it does not know, and to questions about itself; no broker is asked."""
    variants = []
    for tool in JAVA:
        questions = {"an option that there is not": "--nothing", "its version": "--version"}
        if tool in _PARSED_OTHERWISE:  # by a library that ends the JVM
            variants += [run(f"{tool}: {name}", words, bare=True, brokers=KAFKA_ONLY, ends_jvm=True) for name, words in questions.items()]
            continue
        questions |= {"nothing at all": "", "its help": "--help"}
        if tool in (_OLD_STYLE, "streams-application-reset"):
            del questions["its help"]
        if tool == _OLD_STYLE:
            del questions["its version"]
        variants += [run(f"{tool}: {name}", words, bare=True, brokers=KAFKA_ONLY) for name, words in questions.items()]
    return variants


ELECTIONS = _elections()
USAGE = _usage()
COMMANDS = [
    command
    for command in _topics() + _configs() + _records() + _groups() + _cluster() + _load() + _unreachable() + _deletion()
    if command.brokers
]
