"""What is run with Apache Kafka's tools and with ours against a Kafka that has an authorizer, two log directories and a SASL listener.

`kafka` is its plain listener, where everybody is a super user, `sasl` the one where users log in, `controller` that of its controller;
`ours` is our broker, with an authorizer to which everybody is a super user.
"""

from __future__ import annotations

from tests.integration.tools_ours.commands import KAFKA_ONLY, Command, run

BOTH = ("ours", "kafka")
SASL_ONLY = ("sasl",)
CONTROLLER_ONLY = ("controller",)
CHANCE = "(where it was before is chance)"  # not compared
_ALICE = "--command-config {directory}/alice.conf"
_ADMIN = "--command-config {directory}/admin.conf"
_WRONG = "--command-config {directory}/wrong.conf"


def _acls() -> list[Command]:
    add = "--add --allow-principal User:bob"
    return [
        run("acls: no arguments", "", bare=True, brokers=KAFKA_ONLY),
        run("acls: help", "--help", brokers=KAFKA_ONLY),
        run("acls: version", "--version", brokers=KAFKA_ONLY),
        run("acls: an unknown option", "--nonsense", brokers=KAFKA_ONLY),
        run("acls: no broker", "--list", bare=True, brokers=KAFKA_ONLY),
        run("acls: broker and controller", "--list --bootstrap-controller localhost:1", brokers=KAFKA_ONLY),
        run("acls: no action", "--topic {who}-t", brokers=KAFKA_ONLY),
        run("acls: two actions", "--add --list", brokers=KAFKA_ONLY),
        run("acls: a rule added", f"{add} --topic {{who}}-t", brokers=BOTH),
        run("acls: a rule added twice", f"{add} --topic {{who}}-t", brokers=BOTH),
        run("acls: a prefixed rule added", f"{add} --topic {{who}}-p --resource-pattern-type prefixed", brokers=BOTH),
        run("acls: operations and hosts", f"{add} --topic {{who}}-h --operation Read --operation describeconfigs --allow-host 10.0.0.1",
            brokers=BOTH, any_order=True),
        run("acls: an operation in capitals", f"{add} --topic t --operation DESCRIBE_CONFIGS", brokers=BOTH),
        run("acls: a rule that denies", "--add --deny-principal User:eve --deny-host 10.0.0.2 --group {who}-g", brokers=BOTH),
        run("acls: for the cluster", "--add --allow-principal User:{who} --cluster --operation Alter", brokers=BOTH),
        run("acls: for tokens", f"{add} --delegation-token {{who}}-d", brokers=BOTH),
        run("acls: for users", f"{add} --user-principal User:{{who}} --operation CreateTokens", brokers=BOTH),
        run("acls: a producer", f"{add} --producer --topic {{who}}-o --transactional-id {{who}}-x", brokers=BOTH, any_order=True),
        run("acls: a consumer", f"{add} --consumer --topic {{who}}-i --group {{who}}-c", brokers=BOTH, any_order=True),
        run("acls: both", "--add --allow-principal User:{who} --producer --idempotent --consumer --topic {who}-b --group {who}-b",
            brokers=BOTH, any_order=True),
        run("acls: listed by topic", "--list --topic {who}-t", brokers=BOTH),
        run("acls: listed by match", "--list --topic {who}-prefix --resource-pattern-type match", brokers=BOTH),
        run("acls: listed by topic, many", "--list --topic {who}-b --topic {who}-h", brokers=BOTH, any_order=True),
        run("acls: listed by principal", "--list --principal User:eve --group {who}-g", brokers=BOTH),
        run("acls: listed by a principal without rules", "--list --principal User:nobody", brokers=BOTH),
        run("acls: listed by no principal", "--list --principal bob", brokers=BOTH),
        run("acls: listed where there is none", "--list --topic nowhere", brokers=BOTH),
        run("acls: an unknown pattern type", f"{add} --topic t --resource-pattern-type foo", brokers=BOTH),
        run("acls: added by a filter", f"{add} --topic t --resource-pattern-type any", brokers=BOTH),
        run("acls: added without a principal", "--add --topic t", brokers=BOTH),
        run("acls: added without a resource", f"{add}", brokers=KAFKA_ONLY),
        run("acls: --principal without --list", f"{add} --topic t --principal User:x", brokers=KAFKA_ONLY),
        run("acls: a producer without a topic", f"{add} --producer", brokers=KAFKA_ONLY),
        run("acls: idempotent without a producer", f"{add} --topic t --idempotent", brokers=KAFKA_ONLY),
        run("acls: a consumer without a group", f"{add} --consumer --topic t", brokers=KAFKA_ONLY),
        run("acls: a consumer with a cluster", f"{add} --consumer --topic t --group g --cluster", brokers=KAFKA_ONLY),
        run("acls: a producer with an operation", f"{add} --producer --topic t --operation Read", brokers=KAFKA_ONLY),
        run("acls: --list with a principal", "--list --allow-principal User:x", brokers=KAFKA_ONLY),
        run("acls: removed", "--remove --topic {who}-h --allow-principal User:bob --allow-host 10.0.0.1 --operation Read --force",
            brokers=BOTH),
        run("acls: listed after a removal", "--list --topic {who}-h", brokers=BOTH),
        run("acls: all removed", "--remove --topic {who}-h --force", brokers=BOTH),
        run("acls: listed after all are removed", "--list --topic {who}-h", brokers=BOTH),
        run("acls: by a user who may not", f"{_ALICE} --list", brokers=SASL_ONLY),
        run("acls: with a wrong password", f"{_WRONG} --list", brokers=SASL_ONLY),
        run("acls: a file that is not there", "--command-config nowhere --list", brokers=KAFKA_ONLY),
    ]  # fmt: skip


