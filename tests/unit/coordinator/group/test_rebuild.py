"""A coordinator is a fold over its log: after any sequence of requests, replaying the log, compacted or not, gives the same state."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.coordinator.group.classic.classic_group import ClassicGroup, ClassicGroupState
from barnabas.records.batch import read_batches
from barnabas.records.builder import BatchBuilder
from barnabas.records.reader import read_records
from tests.unit.coordinator.coordinator_host import Host, MemoryLog, subscription

STEP = st.tuples(
    st.sampled_from(["join", "join_static", "rejoin", "sync", "leave", "commit", "commit_member", "heartbeat", "time", "delete"]),
    st.integers(0, 3),
    st.sampled_from(["g", "h"]),
)


class Clients:
    """Clients that do what the steps say, in any order, with what they were last told."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.known: dict[str, list[str]] = {"g": [], "h": []}

    def run(self, kind: str, number: int, group: str) -> None:
        host, ids = self.host, self.known[group]
        member_id = ids[number % len(ids)] if ids else "nobody"
        generation = self._generation(group)
        if kind == "join":
            ids.extend(answer.member_id for answer in host.join(group=group))
        elif kind == "join_static":
            host.join(group=group, instance=f"i{number}", protocols={"range": subscription(f"t{number}")})
        elif kind == "rejoin":
            host.join(member_id, group=group, protocols={"range": subscription("t", f"t{number}")})
        elif kind == "sync":
            for member in self._members(group):
                host.sync(member, generation, {name: bytes([number]) for name in self._members(group)}, group=group)
        elif kind == "leave":
            host.leave(member_id, group=group)
        elif kind == "commit":
            host.commit(number, group=group, partition=number)
        elif kind == "commit_member":
            host.commit(number, group=group, member_id=member_id, generation=generation, topic="u")
        elif kind == "heartbeat":
            host.heartbeat(member_id, generation, group=group)
        elif kind == "delete":
            host.coordinator.delete_groups([group], lambda _: None)
        else:
            host.time.advance([1_000, 3_000, 20_000, 8 * 24 * 3_600_000][number])

    def _generation(self, group: str) -> int:
        rebuilt = self.host.shard.groups.get(group)
        return rebuilt.generation_id if isinstance(rebuilt, ClassicGroup) else -1

    def _members(self, group: str) -> list[str]:
        rebuilt = self.host.shard.groups.get(group)
        return list(rebuilt.members) if isinstance(rebuilt, ClassicGroup) else []


def group_state(host: Host, group_id: str) -> Any:
    """What must not be lost of a group: nothing is promised of one in the middle of a rebalance but that it exists."""
    group = host.shard.groups[group_id]
    assert isinstance(group, ClassicGroup)
    members = {
        member.member_id: (member.group_instance_id, member.assignment, member.session_timeout_ms, member.rebalance_timeout_ms)
        for member in group.members.values()
    }
    empty_since = group.state_timestamp if group.state is ClassicGroupState.EMPTY and group.protocol_type else None
    return group.state, group.generation_id, group.protocol_type, group.protocol_name, members, group.subscribed_topics, empty_since


def compacted(log: MemoryLog) -> MemoryLog:
    """The last record of each key, each in a batch of its own, at its offset."""
    last: dict[bytes | None, Any] = {}
    for _, _, data in log.batches.get(0, []):
        for batch in read_batches(data):
            for record in read_records(data, batch):
                last.pop(record.key, None)
                last[record.key] = record
    result = MemoryLog()
    for record in last.values():
        builder = BatchBuilder(base_offset=record.offset)
        builder.append_at(record.offset, record.timestamp, record.key, record.value)
        result.batches.setdefault(0, []).append((record.offset, record.offset + 1, builder.build()))
    return result


@settings(max_examples=150, deadline=None)
@given(st.lists(STEP, max_size=40))
def test_the_log_gives_the_same_state(steps: list[tuple[str, int, str]]) -> None:
    host = Host()
    clients = Clients(host)
    for step in steps:
        clients.run(*step)
    settled = {
        group_id
        for group_id, group in host.shard.groups.items()
        if isinstance(group, ClassicGroup) and group.state in (ClassicGroupState.EMPTY, ClassicGroupState.STABLE)
    }
    for log in (host.log, compacted(host.log)):
        again = Host(log)
        assert again.shard.offsets.committed.by_group == host.shard.offsets.committed.by_group
        assert again.shard.groups.keys() == host.shard.groups.keys()
        assert {name: group_state(again, name) for name in settled} == {name: group_state(host, name) for name in settled}
