"""Run the tool that a Java class of Kafka is: `barnabas run-class kafka.tools.GetOffsetShell …`, as kafka-run-class does.

For scripts that name classes. The options for the JVM (`-daemon`, `-name NAME`, `-loggc`) are taken and have no effect.
"""

from __future__ import annotations

import sys
from argparse import REMAINDER, ArgumentParser
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from barnabas.tools.guide.suggestions import nearest

_TOOLS: Final = "org.apache.kafka.tools."
# Of each tool the classes that Kafka has had for it, the newest first.
CLASSES: Final = {
    "acls": (f"{_TOOLS}AclCommand", "kafka.admin.AclCommand"),
    "broker-api-versions": (f"{_TOOLS}BrokerApiVersionsCommand", "kafka.admin.BrokerApiVersionsCommand"),
    "client-metrics": (f"{_TOOLS}ClientMetricsCommand",),
    "cluster": (f"{_TOOLS}ClusterTool", "kafka.tools.ClusterTool"),
    "configs": ("kafka.admin.ConfigCommand",),
    "console-consumer": (f"{_TOOLS}consumer.ConsoleConsumer", "kafka.tools.ConsoleConsumer"),
    "console-producer": (f"{_TOOLS}ConsoleProducer", "kafka.tools.ConsoleProducer"),
    "consumer-groups": (f"{_TOOLS}consumer.group.ConsumerGroupCommand", "kafka.admin.ConsumerGroupCommand"),
    "consumer-perf-test": (f"{_TOOLS}ConsumerPerformance", "kafka.tools.ConsumerPerformance"),
    "delegation-tokens": (f"{_TOOLS}DelegationTokenCommand", "kafka.admin.DelegationTokenCommand"),
    "delete-records": (f"{_TOOLS}DeleteRecordsCommand", "kafka.admin.DeleteRecordsCommand"),
    "dump-log": ("kafka.tools.DumpLogSegments",),
    "e2e-latency": (f"{_TOOLS}EndToEndLatency", "kafka.tools.EndToEndLatency"),
    "features": (f"{_TOOLS}FeatureCommand", "kafka.admin.FeatureCommand"),
    "get-offsets": (f"{_TOOLS}GetOffsetShell", "kafka.tools.GetOffsetShell"),
    "groups": (f"{_TOOLS}GroupsCommand",),
    "leader-election": (f"{_TOOLS}LeaderElectionCommand", "kafka.admin.LeaderElectionCommand"),
    "log-dirs": (f"{_TOOLS}LogDirsCommand", "kafka.admin.LogDirsCommand"),
    "metadata-shell": ("org.apache.kafka.shell.MetadataShell",),
    "preferred-replica-election": ("kafka.admin.PreferredReplicaLeaderElectionCommand",),
    "producer-perf-test": (f"{_TOOLS}ProducerPerformance",),
    "reassign-partitions": (f"{_TOOLS}reassign.ReassignPartitionsCommand", "kafka.admin.ReassignPartitionsCommand"),
    "replica-verification": (f"{_TOOLS}ReplicaVerificationTool", "kafka.tools.ReplicaVerificationTool"),
    "server": ("kafka.Kafka",),
    "streams-application-reset": (f"{_TOOLS}StreamsResetter", "kafka.tools.StreamsResetter"),
    "topics": (f"{_TOOLS}TopicCommand", "kafka.admin.TopicCommand"),
    "transactions": (f"{_TOOLS}TransactionsCommand",),
    "verifiable-consumer": (f"{_TOOLS}VerifiableConsumer",),
    "verifiable-producer": (f"{_TOOLS}VerifiableProducer",),
}


def main(arguments: Sequence[str]) -> int:
    words = _without_jvm_options(arguments)
    if not words or words[0] in ("-h", "--help"):
        print("USAGE: kafka-run-class.sh [-daemon] [-name servicename] [-loggc] classname [opts]", file=sys.stderr)
        return 1
    by_class = {name: tool for tool, names in CLASSES.items() for name in names}
    tool = by_class.get(words[0])
    if tool is None:
        near = nearest(words[0], by_class)
        advice = f"did you mean {near}?" if near else "`barnabas --help` lists the tools that there are"
        print(f"barnabas: no tool here is the class {words[0]}, and there is no JVM to run it; {advice}", file=sys.stderr)
        return 1
    code: int = import_module(f"barnabas.tools.{tool.replace('-', '_')}").main(words[1:])
    return code


def build_parser() -> ArgumentParser:
    """For completion: `main` passes on what it does not know."""
    parser = ArgumentParser("barnabas run-class", description=__doc__.partition("\n")[0], allow_abbrev=False, add_help=False)
    parser.add_argument("java_class", choices=sorted(name for names in CLASSES.values() for name in names))
    parser.add_argument("words", nargs=REMAINDER)
    return parser


def _without_jvm_options(arguments: Sequence[str]) -> list[str]:
    words = list(arguments)
    while words and words[0] in ("-daemon", "-loggc", "-name"):
        del words[: 2 if words[0] == "-name" else 1]
    return words