def _wrong_operations() -> list[Command]:
    kinds = {
        "topic": "--topic t", "group": "--group g", "cluster": "--cluster", "transactional id": "--transactional-id x",
        "token": "--delegation-token d", "user": "--user-principal User:u",
    }  # fmt: skip
    wrong = "--add --allow-principal User:bob --operation Foo"
    return [run(f"acls: a wrong operation on a {kind}", f"{wrong} {resource}", brokers=KAFKA_ONLY) for kind, resource in kinds.items()]


_PLAN = """{"version":1,"partitions":[{"topic":"WHO-move","partition":0,"replicas":[1],"log_dirs":["DIR"]},
{"topic":"WHO-move","partition":1,"replicas":[1],"log_dirs":["DIR"]}]}"""


def _reassignments(first_dir: str, second_dir: str) -> list[list[Command]]:
    """In stages: after each, what moves has to arrive before the next begins."""
    there, back = _PLAN.replace("DIR", second_dir), _PLAN.replace("DIR", first_dir)
    topics = '{"topics":[{"topic":"WHO-move"}],"version":1}'
    generate = "--generate --topics-to-move-json-file {directory}/file"
    execute, verify, cancel = (f"--{action} --reassignment-json-file {{directory}}/file" for action in ("execute", "verify", "cancel"))
    unknown = '{"version":1,"partitions":[{"topic":"nowhere","partition":0,"replicas":[1]}]}'
    wrong = [
        ("a file that breaks off", '{"version":1,"partitions":[\n'),
        ("a file that breaks off in an object", '{"version":1,\n "partitions":[{"topic":"t",'),
        ("an empty file", ""),
        ("a list", "[]"),
        ("another version", '{"version":2,"partitions":[]}'),
        ("no partitions", '{"version":1}'),
        ("no replicas", '{"partitions":[{"topic":"t","partition":0,"replicas":[]}]}'),
        ("a partition twice", '{"partitions":[{"topic":"t","partition":0,"replicas":[1]},{"topic":"t","partition":0,"replicas":[1]}]}'),
        ("a replica twice", '{"partitions":[{"topic":"t","partition":0,"replicas":[1,1]}]}'),
        ("too many directories", '{"partitions":[{"topic":"t","partition":0,"replicas":[1],"log_dirs":["any","any"]}]}'),
        ("a topic that is no name", '{"partitions":[{"topic":1,"partition":0,"replicas":[1]}]}'),
        ("no topic", '{"partitions":[{"partition":0,"replicas":[1]}]}'),
        ("a partition that is no number", '{"partitions":[{"topic":"t","partition":"x","replicas":[1]}]}'),
        ("a broker that is not there", '{"partitions":[{"topic":"WHO-move","partition":0,"replicas":[77]}]}'),
        ("a topic that is not there", unknown),
        ("a partition that is not there", '{"partitions":[{"topic":"WHO-move","partition":9,"replicas":[1]}]}'),
    ]
    prepared = [
        run("topics: made to be moved", "--create --topic {who}-move --replica-assignment {broker},{broker}", brokers=KAFKA_ONLY),
        run("reassign-partitions: no arguments", "", bare=True, brokers=KAFKA_ONLY),
        run("reassign-partitions: help", "--help", brokers=KAFKA_ONLY),
        run("reassign-partitions: no action", "", brokers=KAFKA_ONLY),
        run("reassign-partitions: two actions", "--list --verify", brokers=KAFKA_ONLY),
        run("reassign-partitions: no broker", "--list", bare=True, brokers=KAFKA_ONLY),
        run("reassign-partitions: broker and controller", "--list --bootstrap-controller localhost:1", brokers=KAFKA_ONLY),
        run("reassign-partitions: no file", "--verify", brokers=KAFKA_ONLY),
        run("reassign-partitions: no list of brokers", "--generate --topics-to-move-json-file x", brokers=KAFKA_ONLY),
        run("reassign-partitions: an option of another action", f"{verify} --throttle 3", brokers=KAFKA_ONLY),
        run("reassign-partitions: a throttle that is no number", f"{execute} --throttle x", file=there, brokers=KAFKA_ONLY),
        run("reassign-partitions: a file that is not there", "--verify --reassignment-json-file nowhere", brokers=KAFKA_ONLY),
        run("reassign-partitions: none listed", "--list", brokers=BOTH),
        run(f"reassign-partitions: moved to a directory {CHANCE}", execute, file=back, brokers=KAFKA_ONLY),
    ]  # fmt: skip
    moved = [
        run("reassign-partitions: generated", f"{generate} --broker-list {{broker}}", file=topics, brokers=KAFKA_ONLY),
        run("reassign-partitions: generated without racks", f"{generate} --broker-list {{broker}} --disable-rack-aware", file=topics,
            brokers=KAFKA_ONLY),
        run("reassign-partitions: generated for an unknown broker", f"{generate} --broker-list 77", file=topics, brokers=KAFKA_ONLY),
        run("reassign-partitions: generated for brokers of no number", f"{generate} --broker-list 1,x", file=topics, brokers=KAFKA_ONLY),
        run("reassign-partitions: generated for a broker twice", f"{generate} --broker-list 1,1", file=topics, brokers=KAFKA_ONLY),
        run("reassign-partitions: generated from what is no JSON", f"{generate} --broker-list 1", file="{", brokers=KAFKA_ONLY),
        run("reassign-partitions: generated for a topic twice", f"{generate} --broker-list 1", brokers=KAFKA_ONLY,
            file='{"topics":[{"topic":"t"},{"topic":"t"}]}'),
        run("reassign-partitions: generated for a topic that is not there", f"{generate} --broker-list 1", brokers=KAFKA_ONLY,
            file='{"topics":[{"topic":"nowhere"}]}'),
        run("reassign-partitions: moved to the other directory", f"{execute} --throttle 1000000 --replica-alter-log-dirs-throttle 2000000",
            file=there, brokers=KAFKA_ONLY),
        run("configs: the throttles of the topic", "--describe --entity-type topics --entity-name {who}-move", brokers=KAFKA_ONLY),
        run("configs: the throttles of the broker", "--describe --entity-type brokers --entity-name {broker}", brokers=KAFKA_ONLY,
            any_order=True),
    ]  # fmt: skip
    verified = [
        run("reassign-partitions: the old place verified", f"{verify} --preserve-throttles", file=back, brokers=KAFKA_ONLY),
        run("reassign-partitions: verified", verify, file=there, brokers=KAFKA_ONLY),
        run("configs: no throttles of the topic", "--describe --entity-type topics --entity-name {who}-move", brokers=KAFKA_ONLY),
        run("reassign-partitions: verified anywhere", verify, file=there.replace(f'"{second_dir}"', '"any"'), brokers=KAFKA_ONLY),
        run("reassign-partitions: other replicas verified", f"{verify} --preserve-throttles", brokers=KAFKA_ONLY,
            file='{"partitions":[{"topic":"WHO-move","partition":0,"replicas":[1,77]}]}'),
        run("reassign-partitions: a topic that is not there verified", verify, file=unknown, brokers=KAFKA_ONLY),
        run("reassign-partitions: cancelled where nothing moves", cancel, file=there, brokers=KAFKA_ONLY),
        run("reassign-partitions: factors kept", f"{execute} --disallow-replication-factor-change", file=there, brokers=KAFKA_ONLY),
        *(run(f"reassign-partitions: executed with {what}", execute, file=file, brokers=KAFKA_ONLY) for what, file in wrong),
        run("reassign-partitions: moved to a directory that is not there", f"{execute} --timeout 1", brokers=KAFKA_ONLY,
            file=_PLAN.replace("DIR", "/nowhere")),
    ]  # fmt: skip
    return [prepared, moved, verified]


