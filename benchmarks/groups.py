"""Consumer groups next to Apache Kafka's, measured by turns in one run. The first figure is how long a group of the classic protocol needs
until every member has its assignment in one generation, if all members join at once (`group.initial.rebalance.delay.ms=0` on both). The
second is offset commits to 1,000 groups.

Members are bare state machines with one connection each: join, sync, heartbeat every 50 ms, and join again when the response requires
it. A turn forms several groups of each size, by turns on both brokers, and counts the median. Commits are prebuilt frames on ten
connections, each with one in flight, five times for a second by turns; every response is compared with the bytes of success. All clients
run in one process on one epoll and do as little as possible; their cost is the same for both brokers.
"""

from __future__ import annotations

import heapq
import itertools
import select
import socket
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.framing import SIZE_PREFIX, parse_response_header, request_frame, response_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.protocol.registry import BY_NAME, Api
from benchmarks import peers
from benchmarks.peers import Peer
from benchmarks.report import Comparison, Figure
from benchmarks.wire import CLIENT_ID, Client

GROUPS_OF_SIZE: Final = {10: 15, 100: 9, 500: 5}  # how many groups of so many members a turn forms
GROUPS: Final = 1000
COMMIT_CONNECTIONS: Final = 10
COMMIT_SECONDS: Final = 1
COMMIT_SLICES: Final = 5  # so often a turn commits for so long
TOPIC: Final = "groups"
PARTITIONS: Final = 10
HEARTBEAT_SECONDS: Final = 0.05  # how soon a member hears that it has to join again
TIMEOUT_SECONDS: Final = 60
RECEIVE_BYTES: Final = 65536
VERSIONS: Final = {"JoinGroup": 9, "SyncGroup": 5, "Heartbeat": 4, "OffsetCommit": 8, "FindCoordinator": 3, "ApiVersions": 3}
JOIN: Final = (BY_NAME["JoinGroup"], VERSIONS["JoinGroup"])
SYNC: Final = (BY_NAME["SyncGroup"], VERSIONS["SyncGroup"])
HEARTBEAT: Final = (BY_NAME["Heartbeat"], VERSIONS["Heartbeat"])
CORRELATION_ID: Final = 1
_SUBSCRIPTION: Final = b"\0\0\0\0\0\1\0\6groups\xff\xff\xff\xff"  # to one topic, in version 0

Commits = list[tuple[bytes, bytes]]  # requests and the answers of success


def run(megabytes: int, turns: int) -> list[Figure | Comparison]:
    stable = {
        count: Comparison(f"{count} members to one stable generation", "ms", round(1 / 1.5, 2), smaller_is_better=True)
        for count in GROUPS_OF_SIZE
    }
    commits = Comparison(f"offset commits to {GROUPS:,} groups", "commits/s", 1.5)
    commits_of = [_commits_of(number) for number in range(COMMIT_CONNECTIONS)]
    with peers.apache_kafka() as theirs, peers.barnabas() as ours:
        for peer in (ours, theirs):
            _prepare(peer)
        for turn in range(turns + 1):
            for count, groups in GROUPS_OF_SIZE.items():
                names = [f"stable-{count}-{turn}-{number}" for number in range(groups)]
                _note(stable[count], [[_ms_to_stable(peer, name, count) for peer in (ours, theirs)] for name in names], turn)
            _note(commits, [[_commits_a_second(peer, commits_of) for peer in (ours, theirs)] for _ in range(COMMIT_SLICES)], turn)
    return [*stable.values(), commits]


def _prepare(peer: Peer) -> None:
    """The topic, and the coordinator: the first who asks for one makes `__consumer_offsets`."""
    with Client("127.0.0.1", peer.port) as client:
        client.create_topics([TOPIC], PARTITIONS)
        while client.ask(FindCoordinatorRequest("first"), VERSIONS["FindCoordinator"]).error_code:
            time.sleep(0.05)
        for number in range(GROUPS):  # so many that every partition of the topic has some
            stranger = HeartbeatRequest(f"commits-{number}", 1, "nobody")
            while client.ask(stranger, VERSIONS["Heartbeat"]).error_code != ErrorCode.UNKNOWN_MEMBER_ID:
                time.sleep(0.05)


