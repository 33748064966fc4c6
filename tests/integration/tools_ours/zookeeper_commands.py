"""What is run twice with --zookeeper: by Kafka 2.8's tool on one tree and by ours on another, both beginning with the nodes of `SEED`.

They are run in this order, and after each one both trees must hold the same. `{bootstrap}` stands for the address of the tree.
"""

from __future__ import annotations

import json

from tests.integration.tools_ours.commands import Command, run

JAVA = {
    "topics": "kafka.admin.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "reassign-partitions": "kafka.admin.ReassignPartitionsCommand",
    "preferred-replica-election": "kafka.admin.PreferredReplicaLeaderElectionCommand",
}


def _broker(port: int, rack: str) -> str:
    return (
        f'{{"features":{{}},"listener_security_protocol_map":{{"PLAINTEXT":"PLAINTEXT"}},"endpoints":["PLAINTEXT://127.0.0.1:{port}"],'
        f'"rack":"{rack}","jmx_port":-1,"port":{port},"host":"127.0.0.1","version":5,"timestamp":"1794772217805"}}'
    )


def _topic(partitions: str, topic_id: str) -> str:
    return f'{{"partitions":{partitions},"topic_id":"{topic_id}","adding_replicas":{{}},"removing_replicas":{{}},"version":3}}'


def _state(leader: int, isr: str) -> str:
    return f'{{"controller_epoch":1,"leader":{leader},"version":1,"leader_epoch":0,"isr":{isr}}}'


SEED = {
    "/brokers/ids/0": _broker(24290, "ra"),
    "/brokers/ids/1": _broker(24291, "rb"),
    "/brokers/ids/2": _broker(24292, "rc"),
    "/brokers/topics/T": _topic('{"0":[0,1],"1":[1,0]}', "pJT7rswRRRmJd_wHHRHrtw"),
    "/brokers/topics/T/partitions/0/state": _state(0, "[0,1]"),
    "/brokers/topics/T/partitions/1/state": _state(1, "[1]"),
    "/config/topics/T": '{"version":1,"config":{"max.message.bytes":"2000000","retention.ms":"123456789"}}',
    "/brokers/topics/lost": _topic('{"0":[7]}', "DQCi5GCjSm65B_pbAPmAlg"),
    "/brokers/topics/lost/partitions/0/state": _state(-1, "[7]"),
    "/brokers/topics/new.topic": '{"version":1,"partitions":{"0":[1]}}',  # of an old Kafka, and nobody leads it yet
    "/brokers/topics/__consumer_offsets": _topic('{"0":[0]}', "AQCi5GCjSm65B_pbAPmAlg"),
    "/brokers/topics/__consumer_offsets/partitions/0/state": _state(0, "[0]"),
    "/config/users/carol": '{"version":1,"config":{"producer_byte_rate":"1"}}',
    "/config/users/carol/clients/app": '{"version":1,"config":{"consumer_byte_rate":"2"}}',
    "/config/users/dave/clients/app": '{"version":1,"config":{"consumer_byte_rate":"3"}}',
    "/config/clients/<default>": '{"version":1,"config":{"request_percentage":"200.0"}}',
}


def zk(name: str, arguments: str, **more: object) -> Command:
    return run(name, f"--zookeeper {{bootstrap}} {arguments}", bare=True, **more)


