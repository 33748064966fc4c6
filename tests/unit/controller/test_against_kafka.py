"""Kafka 3.9.1's own transaction log, taken apart: what administrators and brokers wrote is written again, and what its controller wrote
upon that is what ours has to write, in the same order and byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.local import LocalSession
from barnabas.metadata.tree import Check, Create, Delete, Multi, Operation, SetData, TreeRequest, TreeResponse
from tests.unit.controller.cluster import World, done
from tests.unit.metadata.dumps import DUMPS, LoggedWrite, writes

R = TypeVar("R")

(KAFKA_3_9,) = [dump for dump in DUMPS if "3.9.1" in dump.name]
LOG = writes(KAFKA_3_9)


async def test_boot_creation_and_added_partitions_are_written_as_kafka_writes_them() -> None:
    before_boot = position(lambda write: Create(paths.CONTROLLER_EPOCH, b"0") in write.operations)
    reassignment = position(lambda write: b"follower.replication.throttled" in b"".join(data(operation) for operation in write.operations))
    replay = Replay()
    replay.apply(LOG[:before_boot])
    await replay.boot()
    expected: list[Operation] = list(LOG[before_boot].operations)
    for write in LOG[before_boot + 1 : reassignment]:
        if is_controllers(write):
            expected += write.operations
        else:
            replay.apply([write])
            await replay.world.settle()
    assert len(expected) > 20
    assert without_versions(replay.written) == without_versions(expected)
    await replay.close()


async def test_a_broker_that_dies_leaves_every_isr_as_kafka_writes_it() -> None:
    marked = position(lambda write: Create(paths.delete_topic("T")) in write.operations)
    registered = [at for at in range(marked) if any(operation.path == paths.broker_id(1) for operation in LOG[at].operations)][-1]
    killed = position(lambda write: write.kind == "closeSession" and write.session == LOG[registered].session, after=registered)
    replay = Replay()
    replay.apply(LOG[:killed])
    done(replay.world.admin.handle_now([Delete(paths.CONTROLLER)]))
    await replay.boot()
    replay.written.clear()
    replay.apply(LOG[killed : killed + 1])
    await replay.world.settle()
    assert len(replay.written) == 4
    assert by_path(as_epoch_1(replay.written)) == by_path(operations_of(LOG[killed + 1 : marked]))
    await replay.close()


async def test_a_deletion_that_waits_for_a_broker_is_written_as_kafka_writes_it() -> None:
    marked = position(lambda write: Create(paths.delete_topic("T")) in write.operations)
    returned = position(lambda write: any(operation.path == paths.broker_id(1) for operation in write.operations), after=marked)
    completed = position(lambda write: Delete(paths.delete_topic("T")) in write.operations)
    replay = Replay()
    replay.apply(LOG[:marked])
    done(replay.world.admin.handle_now([Delete(paths.CONTROLLER)]))  # Kafka's controller goes, and ours takes over
    await replay.boot()
    replay.written.clear()
    replay.apply(LOG[marked : marked + 1])
    await replay.world.settle()
    # Partitions of one batch come in the order of a hash set there, in that of the assignment here.
    assert by_path(as_epoch_1(replay.written)) == by_path(operations_of(LOG[marked + 1 : returned]))
    replay.written.clear()
    replay.apply([write for write in LOG[marked + 1 : returned + 1] if not is_controllers(write)])
    await replay.world.settle()
    assert replay.written == [operation for operation in operations_of(LOG[returned + 1 : completed + 1]) if not concerns(operation, "U")]
    await replay.close()


class Replay:
    """Our controller on a tree that is written to as the log says, each session of the log being one of ours."""

    def __init__(self) -> None:
        self.world = World()
        self.sessions: dict[str, LocalSession] = {}
        self.written: list[Operation] = []
        self.world.client = WritesNoted(self.world, self.written)
        self.world.controller = self.world.make_controller(0, self.world.client, self.world.channel)

    async def boot(self) -> None:
        await self.world.client.connect()
        await self.world.controller.start()
        await self.world.settle()

    def apply(self, entries: Sequence[LoggedWrite]) -> None:
        for entry in entries:
            if entry.kind == "createSession":
                self.sessions[entry.session] = self.world.tree.open_session_now(lambda event: None)
            elif entry.kind == "closeSession":
                self.sessions.pop(entry.session).close_now()
            elif entry.kind != "error":
                done(self.sessions[entry.session].handle_now([Multi(entry.operations)]))

    async def close(self) -> None:
        await self.world.controller.shutdown()
        await self.world.client.close()


class WritesNoted(TreeClient):
    """The writes that were made, without the checks that guard them."""

    def __init__(self, world: World, written: list[Operation]) -> None:
        super().__init__(world.tree, lambda: None)
        self._written = written

    async def handle(self, requests: Sequence[TreeRequest[R]]) -> list[TreeResponse[R]]:
        answers = await super().handle(requests)
        for request, answer in zip(requests, answers, strict=True):
            if answer.error is None and isinstance(request, (Create, SetData, Delete)):
                self._written.append(request)
            elif answer.error is None and isinstance(request, Multi):
                assert isinstance(request.operations[0], Check) or request.operations[0].path == paths.CONTROLLER
                self._written.extend(operation for operation in request.operations if not isinstance(operation, Check))
        return answers


def position(matches: Callable[[LoggedWrite], bool], after: int = 0) -> int:
    return next(at for at, write in enumerate(LOG) if at > after and matches(write))


def is_controllers(write: LoggedWrite) -> bool:
    by_election = any(
        operation.path in (paths.CONTROLLER, paths.FEATURE) and isinstance(operation, Create) for operation in write.operations
    )
    return by_election or any(isinstance(operation, Check) and operation.path == paths.CONTROLLER_EPOCH for operation in write.operations)


def operations_of(entries: Sequence[LoggedWrite]) -> list[Operation]:
    return without_versions(operation for entry in entries for operation in entry.operations)


def without_versions(operations: Iterable[Operation]) -> list[Operation]:
    """A set of a topic's data goes by any version, one of a state by the version that was read; the log tells only what came out."""
    return [
        SetData(operation.path, operation.data) if isinstance(operation, SetData) else operation
        for operation in operations
        if not isinstance(operation, Check)
    ]


def as_epoch_1(operations: Sequence[Operation]) -> list[Operation]:
    """Our controller is the second one of the replayed cluster; Kafka's still was the first."""
    return [
        SetData(operation.path, data(operation).replace(b'"controller_epoch":2', b'"controller_epoch":1'))
        if isinstance(operation, SetData)
        else operation
        for operation in operations
    ]


def by_path(operations: Sequence[Operation]) -> list[Operation]:
    return sorted(operations, key=lambda operation: operation.path)


def concerns(operation: Operation, topic: str) -> bool:
    return operation.path.startswith(f"{paths.topic(topic)}/")


def data(operation: Operation) -> bytes:
    return (operation.data or b"") if isinstance(operation, (Create, SetData)) else b""