def _note(comparison: Comparison, times: list[list[float]], turn: int) -> None:
    """The medians of what was measured on both, one after the other: how fast the machine is changes from second to second."""
    if turn > 0:
        comparison.ours.append(statistics.median(ours for ours, _ in times))
        comparison.theirs.append(statistics.median(theirs for _, theirs in times))


class Reactor:
    """The sockets and timers of one measurement."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._connections: dict[int, Connection] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def connect(self, connection: Connection, port: int) -> None:
        """With an ApiVersions answered, as real clients ask first: what the broker has not accepted yet is not measured with the rest."""
        stream = socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream.sendall(_GREETING)
        size = int.from_bytes(stream.recv(SIZE_PREFIX, socket.MSG_WAITALL), "big")
        stream.recv(size, socket.MSG_WAITALL)
        stream.setblocking(False)
        connection.stream = stream
        self._connections[stream.fileno()] = connection
        self._epoll.register(stream, select.EPOLLIN)

    def call_at(self, when: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (when, next(self._order), action))

    def run_until(self, is_done: Callable[[], bool], deadline: float) -> None:
        connections, timers, poll = self._connections, self._timers, self._epoll.poll
        while not is_done():
            now = time.perf_counter()
            if now > deadline:
                raise TimeoutError(f"Not done within {TIMEOUT_SECONDS} s")
            while timers and timers[0][0] <= now:
                heapq.heappop(timers)[2]()
            until = timers[0][0] if timers else deadline
            for number, _ in poll(max(min(until, deadline) - time.perf_counter(), 0)):
                connections[number].readable()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.stream.close()
        self._epoll.close()


class Connection:
    """One request in flight; what comes back goes to `received` as a frame."""

    stream: socket.socket
    _partial = b""

    def readable(self) -> None:
        data = self.stream.recv(RECEIVE_BYTES)
        if not data:
            raise ConnectionError("The broker has closed the connection")
        if self._partial:
            data = self._partial + data
        if len(data) < SIZE_PREFIX or len(data) < SIZE_PREFIX + int.from_bytes(data[:SIZE_PREFIX], "big"):
            self._partial = data
            return
        self._partial = b""
        self.received(data)

    def received(self, frame: bytes) -> None:
        raise NotImplementedError

    def send(self, frame: bytes) -> None:
        if self.stream.send(frame) < len(frame):
            raise BlockingIOError("A request did not fit into the socket's buffer")


def _frame(request: Message) -> bytes:
    name = type(request).__name__.removesuffix("Request")
    return b"".join(request_frame(request, BY_NAME[name], VERSIONS[name], CORRELATION_ID, CLIENT_ID))


_GREETING: Final = _frame(ApiVersionsRequest("bench", "1"))


# -- members


def _ms_to_stable(peer: Peer, group: str, count: int) -> float:
    reactor = Reactor()
    forming = Forming(count, reactor)
    members = [Member(group, forming) for _ in range(count)]
    for member in members:
        reactor.connect(member, peer.port)
    began = time.perf_counter()
    for member in members:
        member.join()
    reactor.run_until(forming.is_stable, began + TIMEOUT_SECONDS)
    took = time.perf_counter() - began
    reactor.close()
    return 1000 * took


class Forming:
    """A group on its way: which generations have how many members with an assignment."""

    def __init__(self, count: int, reactor: Reactor) -> None:
        self.reactor = reactor
        self._count = count
        self._assigned: dict[int, int] = {}
        self._is_stable = False

    def is_stable(self) -> bool:
        """Whether all were in one generation."""
        return self._is_stable

    def entered(self, generation: int) -> None:
        self._assigned[generation] = self._assigned.get(generation, 0) + 1
        self._is_stable = self._assigned[generation] == self._count

    def left(self, generation: int) -> None:
        self._assigned[generation] -= 1


class Member(Connection):
    """One member of a group. It has an assignment of its generation, or is on the way to one."""

    def __init__(self, group: str, forming: Forming) -> None:
        self._group = group
        self._forming = forming
        self._id = ""
        self._generation = -1
        self._waits_for = JOIN
        self._next: Callable[[Any], None] = self._joined

    def join(self) -> None:
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=self._id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol("range", _SUBSCRIPTION)],
        )
        self._ask(JOIN, request, self._joined)

    def received(self, frame: bytes) -> None:
        api, version = self._waits_for
        _, reader = parse_response_header(frame[SIZE_PREFIX:], api.response_header_version(version))
        self._next(api.response.read(reader, version))

    def _ask(self, kind: tuple[Api, int], request: Message, then: Callable[[Any], None]) -> None:
        self._waits_for, self._next = kind, then
        self.send(b"".join(request_frame(request, *kind, CORRELATION_ID, CLIENT_ID)))

    def _joined(self, answer: Any) -> None:
        self._id = answer.member_id
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.join()
            return
        _check("JoinGroup", answer.error_code)
        self._generation = answer.generation_id
        # The leader, who alone was told the members, gives each something.
        assignments = [SyncGroupRequestAssignment(member.member_id, b"yours") for member in answer.members]
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=self._generation,
            member_id=self._id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        self._ask(SYNC, request, self._synced)

    def _synced(self, answer: Any) -> None:
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.join()
            return
        _check("SyncGroup", answer.error_code)
        self._forming.entered(self._generation)
        self._beat()

    def _beat(self) -> None:
        self._ask(HEARTBEAT, HeartbeatRequest(self._group, self._generation, self._id), self._heard)

    def _heard(self, answer: Any) -> None:
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._forming.left(self._generation)
            self.join()
            return
        _check("Heartbeat", answer.error_code)
        self._forming.reactor.call_at(time.perf_counter() + HEARTBEAT_SECONDS, self._beat)


def _check(name: str, code: int) -> None:
    if code:
        raise RuntimeError(f"{name} was answered with error {code}")


# -- commits


def _commits_a_second(peer: Peer, commits_of: list[Commits]) -> float:
    reactor = Reactor()
    committing = [Committing(commits) for commits in commits_of]
    for connection in committing:
        reactor.connect(connection, peer.port)
    began = time.perf_counter()
    reactor.call_at(began + COMMIT_SECONDS, lambda: None)  # so that the end is noticed
    for connection in committing:
        connection.commit()
    reactor.run_until(lambda: time.perf_counter() - began >= COMMIT_SECONDS, began + TIMEOUT_SECONDS)
    took = time.perf_counter() - began
    reactor.close()
    return sum(connection.count for connection in committing) / took


class Committing(Connection):
    """A commit after the other, one partition each, to one group after the other."""

    def __init__(self, commits: Commits) -> None:
        self.count = 0
        self._commits = commits
        self._expected = b""

    def commit(self) -> None:
        request, self._expected = self._commits[self.count % len(self._commits)]
        self.send(request)

    def received(self, frame: bytes) -> None:
        if frame != self._expected:
            raise RuntimeError(f"OffsetCommit was not answered with success: {frame.hex()}")
        self.count += 1
        self.commit()


def _commits_of(number: int) -> Commits:
    """What one connection commits: the first partition of each group that is its own, then the second…, at growing offsets."""
    own = [f"commits-{group}" for group in range(number, GROUPS, COMMIT_CONNECTIONS)]
    commits: Commits = []
    for partition in range(PARTITIONS):
        expected = _committed(partition)
        for group in own:
            committed = OffsetCommitRequestPartition(partition, len(commits))
            request = OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(TOPIC, partitions=[committed])])
            commits.append((_frame(request), expected))
    return commits


def _committed(partition: int) -> bytes:
    """The bytes of success."""
    topic = OffsetCommitResponseTopic(TOPIC, partitions=[OffsetCommitResponsePartition(partition)])
    header_version = BY_NAME["OffsetCommit"].response_header_version(VERSIONS["OffsetCommit"])
    frame = response_frame(OffsetCommitResponse(topics=[topic]), CORRELATION_ID, VERSIONS["OffsetCommit"], header_version)
    return b"".join(bytes(part) for part in frame if isinstance(part, bytes | memoryview))