def _topics() -> list[Command]:
    return [
        zk("topics: listed", "--list"),
        zk("topics: listed by name", "--list --topic T|lost"),
        zk("topics: listed without internal ones", "--list --exclude-internal"),
        zk("topics: described", "--describe"),
        zk("topics: one described", "--describe --topic T"),
        zk("topics: one described that is not there", "--describe --topic absent"),
        zk("topics: one described if it is there", "--describe --topic absent --if-exists"),
        zk("topics: under-replicated", "--describe --under-replicated-partitions"),
        zk("topics: unavailable", "--describe --unavailable-partitions"),
        zk("topics: with settings", "--describe --topics-with-overrides"),
        zk("topics: created with an assignment", "--create --topic made --replica-assignment 0:1,1:2,2:0 --config retention.ms=1000"),
        zk("topics: created", "--create --topic random --partitions 3 --replication-factor 2"),
        zk("topics: created without racks", "--create --topic random2 --partitions 1 --replication-factor 3 --disable-rack-aware --force"),
        zk("topics: created twice", "--create --topic made --partitions 1 --replication-factor 1"),
        zk("topics: created if not there", "--create --topic made --partitions 1 --replication-factor 1 --if-not-exists"),
        zk("topics: created with a dot", "--create --topic a.b --replica-assignment 0"),
        zk("topics: created with a name that collides", "--create --topic a_b --replica-assignment 0"),
        zk("topics: created with a bad name", "--create --topic no/slash --replica-assignment 0"),
        zk("topics: created with too many replicas", "--create --topic bad --partitions 1 --replication-factor 4"),
        zk("topics: created with no replicas", "--create --topic bad --partitions 1 --replication-factor 0"),
        zk("topics: created with no partitions", "--create --topic bad --partitions 0 --replication-factor 1"),
        zk("topics: created without counts", "--create --topic bad"),
        zk("topics: created with an unknown setting", "--create --topic bad --replica-assignment 0 --config no.such=1"),
        zk("topics: created with a bad value", "--create --topic bad --replica-assignment 0 --config retention.ms=soon"),
        zk("topics: created with a setting without a value", "--create --topic bad --replica-assignment 0 --config retention.ms"),
        zk("topics: created with a broker twice", "--create --topic bad --replica-assignment 0:0"),
        zk("topics: created with unequal replicas", "--create --topic bad --replica-assignment 0:1,1"),
        zk("topics: partitions added", "--alter --topic made --partitions 5"),
        zk("topics: partitions added to an old one", "--alter --topic new.topic --partitions 2"),
        zk("topics: partitions added by hand", "--alter --topic made --partitions 6 --replica-assignment 0:1,0:1,0:1,0:1,0:1,2:1"),
        zk("topics: partitions added on a broker that is not there", "--alter --topic T --partitions 3 --replica-assignment 0:1,1:0,8:9"),
        zk("topics: partitions added with another factor", "--alter --topic T --partitions 3 --replica-assignment 0,1,2"),
        zk("topics: fewer partitions", "--alter --topic made --partitions 2"),
        zk("topics: partitions added to an internal one", "--alter --topic __consumer_offsets --partitions 2"),
        zk("topics: partitions added to none", "--alter --topic absent --partitions 2"),
        zk("topics: partitions added to none if it is there", "--alter --topic absent --partitions 2 --if-exists"),
        zk("topics: settings altered", "--alter --topic T --config retention.ms=5 --config segment.bytes=2000000"),
        zk("topics: settings deleted", "--alter --topic T --delete-config max.message.bytes --delete-config flush.ms"),
        zk("topics: an unknown setting deleted", "--alter --topic T --delete-config no.such"),
        zk("topics: described after changes", "--describe --topic T|made|a.b"),
        zk("topics: deleted", "--delete --topic made"),
        zk("topics: deleted twice", "--delete --topic made"),
        zk("topics: deleted though internal", "--delete --topic __consumer_offsets"),
        zk("topics: deleted that is not there", "--delete --topic absent"),
        zk("topics: deleted that is not there, if it is", "--delete --topic absent --if-exists"),
        zk("topics: listed when marked", "--list"),
        zk("topics: described when marked", "--describe --topic made"),
        zk("topics: created when marked", "--create --topic made --replica-assignment 0"),
        zk("topics: both addresses", "--bootstrap-server localhost:1 --list"),
        zk("topics: no topic", "--create --partitions 1 --replication-factor 1"),
        zk("topics: no action", ""),
        zk("topics: under min isr", "--describe --under-min-isr-partitions"),
        zk("topics: two reports", "--describe --under-replicated-partitions --unavailable-partitions"),
        zk("topics: settings deleted of a new one", "--create --topic x --replica-assignment 0 --delete-config retention.ms"),
        zk("topics: assignment and count", "--create --topic x --replica-assignment 0 --partitions 1"),
    ]