def _tokens() -> list[Command]:
    create = "--create --max-life-time-period -1"
    return [
        run("delegation-tokens: no arguments", "", bare=True, brokers=SASL_ONLY),
        run("delegation-tokens: help", "--help", brokers=SASL_ONLY),
        run("delegation-tokens: no action", _ALICE, brokers=SASL_ONLY),
        run("delegation-tokens: no file", "--describe", brokers=SASL_ONLY),
        run("delegation-tokens: no life time", f"{_ALICE} --create", brokers=SASL_ONLY),
        run("delegation-tokens: options of another action", f"{_ALICE} {create} --hmac x", brokers=SASL_ONLY),
        run("delegation-tokens: created", f"{_ALICE} {create} --renewer-principal User:bob --renewer-principal User:carl",
            brokers=SASL_ONLY),
        run("delegation-tokens: created for another", f"{_ADMIN} {create} --owner-principal User:{{who}}", brokers=SASL_ONLY),
        run("delegation-tokens: created for a renewer that is none", f"{_ALICE} {create} --renewer-principal bob", brokers=SASL_ONLY),
        run("delegation-tokens: described", f"{_ADMIN} --describe --owner-principal User:nobody", brokers=SASL_ONLY),
        run("delegation-tokens: renewed without an HMAC", f"{_ALICE} --renew --renew-time-period -1", brokers=SASL_ONLY),
        run("delegation-tokens: an unknown one renewed", f"{_ALICE} --renew --renew-time-period -1 --hmac AAAA", brokers=SASL_ONLY),
        run("delegation-tokens: an unknown one expired", f"{_ALICE} --expire --expiry-time-period -1 --hmac AAAA", brokers=SASL_ONLY),
        run("delegation-tokens: an HMAC that is not base64", f"{_ALICE} --expire --expiry-time-period -1 --hmac ###", brokers=SASL_ONLY),
        run("delegation-tokens: a wrong password", f"{_WRONG} --describe", brokers=SASL_ONLY),
        run("delegation-tokens: without a login", "--command-config /dev/null --describe", brokers=KAFKA_ONLY),
        run("delegation-tokens: a file that is not there", "--command-config nowhere --describe", brokers=SASL_ONLY),
    ]  # fmt: skip


