"""Commits, with a coordinator whose answers are written down beforehand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, cast

import pytest

from barnabas.client.clock import SystemClock
from barnabas.client.consumer.interceptors import ConsumerInterceptor, ConsumerInterceptors
from barnabas.client.consumer.membership.coordinator import CoordinatorRequestManager, start
from barnabas.client.consumer.membership.group_metrics import CommitMetrics
from barnabas.client.consumer.offsets.commits import Commits, CommitSettings
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.consumer.offsets.offset_messages import NO_MEMBER, Identity
from barnabas.client.consumer.offsets.offset_reset import LATEST
from barnabas.client.consumer.offsets.subscription_state import SubscriptionState
from barnabas.client.errors import (
    CommitFailed,
    CoordinatorNotAvailable,
    Disconnected,
    FencedInstanceId,
    GroupAuthorization,
    IllegalArgument,
    KafkaError,
    OffsetMetadataTooLarge,
    RetriableCommitFailed,
    StaleMemberEpoch,
    Timeout,
    TopicAuthorization,
    UnknownTopicId,
    UnstableOffsetCommit,
)
from barnabas.client.metrics.metrics import Metrics
from barnabas.client.network.backoff import ExponentialBackoff
from barnabas.client.network.metadata import Metadata
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.offset_commit_request import OffsetCommitRequest
from barnabas.protocol.messages.offset_commit_response import OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic
from barnabas.protocol.messages.offset_fetch_request import OffsetFetchRequest
from barnabas.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests.unit.client.consumer.paper_network import TOPIC_ID, Scene

P = TopicPartition("t", 0)
CLOCK = SystemClock()
FIVE = {P: OffsetAndMetadata(5)}

Answer = Message | KafkaError
Offsets = dict[TopicPartition, OffsetAndMetadata]


class Scripted:
    """Answers in order; the last one again and again. What was sent is kept."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.sent: list[Message] = []
        self.unknown: list[object] = []
        self.node: object | None = object()
        self.lookup: KafkaError | None = None

    async def ensure_ready(self, deadline_ms: int) -> bool:
        return CLOCK.monotonic_ms() < deadline_ms

    def look_up(self) -> asyncio.Task[None]:
        async def find() -> None:
            if self.lookup is not None:
                raise self.lookup

        return start(find())

    async def send(
        self,
        kind: object,
        build: Callable[[int], Message],
        expected: object,
        *,
        timeout_ms: int | None = None,
        max_version: int | None = None,
    ) -> Message:
        self.sent.append(build(10 if max_version is None else max_version))
        await asyncio.sleep(0)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    def note(self, error: KafkaError) -> None:
        if isinstance(error, CoordinatorNotAvailable):
            self.mark_unknown(error)

    def mark_unknown(self, reason: object) -> None:
        self.unknown.append(reason)

    def timeout(self, message: str) -> Timeout:
        return Timeout(message)


class Member:
    def __init__(self) -> None:
        self.identity: Identity | KafkaError = Identity(1, "me")

    def commit_identity(self) -> Identity:
        if isinstance(self.identity, KafkaError):
            raise self.identity
        return self.identity

    def commit_refused(self, error: KafkaError, sent: Identity) -> KafkaError:
        return error

    def fetch_identity(self) -> Identity:
        return NO_MEMBER


def committed(code: int = 0) -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=[OffsetCommitResponsePartition(0, code)])])


def fetched(offset: int, code: int = 0, group_code: int = 0) -> OffsetFetchResponse:
    row = OffsetFetchResponsePartitions(0, offset, -1, "", code)
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup("g", [OffsetFetchResponseTopics(name="t", partitions=[row])], group_code)])


class Rig:
    def __init__(
        self,
        *answers: Answer,
        auto_commit: bool = False,
        interceptors: ConsumerInterceptors | None = None,
        metadata: Metadata | None = None,
    ) -> None:
        self.coordinator = Scripted(*answers)
        self.member = Member()
        self.subscriptions = SubscriptionState(LATEST)
        self.told: list[tuple[int, Exception | None]] = []
        self.commits = Commits(
            CommitSettings("g", auto_commit, 0, 1),
            cast("CoordinatorRequestManager", self.coordinator),
            self.subscriptions,
            self.member,
            clock=CLOCK,
            backoff=ExponentialBackoff(1, 2),
            interceptors=interceptors or ConsumerInterceptors(),
            metrics=CommitMetrics(Metrics(CLOCK)),
            metadata=metadata,
        )

    def note(self, offsets: Offsets, error: Exception | None) -> None:
        self.told.append((offsets[P].offset, error))


