"""The throttles of a reassignment: set as reassign-partitions sets them, and found and removed by any later run.

The lists of topics are set first and removed last. So a list that exists shows that throttles are left, also after a crash in between.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.administration import replica_moves
from barnabas.tools.administration.status_text import size_text
from barnabas.tools.balancing.plan import Plan
from barnabas.tools.balancing.sampling import live_nodes
from barnabas.tools.command_line.failures import BadArgument, ToolError

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

RATE_DEFAULT: Final = 50 * 2**20
RATE_MIN: Final = 1024  # as reassign-partitions says: at least 1 KB/s
_ALL: Final = "*"
_HEADROOM: Final = 2  # times the traffic of the replicas that move: copies need the rest


def parse_rate(text: str) -> int:
    """The value of --throttle."""
    if not text.isascii() or not text.isdigit() or int(text) < RATE_MIN:
        raise BadArgument(
            f"--throttle takes bytes a second, at least {RATE_MIN}, not {text}; "
            f"without it copies get {RATE_DEFAULT} ({size_text(RATE_DEFAULT)}/s)"
        )
    return int(text)


def rate_for(plan: Plan, given: int | None) -> int:
    """The throttle of a plan. A follower has to get what producers write meanwhile too, or it never catches up."""
    broker, traffic = max(plan.receivers.items(), key=lambda row: (row[1], row[0]), default=(-1, 0))
    if given is None:
        return max(RATE_DEFAULT, _HEADROOM * traffic)
    if given <= traffic:
        raise ToolError(
            f"--throttle {given} is not more than the {traffic} bytes a second that producers write to the replicas that move to broker "
            f"{broker}, so they would never catch up: take at least {_HEADROOM * traffic}"
        )
    return given


class Throttles:
    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def set(self, moves: replica_moves.Moves, rate: int, alive: Collection[int]) -> None:
        """The settings of a broker are changed at the broker itself, so brokers that are not alive are left out."""
        self._alter("TOPIC", replica_moves.topic_throttles(moves))
        brokers = [broker for broker in replica_moves.moving_brokers(moves) if broker in alive]
        self._alter("BROKER", replica_moves.broker_throttles(brokers, rate))

    def left(self) -> list[str]:
        """The topics with lists of throttled replicas. A list `*` is an operator's own and is not counted."""
        from barnabas.client.admin.cluster.config_entries import ConfigResource, ConfigResourceType

        topics = sorted(self._admin.list_topics(list_internal=True))
        configs = self._admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic) for topic in topics]).successes
        return [
            resource.name
            for resource, config in configs.items()
            if any(name in config and (config[name].value or _ALL) != _ALL for name in replica_moves.TOPIC_THROTTLES)
        ]

    def remove(self) -> list[str]:
        """Removes the rates of all brokers, then the lists of the topics that have one. Returns these topics."""
        topics = self.left()
        if topics:
            brokers = [node.id for node in live_nodes(self._admin)]
            self._alter("BROKER", {str(broker): dict.fromkeys(replica_moves.REPLICATION_THROTTLES) for broker in brokers})
            self._alter("TOPIC", {topic: dict.fromkeys(replica_moves.TOPIC_THROTTLES) for topic in topics})
        return topics

    def _alter(self, kind: str, settings: Mapping[str, Mapping[str, str | None]]) -> None:
        """Sets settings of topics or brokers; None removes one."""
        from barnabas.client.admin.cluster.config_entries import ConfigResource, ConfigResourceType
        from barnabas.client.admin.cluster.configs import AlterConfigOp, OpType

        if settings:
            self._admin.incremental_alter_configs(
                {
                    ConfigResource(ConfigResourceType[kind], name): [
                        AlterConfigOp(key, value, OpType.DELETE if value is None else OpType.SET) for key, value in values.items()
                    ]
                    for name, values in settings.items()
                }
            ).all()
