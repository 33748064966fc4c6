"""The commands of Apache Kafka's tools for groups, run against both brokers in this order: what one changes, later ones see.

They find what stage.py has made: groups that live and groups that have only offsets.
"""

from __future__ import annotations

from tests.integration.groups.stage import BUSY, EMPTY, EMPTY_CONSUMER, LIVE, ONE, START_MS, STATIC, THREE
from tests.integration.tools.commands import CONSUMER, TOOLS, Command, command

GROUPS = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
ALL_GROUPS = f"{TOOLS}.GroupsCommand"
PERFORMANCE = f"{TOOLS}.ConsumerPerformance"
VERIFIABLE = f"{TOOLS}.VerifiableConsumer"
MIDDLE = "2023-11-14T22:13:25.000"  # START_MS and five seconds
assert START_MS == 1_700_000_000_000


def groups(name: str, arguments: str, *, file: str = "") -> Command:
    return command(f"consumer-groups: {name}", GROUPS, arguments, file=file)


def _lists() -> list[Command]:
    return [
        groups("listed", "--list"),
        groups("listed with states", "--list --state"),
        groups("listed with types", "--list --type"),
        groups("listed with states and types", "--list --state --type"),
        groups("those in a state listed", "--list --state Empty"),
        groups("those in some states listed", "--list --state Stable,Empty"),
        groups("those of a type listed", "--list --type consumer"),
        groups("those of another type listed", "--list --type classic"),
        groups("those in a state that is none listed", "--list --state Bored"),
        groups("those of a type that is none listed", "--list --type modern"),
        command("groups: listed", ALL_GROUPS, "--list"),
        command("groups: those of a type listed", ALL_GROUPS, "--list --group-type classic"),
        command("groups: those of a protocol listed", ALL_GROUPS, "--list --protocol consumer"),
        command("groups: those of consumers listed", ALL_GROUPS, "--list --consumer"),
        command("groups: those of streams listed", ALL_GROUPS, "--list --streams"),
    ]


def _descriptions() -> list[Command]:
    views = {"offsets": "", "offsets verbosely": "--verbose", "members": "--members", "members verbosely": "--members --verbose"}
    views |= {"state": "--state", "state verbosely": "--state --verbose"}
    described = [
        groups(f"{view} of {group} described", f"--describe --group {group} {option}")
        for group in (EMPTY, EMPTY_CONSUMER, LIVE, STATIC, BUSY, "nowhere")
        for view, option in views.items()
    ]
    return [
        *described,
        groups("several described", f"--describe --group {EMPTY} --group {LIVE}"),
        groups("states of all described", "--describe --all-groups --state"),
    ]


def _resets() -> list[Command]:
    def reset(name: str, how: str, *, group: str = EMPTY, file: str = "") -> Command:
        return groups(f"reset: {name}", f"--reset-offsets --group {group} {how}", file=file)

    topic, one = f"--topic {THREE}", f"--topic {THREE}:1"
    return [
        reset("to the earliest, as a plan", f"{topic} --to-earliest --dry-run"),
        reset("without saying whether to", f"{topic} --to-earliest"),
        reset("to the earliest", f"{topic} --to-earliest --execute"),
        reset("to the latest", f"{topic} --to-latest --execute"),
        reset("to an offset", f"{topic} --to-offset 4 --execute"),
        reset("to an offset past the end", f"{topic} --to-offset 40 --execute"),
        reset("of one partition", f"{one} --to-offset 2 --execute"),
        reset("forwards", f"{topic} --shift-by 3 --execute"),
        reset("backwards", f"{one} --shift-by -1 --execute"),
        reset("back past the beginning", f"{topic} --shift-by -100 --execute"),
        reset("to a time", f"{topic} --to-datetime {MIDDLE} --execute"),
        reset("by a duration within which nothing came", f"{topic} --by-duration PT1S --execute"),
        reset("by a duration that is longer than all", f"{topic} --by-duration P10000D --execute"),
        reset("by a duration that is longer than time", f"{topic} --by-duration P36500D --execute"),
        reset("to where it is", f"{topic} --to-current --execute"),
        reset("of all topics, as a plan", "--all-topics --to-earliest --dry-run"),
        reset("of all topics, exported", "--all-topics --to-earliest --dry-run --export"),
        reset("of two topics", f"--topic {THREE}:0,2 --topic {ONE} --to-offset 1 --execute"),
        reset("from a file", "--from-file {directory}/file --execute", file=f"{THREE},0,6\n{THREE},2,7\n{ONE},0,3\n"),
        reset("from a file that is no plan", "--from-file {directory}/file --execute", file="nonsense\n"),
        reset("of a topic that is not there", "--topic nowhere --to-earliest --execute"),
        reset("of a partition that is not there", f"--topic {THREE}:9 --to-earliest --execute"),
        reset("of a group that lives", f"{topic} --to-earliest --execute", group=LIVE),
        reset("of a group of KIP-848 that lives", f"{topic} --to-earliest --execute", group=BUSY),
        reset("of an empty group of KIP-848", f"{topic} --to-offset 2 --execute", group=EMPTY_CONSUMER),
        reset("of a group that is made by it", f"{topic} --to-offset 5 --execute", group="made"),
        groups("reset: of all groups, as a plan", f"--reset-offsets --all-groups {topic} --to-earliest --dry-run"),
        groups("described once reset", f"--describe --group {EMPTY}"),
        groups("of KIP-848 described once reset", f"--describe --group {EMPTY_CONSUMER}"),
        groups("made by a reset described", "--describe --group made --state"),
    ]