def soon() -> int:
    return CLOCK.monotonic_ms() + 10_000


def run(work: Callable[[], Coroutine[Any, Any, object]] | Awaitable[object]) -> Any:
    async def main() -> object:
        return await (work() if callable(work) else work)

    return asyncio.run(main())


# Commits that the application waits for


def test_a_commit_carries_who_commits_what() -> None:
    rig = Rig(committed())
    run(rig.commits.commit({P: OffsetAndMetadata(5, "why", 3)}, soon()))
    (request,) = rig.coordinator.sent
    assert isinstance(request, OffsetCommitRequest)
    (row,) = request.topics[0].partitions
    assert (request.group_id, request.generation_id_or_member_epoch, request.member_id) == ("g", 1, "me")
    assert (row.committed_offset, row.committed_leader_epoch, row.committed_metadata) == (5, 3, "why")


@pytest.mark.parametrize(
    "first",
    [
        Disconnected("gone"),
        committed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        committed(ErrorCode.NOT_COORDINATOR),
        committed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        committed(ErrorCode.STALE_MEMBER_EPOCH),
    ],
)
def test_what_may_pass_is_tried_again(first: Answer) -> None:
    rig = Rig(first, first, committed())
    run(rig.commits.commit(FIVE, soon()))
    assert len(rig.coordinator.sent) == 3


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, OffsetMetadataTooLarge),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, TopicAuthorization),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, GroupAuthorization),
    ],
)
def test_what_does_not_pass_is_raised(code: int, error: type[KafkaError]) -> None:
    rig = Rig(committed(code))
    with pytest.raises(error):
        run(rig.commits.commit(FIVE, soon()))
    assert len(rig.coordinator.sent) == 1


def test_a_commit_that_does_not_get_done_in_time_raises_timeout() -> None:
    rig = Rig(committed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    with pytest.raises(Timeout, match="before successfully committing offsets"):
        run(lambda: rig.commits.commit(FIVE, CLOCK.monotonic_ms() + 20))


def test_a_timeout_of_the_broker_makes_the_coordinator_unknown() -> None:
    rig = Rig(committed(ErrorCode.REQUEST_TIMED_OUT), committed())
    run(rig.commits.commit(FIVE, soon()))
    assert len(rig.coordinator.unknown) == 1


def test_a_member_that_may_not_commit_does_not_send() -> None:
    rig = Rig(committed())
    rig.member.identity = CommitFailed("out")
    with pytest.raises(CommitFailed):
        run(rig.commits.commit(FIVE, soon()))
    assert rig.coordinator.sent == []


def test_an_offset_below_zero_is_refused() -> None:
    with pytest.raises(IllegalArgument, match="Invalid negative offset"):
        OffsetAndMetadata(-1)


# Commits that it does not wait for


def test_a_commit_that_nobody_waits_for_is_not_tried_again() -> None:
    rig = Rig(committed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))

    async def work() -> None:
        rig.commits.commit_async(FIVE, rig.note)
        await rig.commits.wait_for_pending(soon())

    run(work)
    rig.commits.run_callbacks()
    ((offset, error),) = rig.told
    assert (offset, type(error), len(rig.coordinator.sent)) == (5, RetriableCommitFailed, 1)


def test_a_callback_waits_until_the_application_calls() -> None:
    rig = Rig(committed())

    async def work() -> None:
        rig.commits.commit_async(FIVE, rig.note)
        await rig.commits.wait_for_pending(soon())

    run(work)
    assert (rig.told, rig.commits.callbacks_waiting) == ([], True)
    rig.commits.run_callbacks()
    assert (rig.told, rig.commits.callbacks_waiting) == ([(5, None)], False)


def test_callbacks_come_in_the_order_of_the_commits() -> None:
    rig = Rig(committed())

    async def work() -> None:
        for offset in range(4):
            rig.commits.commit_async({P: OffsetAndMetadata(offset)}, rig.note)
        await rig.commits.commit({P: OffsetAndMetadata(9)}, soon())

    run(work)
    rig.commits.run_callbacks()
    assert rig.told == [(0, None), (1, None), (2, None), (3, None)]


