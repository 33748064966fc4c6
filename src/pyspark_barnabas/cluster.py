"""The requests of planning, on the driver: topics and their partitions, offsets, and commits to a group.

It has one admin client on a thread of its own, created at the first request and kept as long as the reader plans. Planning gives up a
cluster that has not answered once within ten seconds: its address is wrong, or nothing runs there. Later failures of brokers and elections
are retried (fetchOffset.numRetries, fetchOffset.retryIntervalMs, and the client's default.api.timeout.ms). It is never sent to a worker.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from barnabas.client.admin.config import KEYS
from barnabas.client.admin.topics.offsets import IsolationLevel, OffsetSpec
from barnabas.client.errors import SslAuthentication, Timeout
from barnabas.client.loop_thread import LoopThread
from barnabas.config_def import InvalidConfig
from barnabas.errors import InvalidTopic, KafkaError, UnknownTopicOrPartition
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from pyspark_barnabas.errors import ClusterError, OptionError
from pyspark_barnabas.offsets import PartitionOffsets
from pyspark_barnabas.options import BOOTSTRAP, FIRST_ANSWER_MS, KAFKA
from pyspark_barnabas.planning_admin import PlanningAdmin
from pyspark_barnabas.subscription import Subscription, Topic

if TYPE_CHECKING:
    from pyspark_barnabas.read.read_options import ReadOptions

_log = logging.getLogger(__name__)
T = TypeVar("T")

CLOSE_TIMEOUT_MS: Final = 5_000
_API_TIMEOUT: Final = "default.api.timeout.ms"
_SETTING: Final = re.compile(rf"(?<![\w.])({'|'.join(sorted((re.escape(name) for name in KEYS if '.' in name), reverse=True))})(?!\w)")
_PLUGINS: Final = ("config.providers.", "sasl.", "ssl.", "metric.reporters.")


class ClusterClient:
    """Must be closed: `with ClusterClient(settings) as cluster:`."""

    def __init__(
        self,
        settings: Mapping[str, str],
        *,
        attempts: int = 3,
        interval_ms: int = 1000,
        first_answer_ms: int | None = FIRST_ANSWER_MS,
        patience_option: str = KAFKA + _API_TIMEOUT,
    ) -> None:
        """`first_answer_ms` None: the first response has the same timeout as all others, `attempts` times default.api.timeout.ms.
        `patience_option` is the option that a user sets for a longer timeout."""
        self._settings = {name: value for name, value in settings.items() if name in KEYS or name.startswith(_PLUGINS)}
        committed = settings.get("isolation.level", "read_committed").lower() != "read_uncommitted"
        self._isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        self._attempts = attempts
        self._interval_ms = interval_ms
        self._patience_option = patience_option
        self._first_answer_ms = None if _API_TIMEOUT in settings else first_answer_ms
        self._thread: LoopThread | None = None
        self._admin: PlanningAdmin | None = None

    @classmethod
    def of(cls, options: ReadOptions) -> Self:
        """The cluster of a query, with the timeouts of its options."""
        return cls(
            options.settings,
            attempts=options.attempts,
            interval_ms=options.retry_interval_ms,
            first_answer_ms=options.first_answer_ms,
        )

    def reach(self) -> None:
        """Returns once a broker has answered. Raises ClusterError if none does in time, and OptionError if there is no such host."""
        limit_ms = self._first_answer_ms
        if limit_ms is None:
            self._retried(lambda admin: admin.reach(None))
            return
        try:
            self._run(lambda admin: admin.reach(limit_ms))
        except Timeout as error:
            raise self._no_answer(error, f" within {limit_ms} ms", f"set the option '{self._patience_option}'") from error
        self._first_answer_ms = None

    def topics(self, subscription: Subscription) -> dict[str, Topic]:
        """The topics of the subscription that exist."""
        return self._retried(lambda admin: _topics(admin, subscription))

    def offsets(self, specs: Mapping[TopicPartition, int]) -> PartitionOffsets:
        """The offsets from ListOffsets: -1 requests the latest, -2 the earliest, other values the first offset at or after a time (-1:
        none)."""
        if not specs:
            return {}
        offset_specs = {partition: OffsetSpec(timestamp) for partition, timestamp in specs.items()}

        async def ask(admin: PlanningAdmin) -> PartitionOffsets:
            result = await admin.list_offsets(offset_specs, isolation_level=self._isolation)
            return {partition: info.offset for partition, info in result.all().items()}

        return self._retried(ask)

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> Future[None]:
        """Starts a commit of offsets to a group without members."""
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
        if self._first_answer_ms is not None:
            self.reach()
        for left in range(self._attempts - 1, -1, -1):
            try:
                return self._run(ask)
            except KafkaError as error:
                if not left and isinstance(error, Timeout):
                    longer = f"raise the options 'fetchOffset.numRetries' (now {self._attempts}) or '{KAFKA}{_API_TIMEOUT}'"
                    raise self._no_answer(error, "", longer) from error
                if not left or not error.retriable or isinstance(error, UnknownTopicOrPartition):
                    raise
                _log.warning("Asking for offsets failed and is tried again: %s", error)
                time.sleep(self._interval_ms / 1000)
        raise AssertionError("there is at least one attempt")

    def _run(self, ask: Callable[[PlanningAdmin], Coroutine[Any, Any, T]]) -> T:
        try:
            return self._started().run(ask(self._client()))
        except InvalidConfig as error:  # host names are resolved when the client starts
            raise _refused(error, self._settings) from error
        except SslAuthentication as error:
            raise ClusterError(as_options(str(error))) from error

    def _no_answer(self, error: Timeout, within: str, longer: str) -> ClusterError:
        reason = as_options(str(error.__cause__ or error))
        return ClusterError(
            f"The cluster at {self._settings['bootstrap.servers']} did not answer{within}: {reason} Are the brokers running, and is the "
            f"option '{BOOTSTRAP}' right? If they may be away for longer, {longer}."
        )


async def _topics(admin: PlanningAdmin, subscription: Subscription) -> dict[str, Topic]:
    names = subscription.names()
    if names is None:
        names = frozenset(subscription.chosen(await admin.list_topics()))
    descriptions = await admin.describe_topics(sorted(names))
    for error in descriptions.errors.values():
        if not isinstance(error, UnknownTopicOrPartition | InvalidTopic):
            raise error
    topics: dict[str, Topic] = {}
    for name, description in descriptions.successes.items():
        if description.is_internal and not subscription.assigned:
            continue
        numbers = frozenset(partition.partition for partition in description.partitions)
        topics[name] = Topic(name, None if description.topic_id == Uuid.ZERO else str(description.topic_id), numbers)
    return topics


def _refused(error: InvalidConfig, settings: Mapping[str, str]) -> OptionError:
    """The client's error as an OptionError with the name of the option."""
    text = str(error)
    named = sorted((name for name in settings if name in text), key=len, reverse=True)
    return OptionError(KAFKA + named[0] if named else BOOTSTRAP, text)


def as_options(text: str) -> str:
    """The client's error text, in which settings have their names as options: kafka.security.protocol."""
    words = _SETTING.sub(rf"{KAFKA}\1", text)
    return words if words.endswith((".", "?")) else f"{words}."