def _deletions() -> list[Command]:
    return [
        groups("offsets of a topic deleted", f"--delete-offsets --group {EMPTY} --topic {ONE}"),
        groups("offsets of a partition deleted", f"--delete-offsets --group {EMPTY} --topic {THREE}:2"),
        groups("offsets of a topic that is not there deleted", f"--delete-offsets --group {EMPTY} --topic nowhere"),
        groups("offsets of a group that is not there deleted", f"--delete-offsets --group nowhere --topic {ONE}"),
        groups("offsets that a member subscribes to deleted", f"--delete-offsets --group {LIVE} --topic {THREE}"),
        groups("offsets that a member of KIP-848 subscribes to deleted", f"--delete-offsets --group {BUSY} --topic {THREE}"),
        groups("offsets that no member subscribes to deleted", f"--delete-offsets --group {LIVE} --topic {ONE}"),
        groups("described once offsets are deleted", f"--describe --group {EMPTY}"),
        groups("one that is empty deleted", f"--delete --group {EMPTY}"),
        groups("one of KIP-848 that is empty deleted", f"--delete --group {EMPTY_CONSUMER}"),
        groups("one that lives deleted", f"--delete --group {LIVE}"),
        groups("one of KIP-848 that lives deleted", f"--delete --group {BUSY}"),
        groups("one that is not there deleted", "--delete --group nowhere"),
        groups("described once deleted", f"--describe --group {EMPTY}"),
        groups("listed once some are deleted", "--list"),
    ]


def _consumers() -> list[Command]:
    def console(name: str, arguments: str) -> Command:
        return command(f"console-consumer: {name}", CONSUMER, arguments)

    kip_848 = "--consumer-property group.protocol=consumer"
    once_more = "--timeout-ms 2000"
    perf = f"--topic {THREE} --num-records 30 --timeout 20000"
    verifiable = f"--topic {THREE} --max-messages 30 --reset-policy earliest"
    return [
        console("of a group", f"--topic {ONE} --group console --from-beginning --max-messages 5"),
        console("of a group that has read all", f"--topic {ONE} --group console --from-beginning {once_more}"),
        console("of a group of KIP-848", f"--topic {ONE} --group console-848 --from-beginning --max-messages 5 {kip_848}"),
        console("of a group of KIP-848 that has read all", f"--topic {ONE} --group console-848 {once_more} {kip_848}"),
        console("of topics by pattern", f"--include {ONE[:-1]}. --group console-pattern --from-beginning --max-messages 5"),
        console(
            "of topics by pattern with KIP-848",
            f"--include {ONE[:-1]}. --group console-848-pattern --from-beginning --max-messages 5 {kip_848}",
        ),
        console("without a group's name", f"--topic {ONE} --from-beginning --max-messages 5"),
        groups("of console consumers described", "--describe --group console"),
        command("consumer-perf-test", PERFORMANCE, f"{perf} --group perf"),
        command("consumer-perf-test: with KIP-848", PERFORMANCE, f"{perf} --group perf-848 --command-property group.protocol=consumer"),
        command("verifiable-consumer", VERIFIABLE, f"{verifiable} --group-id verifiable", own_process=True),
        command(
            "verifiable-consumer: static", VERIFIABLE, f"{verifiable} --group-id verifiable-2 --group-instance-id one", own_process=True
        ),
        command(
            "verifiable-consumer: with KIP-848",
            VERIFIABLE,
            f"{verifiable} --group-id verifiable-848 --group-protocol consumer",
            own_process=True,
        ),
        groups("of verifiable consumers described", "--describe --group verifiable"),
        groups("of verifiable consumers with KIP-848 described", "--describe --group verifiable-848"),
    ]


COMMANDS = _lists() + _descriptions() + _resets() + _deletions() + _consumers()