def _configs() -> list[Command]:
    return [
        zk("configs: of all topics", "--describe --entity-type topics", any_order=True),
        zk("configs: of a topic", "--describe --entity-type topics --entity-name T"),
        zk("configs: of a topic, briefly", "--describe --topic T"),
        zk("configs: of no topic", "--describe --topic absent"),
        zk(
            "configs: a topic altered",
            "--alter --topic T --add-config cleanup.policy=[compact,delete],flush.ms=9 --delete-config retention.ms",
        ),
        zk("configs: a topic's unknown setting", "--alter --topic T --add-config no.such=1"),
        zk("configs: a topic's bad value", "--alter --topic T --add-config flush.ms=soon"),
        zk("configs: a setting deleted that is not there", "--alter --topic T --delete-config retention.bytes"),
        zk("configs: of a topic that is not there", "--alter --topic absent --add-config flush.ms=1"),
        zk("configs: a client", "--alter --client c/1 --add-config producer_byte_rate=1024,consumer_byte_rate=7"),
        zk("configs: all clients", "--alter --client-defaults --add-config request_percentage=50.5"),
        zk("configs: clients described", "--describe --entity-type clients", any_order=True),
        zk("configs: the default of clients", "--describe --client-defaults"),
        zk("configs: a client's unknown setting", "--alter --client c1 --add-config foo=1"),
        zk("configs: a client's bad value", "--alter --client c1 --add-config producer_byte_rate=much"),
        zk("configs: a user's client", "--alter --user ali~ce --client c1 --add-config producer_byte_rate=5"),
        zk("configs: a user's client, the other way round", "--alter --client c2 --user-defaults --add-config producer_byte_rate=5"),
        zk("configs: a user", "--alter --entity-type users --entity-name bob --add-config consumer_byte_rate=3"),
        zk("configs: a password", "--alter --user bob --add-config SCRAM-SHA-256=[iterations=4096,password=x],SCRAM-SHA-512=[password=y]"),
        zk("configs: a password in too few rounds", "--alter --user bob --add-config SCRAM-SHA-256=[iterations=5,password=x]"),
        zk("configs: no password", "--alter --user bob --add-config SCRAM-SHA-256=x"),
        zk("configs: a password for all", "--alter --user-defaults --add-config SCRAM-SHA-256=[password=x]"),
        zk("configs: users described", "--describe --entity-type users", any_order=True),
        zk("configs: clients of all users", "--describe --entity-type users --entity-type clients", any_order=True),
        zk("configs: clients of a user", "--describe --entity-type users --entity-name carol --entity-type clients"),
        zk("configs: a client of a user", "--describe --user carol --client app"),
        zk("configs: a password deleted", "--alter --user bob --delete-config SCRAM-SHA-512"),
        zk("configs: a broker's throttle", "--alter --broker 1 --add-config leader.replication.throttled.rate=1000"),
        zk("configs: a broker's bad throttle", "--alter --broker 1 --add-config leader.replication.throttled.rate=fast"),
        zk("configs: a running broker", "--alter --broker 1 --add-config log.cleaner.threads=2"),
        zk("configs: all brokers while some run", "--alter --broker-defaults --add-config log.cleaner.threads=2"),
        zk("configs: a broker that does not run", "--alter --broker 9 --add-config log.cleaner.threads=2,background.threads=3"),
        zk("configs: a static setting", "--alter --broker 9 --add-config zookeeper.connect=x"),
        zk("configs: brokers described", "--describe --entity-type brokers", any_order=True),
        zk("configs: an address", "--alter --ip 127.0.0.1 --add-config connection_creation_rate=5"),
        zk("configs: no address", "--alter --ip not.a.host.invalid --add-config connection_creation_rate=5"),
        zk("configs: a negative rate", "--alter --ip 127.0.0.1 --add-config connection_creation_rate=-5"),
        zk("configs: addresses described", "--describe --entity-type ips"),
        zk("configs: loggers", "--describe --entity-type broker-loggers --entity-name 0"),
        zk("configs: everything", "--describe --topic T --all"),
        zk("configs: both addresses", "--bootstrap-server localhost:1 --describe --topic T"),
        zk("configs: no entity", "--describe"),
        zk("configs: a broker that is no number", "--describe --entity-type brokers --entity-name one"),
        zk("configs: two topics", "--describe --topic T --entity-type topics"),
        zk("configs: no name", "--alter --entity-type topics --add-config flush.ms=1"),
        zk(
            "configs: a user's client without a name",
            "--alter --entity-type users --entity-name u --entity-type clients --add-config producer_byte_rate=1",
        ),
        zk("configs: nothing to do", "--alter --topic T"),
        zk("configs: no action", "--topic T"),
    ]