def test_a_commit_of_nothing_waits_for_those_under_way() -> None:
    rig = Rig(committed())

    async def work() -> None:
        rig.commits.commit_async(FIVE, rig.note)
        await rig.commits.commit({}, soon())

    run(work)
    rig.commits.run_callbacks()
    assert rig.told == [(5, None)]


def test_a_coordinator_that_is_not_found_fails_the_commit() -> None:
    rig = Rig(committed())
    rig.coordinator.node = None
    rig.coordinator.lookup = CoordinatorNotAvailable("not yet")

    async def work() -> None:
        rig.commits.commit_async(FIVE, rig.note)
        await rig.commits.wait_for_pending(soon())

    run(work)
    rig.commits.run_callbacks()
    assert [type(error) for _, error in rig.told] == [RetriableCommitFailed]


def test_a_fenced_instance_hears_it_at_the_next_call() -> None:
    rig = Rig(committed(ErrorCode.FENCED_INSTANCE_ID))

    async def work() -> None:
        rig.commits.commit_async(FIVE, None)
        await rig.commits.wait_for_pending(soon())

    run(work)
    with pytest.raises(FencedInstanceId):
        rig.commits.run_callbacks()


def test_interceptors_hear_of_commits_in_the_applications_time() -> None:
    heard: list[int] = []

    class Interceptor(ConsumerInterceptor):
        def on_commit(self, offsets: Any) -> None:
            heard.append(offsets[P].offset)

    rig = Rig(committed(), interceptors=ConsumerInterceptors([Interceptor()]))
    run(rig.commits.commit(FIVE, soon()))
    assert heard == []
    rig.commits.run_callbacks()
    assert heard == [5]


# Automatic ones


def test_an_automatic_commit_that_fails_is_soon_due_again() -> None:
    rig = Rig(committed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), auto_commit=True)
    rig.subscriptions.assign_from_user([P])
    rig.subscriptions.seek(P, 3)

    async def work() -> None:
        await rig.commits.auto_commit_async()

    run(work)
    assert isinstance(rig.commits.auto_commit_error, RetriableCommitFailed)
    assert rig.commits.auto_commit_due(CLOCK.monotonic_ms() + 2)
    assert not rig.commits.callbacks_waiting


def test_nothing_is_committed_automatically_unless_asked_for() -> None:
    rig = Rig(committed())
    assert (rig.commits.auto_commit_due(10**12), rig.commits.ms_to_auto_commit(0)) == (False, None)


# Committed offsets


def test_committed_offsets_are_found() -> None:
    assert run(Rig(fetched(7)).commits.fetch_committed([P], soon())) == {P: OffsetAndMetadata(7)}


def test_nothing_committed_is_none() -> None:
    assert run(Rig(fetched(-1)).commits.fetch_committed([P], soon())) == {P: None}


def test_offsets_of_open_transactions_are_waited_for() -> None:
    rig = Rig(fetched(-1, ErrorCode.UNSTABLE_OFFSET_COMMIT), fetched(7))
    assert run(rig.commits.fetch_committed([P], soon())) == {P: OffsetAndMetadata(7)}
    assert len(rig.coordinator.sent) == 2


@pytest.mark.parametrize("problem", [UnstableOffsetCommit("open"), StaleMemberEpoch("old")])
def test_asking_is_given_up_at_the_deadline(problem: KafkaError) -> None:
    with pytest.raises(Timeout, match="could be determined"):
        run(lambda: Rig(problem).commits.fetch_committed([P], CLOCK.monotonic_ms() + 20))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (fetched(-1, ErrorCode.TOPIC_AUTHORIZATION_FAILED), TopicAuthorization),
        (fetched(-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), KafkaError),
        (fetched(-1, 0, ErrorCode.GROUP_AUTHORIZATION_FAILED), GroupAuthorization),
        (fetched(-1, 0, ErrorCode.INVALID_GROUP_ID), KafkaError),
    ],
)
def test_what_cannot_be_asked_is_raised(answer: Message, error: type[KafkaError]) -> None:
    with pytest.raises(error):
        run(Rig(answer).commits.fetch_committed([P], soon()))