def _client_metrics() -> list[Command]:
    tool = "client-metrics"
    return [
        run(f"{tool}: no arguments", "", bare=True, brokers=KAFKA_ONLY),
        run(f"{tool}: help", "--help", brokers=KAFKA_ONLY),
        run(f"{tool}: an unknown option", "--nonsense", brokers=KAFKA_ONLY),
        run(f"{tool}: no action", "--name x", brokers=KAFKA_ONLY),
        run(f"{tool}: no broker", "--list", bare=True, brokers=KAFKA_ONLY),
        run(f"{tool}: altered without a name", "--alter", brokers=KAFKA_ONLY),
        run(f"{tool}: altered with two names", "--alter --name x --generate-name", brokers=KAFKA_ONLY),
        run(f"{tool}: deleted without a name", "--delete", brokers=KAFKA_ONLY),
        run(f"{tool}: listed with a name", "--list --name x", brokers=KAFKA_ONLY),
        run(f"{tool}: none listed", "--list", brokers=BOTH),
        run(f"{tool}: altered", "--alter --name m --interval 5000 --metrics a,b --match client_id=x,client_software_name=y",
            brokers=BOTH),
        run(f"{tool}: listed", "--list", brokers=BOTH),
        run(f"{tool}: described", "--describe --name m", brokers=BOTH),
        run(f"{tool}: all described", "--describe", brokers=BOTH),
        run(f"{tool}: one that is not there described", "--describe --name nowhere", brokers=BOTH),
        run(f"{tool}: the interval reset", "--alter --name m --interval= --metrics=", brokers=BOTH),
        run(f"{tool}: described after that", "--describe --name m", brokers=BOTH),
        run(f"{tool}: an interval that is no number", "--alter --name m --interval x", brokers=BOTH),
        run(f"{tool}: a wrong match", "--alter --name m --match foo=1", brokers=BOTH),
        run(f"{tool}: deleted", "--delete --name m", brokers=BOTH),
        run(f"{tool}: deleted twice", "--delete --name m", brokers=BOTH),
    ]  # fmt: skip


