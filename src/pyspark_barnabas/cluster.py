"""What planning asks of a cluster, on the driver: topics and their partitions, offsets, and commits to a group.

One admin client on a thread of its own, made when it is first needed and kept as long as the reader plans. Broker losses and elections are
waited out (fetchOffset.numRetries, fetchOffset.retryIntervalMs, and the client's own default.api.timeout.ms). It never goes to a worker.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from barnabas.client.admin.config import KEYS
from barnabas.client.admin.offsets import IsolationLevel, OffsetSpec
from barnabas.client.errors import Timeout
from barnabas.client.loop_thread import LoopThread
from barnabas.config_def import InvalidConfig
from barnabas.errors import InvalidTopic, KafkaError, UnknownTopicOrPartition
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from pyspark_barnabas.errors import ClusterError, OptionError
from pyspark_barnabas.options import BOOTSTRAP, KAFKA
from pyspark_barnabas.planning_admin import PlanningAdmin
from pyspark_barnabas.read.offsets import PartitionOffsets
from pyspark_barnabas.read.subscription import Subscription, Topic

_log = logging.getLogger(__name__)
T = TypeVar("T")

CLOSE_TIMEOUT_MS: Final = 5_000
_PLUGINS: Final = ("config.providers.", "sasl.", "ssl.", "metric.reporters.")


class Cluster:
    """To be closed; `with Cluster(settings) as cluster:`."""

    def __init__(self, settings: Mapping[str, str], *, attempts: int = 3, interval_ms: int = 1000) -> None:
        self._settings = {name: value for name, value in settings.items() if name in KEYS or name.startswith(_PLUGINS)}
        committed = settings.get("isolation.level", "read_committed").lower() != "read_uncommitted"
        self._isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        self._attempts = attempts
        self._interval_ms = interval_ms
        self._thread: LoopThread | None = None
        self._admin: PlanningAdmin | None = None

    def topics(self, subscription: Subscription) -> dict[str, Topic]:
        """Those of the subscription that there are."""
        return self._retried(lambda admin: _topics(admin, subscription))

    def offsets(self, specs: Mapping[TopicPartition, int]) -> PartitionOffsets:
        """The offsets that are asked for in ListOffsets: -1 the latest, -2 the earliest, else the first at or after a time (-1: none)."""
        if not specs:
            return {}
        wanted = {partition: OffsetSpec(timestamp) for partition, timestamp in specs.items()}

        async def ask(admin: PlanningAdmin) -> PartitionOffsets:
            found = await admin.list_offsets(wanted, isolation_level=self._isolation)
            return {partition: info.offset for partition, info in found.all().items()}

        return self._retried(ask)

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> Future[None]:
        """Begins to commit offsets to a group that has no members."""
        return self._started().submit(self._client().commit(group_id, offsets))

    def close(self) -> None:
        thread, admin = self._thread, self._admin
        self._thread = self._admin = None
        if thread is None:
            return
        try:
            if admin is not None:
                thread.run(admin.close(0), CLOSE_TIMEOUT_MS / 1000)
        except KafkaError as error:
            _log.debug("Closing the admin client: %s", error)
        finally:
            thread.close(CLOSE_TIMEOUT_MS / 1000)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _client(self) -> PlanningAdmin:
        if self._admin is None:
            try:
                self._admin = PlanningAdmin(self._settings)
            except InvalidConfig as error:
                raise _refused(error, self._settings) from error
        return self._admin

    def _started(self) -> LoopThread:
        if self._thread is None:
            self._thread = LoopThread("barnabas-spark-planner")
            self._thread.start()
        return self._thread

    def _retried(self, ask: Callable[[PlanningAdmin], Coroutine[Any, Any, T]]) -> T:
        admin = self._client()
        for left in range(self._attempts - 1, -1, -1):
            try:
                return self._started().run(ask(admin))
            except KafkaError as error:
                if not left and isinstance(error, Timeout):
                    raise self._no_answer(error) from error
                if not left or not error.retriable or isinstance(error, UnknownTopicOrPartition):
                    raise
                _log.warning("Asking for offsets failed and is tried again: %s", error)
                time.sleep(self._interval_ms / 1000)
        raise AssertionError("there is at least one attempt")

    def _no_answer(self, error: Timeout) -> ClusterError:
        return ClusterError(
            f"The cluster at {self._settings['bootstrap.servers']} did not answer: {error}. Are the brokers running, and is the option "
            f"'{BOOTSTRAP}' right? If they may be away for longer, raise the options 'fetchOffset.numRetries' (now {self._attempts}) or "
            "'kafka.default.api.timeout.ms'."
        )


async def _topics(admin: PlanningAdmin, subscription: Subscription) -> dict[str, Topic]:
    names = subscription.names()
    if names is None:
        names = frozenset(subscription.chosen(await admin.list_topics()))
    found = await admin.describe_topics(sorted(names))
    for error in found.errors.values():
        if not isinstance(error, UnknownTopicOrPartition | InvalidTopic):
            raise error
    topics: dict[str, Topic] = {}
    for name, description in found.successes.items():
        if description.is_internal and not subscription.assigned:
            continue
        numbers = frozenset(partition.partition for partition in description.partitions)
        topics[name] = Topic(name, None if description.topic_id == Uuid.ZERO else str(description.topic_id), numbers)
    return topics


def _refused(error: InvalidConfig, settings: Mapping[str, str]) -> OptionError:
    """The client's words, with the option that they are about."""
    text = str(error)
    named = sorted((name for name in settings if name in text), key=len, reverse=True)
    return OptionError(KAFKA + named[0] if named else BOOTSTRAP, text)