class Guarded:
    """Tries a failed commit again, unless a later one has been begun since: else an older offset would go over a newer one."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.latest = 0

    def commit(self, offset: int) -> None:
        self.latest += 1
        self._send(offset, self.latest)

    def _send(self, offset: int, number: int) -> None:
        def done(offsets: Offsets, error: Exception | None) -> None:
            if isinstance(error, RetriableCommitFailed) and number == self.latest:
                self._send(offset, number)

        self.rig.commits.commit_async({P: OffsetAndMetadata(offset)}, done)


def offsets_sent(rig: Rig) -> list[int]:
    return [
        row.committed_offset for sent in rig.coordinator.sent if isinstance(sent, OffsetCommitRequest) for row in sent.topics[0].partitions
    ]


@pytest.mark.parametrize(
    ("commits", "sent"),
    [
        ([5], [5, 5]),  # the only one: tried again
        ([5, 9], [5, 9]),  # another has been begun: 5 must not come after 9
    ],
)
def test_an_application_may_try_commits_again_where_none_has_overtaken_them(commits: list[int], sent: list[int]) -> None:
    rig = Rig(committed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), committed())
    guarded = Guarded(rig)

    async def work() -> None:
        for offset in commits:
            guarded.commit(offset)
        for _ in range(2):
            await rig.commits.wait_for_pending(soon())
            rig.commits.run_callbacks()

    run(work())
    assert offsets_sent(rig) == sent


# By topic ids


def committed_by_id(code: int = 0) -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic("", TOPIC_ID, [OffsetCommitResponsePartition(0, code)])])


def fetched_by_id(offset: int, code: int = 0) -> OffsetFetchResponse:
    row = OffsetFetchResponsePartitions(0, offset, -1, "", code)
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup("g", [OffsetFetchResponseTopics("", TOPIC_ID, [row])])])


def knowing() -> Metadata:
    """Of the topic t and its id."""
    return Scene({0: 1}).metadata


def test_topics_go_by_id_where_all_ids_are_known() -> None:
    rig = Rig(committed_by_id(), metadata=knowing())
    run(rig.commits.commit(FIVE, soon()))
    (request,) = rig.coordinator.sent
    assert isinstance(request, OffsetCommitRequest)
    assert [(topic.name, topic.topic_id) for topic in request.topics] == [("", TOPIC_ID)]


def test_topics_go_by_name_where_an_id_is_not_known() -> None:
    rig = Rig(committed(), metadata=knowing())
    run(rig.commits.commit(FIVE | {TopicPartition("unheard", 0): OffsetAndMetadata(1)}, soon()))
    (request,) = rig.coordinator.sent
    assert isinstance(request, OffsetCommitRequest)
    assert [(topic.name, topic.topic_id) for topic in request.topics] == [("t", Uuid.ZERO), ("unheard", Uuid.ZERO)]


def test_committed_offsets_are_asked_for_by_id() -> None:
    rig = Rig(fetched_by_id(7), metadata=knowing())
    assert run(rig.commits.fetch_committed([P], soon())) == {P: OffsetAndMetadata(7)}
    (request,) = rig.coordinator.sent
    assert isinstance(request, OffsetFetchRequest)
    assert [(topic.name, topic.topic_id) for topic in request.groups[0].topics or ()] == [("", TOPIC_ID)]


def test_an_id_that_is_out_of_date_is_asked_for_before_the_next_attempt() -> None:
    metadata = knowing()
    rig = Rig(committed_by_id(ErrorCode.UNKNOWN_TOPIC_ID), committed_by_id(), metadata=metadata)
    run(rig.commits.commit(FIVE, soon()))
    assert len(rig.coordinator.sent) == 2
    assert metadata.update_requested


def test_a_commit_that_is_not_waited_for_tells_of_an_id_that_is_out_of_date() -> None:
    rig = Rig(committed_by_id(ErrorCode.UNKNOWN_TOPIC_ID), metadata=knowing())

    async def commit() -> None:
        rig.commits.commit_async(FIVE, rig.note)
        await rig.commits.wait_for_pending(soon())
        rig.commits.run_callbacks()

    run(commit())
    ((_, problem),) = rig.told
    assert isinstance(problem, RetriableCommitFailed)
    assert isinstance(problem.__cause__, UnknownTopicId)


def test_committed_offsets_of_an_id_that_is_out_of_date_do_not_exist() -> None:
    metadata = knowing()
    with pytest.raises(KafkaError, match="Topic or Partition t-0 does not exist"):
        run(Rig(fetched_by_id(-1, ErrorCode.UNKNOWN_TOPIC_ID), metadata=metadata).commits.fetch_committed([P], soon()))
    assert metadata.update_requested