def _streams() -> list[Command]:
    tool = "streams-application-reset"
    app = "--application-id {who}-app"
    dry = f"{app} --input-topics {{who}}-one --dry-run"
    return [
        run("topics: an input made", "--create --topic {who}-two --partitions 2"),
        run("topics: another input made", "--create --topic {who}-one --partitions 1"),
        run("topics: an internal topic made", "--create --topic {who}-app-x-changelog --partitions 1"),
        run("topics: another internal topic made", "--create --topic {who}-app-y-repartition --partitions 1"),
        run("console-producer: the input filled", "--topic {who}-one", stdin="a\nb\nc\nd\ne\n"),
        run(f"{tool}: help", "--help", brokers=KAFKA_ONLY),
        run(f"{tool}: an unknown option", "--nonsense", brokers=KAFKA_ONLY),
        run(f"{tool}: no application", "", brokers=KAFKA_ONLY),
        run(f"{tool}: two positions", f"{app} --to-latest --to-earliest", brokers=KAFKA_ONLY),
        run(f"{tool}: a dry run", f"{app} --dry-run --input-topics {{who}}-one,{{who}}-two", any_order=True),
        run(f"{tool}: no topics", f"{app} --dry-run"),
        run(f"{tool}: internal topics that are none", f"{app} --dry-run --internal-topics {{who}}-one"),
        run(f"{tool}: some internal topics", f"{app} --dry-run --internal-topics {{who}}-app-x-changelog"),
        run(f"{tool}: a topic that is not there", f"{app} --dry-run --input-topics nowhere --intermediate-topics neither"),
        run(f"{tool}: to the end", f"{dry} --to-latest"),
        run(f"{tool}: to the beginning", f"{dry} --to-earliest"),
        run(f"{tool}: to an offset", f"{dry} --to-offset 3"),
        run(f"{tool}: to an offset past the end", f"{dry} --to-offset 30"),
        run(f"{tool}: to the very first offset", f"{dry} --to-offset 0"),
        run(f"{tool}: to an offset that is no number", f"{dry} --to-offset x"),
        run(f"{tool}: to a time", f"{dry} --to-datetime 2000-01-01T00:00:00.000"),
        run(f"{tool}: to a time in the future", f"{dry} --to-datetime 2099-01-01T00:00:00.000"),
        run(f"{tool}: to what is no time", f"{dry} --to-datetime soon"),
        run(f"{tool}: by a duration", f"{dry} --by-duration P1D"),
        run(f"{tool}: by what is no duration", f"{dry} --by-duration soon"),
        run(f"{tool}: from a file", f"{dry} --from-file {{directory}}/file", file="WHO-one,0,2\n"),
        run(f"{tool}: from a file of another format", f"{dry} --from-file {{directory}}/file", file="WHO-one,0\n"),
        run(f"{tool}: from an empty file", f"{dry} --from-file {{directory}}/file"),
        run(f"{tool}: from a file that is not there", f"{dry} --from-file nowhere"),
        run(f"{tool}: with an intermediate topic", f"{dry} --intermediate-topics {{who}}-two"),
        run(f"{tool}: shifted before there is an offset", f"{dry} --shift-by -2"),
        run(f"{tool}: executed", f"{app} --input-topics {{who}}-one,{{who}}-two --to-offset 3", any_order=True),
        run("consumer-groups: the offsets after that", "--describe --group {who}-app --offsets", any_order=True),
        run(f"{tool}: shifted", f"{dry} --shift-by -1"),
        run("topics: the internal topics are gone", "--list --topic {who}-app.*"),
        run(f"{tool}: with an old option", f"{dry} --config-file /dev/null"),
    ]  # fmt: skip