def _plan(*partitions: tuple[str, int, list[int]]) -> str:
    return json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": each, "replicas": to} for topic, each, to in partitions]})


_MOVE = _plan(("T", 0, [2, 1]), ("lost", 0, [0, 2]))
_DIRS = '{"version":1,"partitions":[{"topic":"T","partition":0,"replicas":[0,1],"log_dirs":["/a","any"]}]}'
_FILE = "--reassignment-json-file {directory}/file"
_TOPICS = "--topics-to-move-json-file {directory}/file --broker-list"


def _reassignments() -> list[Command]:
    tool = "reassign-partitions"
    topics = '{"topics":[{"topic":"lost"}],"version":1}'
    return [
        zk(f"{tool}: generated for one broker", f"--generate {_TOPICS} 2", file=topics),
        zk(f"{tool}: generated for too few", f"--generate {_TOPICS} 2 --disable-rack-aware", file='{"topics":[{"topic":"T"}]}'),
        zk(f"{tool}: generated for none", f"--generate {_TOPICS} 0,1", file='{"topics":[{"topic":"absent"}]}'),
        zk(f"{tool}: generated for a broker twice", f"--generate {_TOPICS} 1,1", file=topics),
        zk(f"{tool}: verified before", f"--verify {_FILE}", file=_MOVE),
        zk(f"{tool}: of a partition that is not there", f"--execute {_FILE}", file=_plan(("T", 9, [0]))),
        zk(f"{tool}: to a broker that is not there", f"--execute {_FILE}", file=_plan(("T", 0, [8, 9]))),
        zk(f"{tool}: to a broker twice", f"--execute {_FILE}", file=_plan(("T", 0, [0, 0]))),
        zk(f"{tool}: nothing", f"--execute {_FILE}", file=_plan()),
        zk(f"{tool}: log directories", f"--execute {_FILE}", file=_DIRS),
        zk(f"{tool}: log directories verified", f"--verify {_FILE}", file=_DIRS),
        zk(f"{tool}: executed with a throttle", f"--execute {_FILE} --throttle 1000000", file=_MOVE),
        zk(f"{tool}: executed twice", f"--execute {_FILE}", file=_MOVE),
        zk(f"{tool}: verified on the way", f"--verify {_FILE}", file=_MOVE),
        zk(f"{tool}: cancelled", f"--cancel {_FILE}", file=_MOVE),
        zk(f"{tool}: listed", "--list"),
        zk(f"{tool}: in addition", f"--execute {_FILE} --additional", file=_MOVE),
        zk(f"{tool}: with a timeout", f"--execute {_FILE} --timeout 1000", file=_MOVE),
        zk(f"{tool}: without a plan", "--execute"),
        zk(f"{tool}: without an action", ""),
    ]


# What a controller would have written when it was done.
MOVED = {
    "/admin/reassign_partitions": None,
    "/brokers/topics/T": _topic('{"0":[2,1],"1":[1,0]}', "pJT7rswRRRmJd_wHHRHrtw"),
}
AFTER_MOVE = [
    zk("reassign-partitions: verified after, throttles kept", f"--verify {_FILE} --preserve-throttles", file=_MOVE),
    zk("reassign-partitions: verified after", f"--verify {_FILE}", file=_MOVE),
    zk("reassign-partitions: verified again", f"--verify {_FILE}", file=_MOVE),
    zk("reassign-partitions: executed without a throttle", f"--execute {_FILE}", file=_plan(("T", 1, [0, 1]))),
    zk(
        "preferred-replica-election: of some",
        "--path-to-json-file {directory}/file",
        file='{"partitions":[{"topic":"T","partition":0},{"topic":"T","partition":9},{"topic":"lost","partition":0}]}',
    ),
    zk("preferred-replica-election: while one is asked for", ""),
    zk("preferred-replica-election: of none", "--path-to-json-file {directory}/file", file="{}"),
    zk("preferred-replica-election: a file that is no JSON", "--path-to-json-file {directory}/file", file="{"),
    zk("preferred-replica-election: both addresses", "--bootstrap-server localhost:1"),
    run("preferred-replica-election: no address", "", bare=True),
]
BEFORE_MOVE = [*_topics(), *_configs(), *_reassignments()]