def _bad_addresses() -> list[Command]:
    """What each tool says where the address makes no sense."""
    lines = {
        "acls": "--list",
        "reassign-partitions": "--list",
        "delegation-tokens": f"{_ALICE} --describe",
        "streams-application-reset": "--application-id a",
        "replica-verification": "",
    }
    option = {"replica-verification": "--broker-list"}
    return [
        run(f"{tool}: the address {address}", f"{option.get(tool, '--bootstrap-server')} {address} {words}", bare=True, brokers=KAFKA_ONLY)
        for tool, words in lines.items()
        for address in ("nowhere", "localhost:x", "no.such.host.invalid:9092")
        if (tool, address) != ("replica-verification", "no.such.host.invalid:9092")
    ]


def _at_the_controller() -> list[Command]:
    at = "--bootstrap-controller {bootstrap}"
    lines = {
        "acls: added": "--add --allow-principal User:bob --topic {who}-controlled",
        "acls: listed": "--list --topic {who}-controlled",
        "acls: removed": "--remove --topic {who}-controlled --force",
        "reassign-partitions: listed": "--list",
        "reassign-partitions: generated": "--generate --topics-to-move-json-file x --broker-list 1",
    }
    return [run(f"{name} at the controller", f"{at} {words}", bare=True, brokers=CONTROLLER_ONLY) for name, words in lines.items()]


def stages(first_dir: str, second_dir: str) -> list[list[Command]]:
    """All commands. After each stage it is waited until no replica moves any more."""
    rest = [*_acls(), *_wrong_operations(), *_tokens(), *_client_metrics(), *_streams(), *_bad_addresses(), *_at_the_controller()]
    return [*_reassignments(first_dir, second_dir), rest]
