"""The quorum of controllers of a KRaft cluster: describe it, add and remove voters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from barnabas.client.admin.calls import Calls
from barnabas.client.errors import UnknownServerError, error_for
from barnabas.protocol.messages import describe_quorum_response as described
from barnabas.protocol.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from barnabas.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from barnabas.protocol.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from barnabas.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from barnabas.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from barnabas.uuid import Uuid

METADATA_TOPIC: Final = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class RaftVoterEndpoint:
    """An address of a controller; `name` is the name of the listener."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """A voter or an observer. Times (in ms) are None where the leader does not know them."""

    replica_id: int
    replica_directory_id: Uuid
    log_end_offset: int
    last_fetch_timestamp: int | None
    last_caught_up_timestamp: int | None


@dataclass(frozen=True, slots=True)
class QuorumInfo:
    """The state of the quorum; `nodes` are the addresses of the voters by id."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaState, ...]
    observers: tuple[ReplicaState, ...]
    nodes: dict[int, tuple[RaftVoterEndpoint, ...]]


class QuorumCalls:
    """Describes and changes the quorum."""

    _calls: Calls

    async def describe_metadata_quorum(self, *, timeout_ms: int | None = None) -> QuorumInfo:
        """The leader, the voters and the observers of the quorum, with their log end offsets."""
        request = DescribeQuorumRequest([TopicData(METADATA_TOPIC, [PartitionData(0)])])

        def read(response: described.DescribeQuorumResponse) -> QuorumInfo:
            if response.error_code:
                raise error_for(response.error_code, response.error_message)
            partitions = [row for topic in response.topics if topic.topic_name == METADATA_TOPIC for row in topic.partitions]
            if len(partitions) != 1 or partitions[0].partition_index != 0:
                raise UnknownServerError(f"DescribeMetadataQuorum received {len(partitions)} partitions of {METADATA_TOPIC} instead of 1")
            if partitions[0].error_code:
                raise error_for(partitions[0].error_code, partitions[0].error_message)
            return _quorum(partitions[0], response.nodes)

        call = self._calls.begin("describe_metadata_quorum", timeout_ms)
        return await self._calls.request_from_node(call, self._calls.any_node, lambda _: request, read)

    async def add_raft_voter(
        self,
        voter_id: int,
        voter_directory_id: Uuid,
        endpoints: Iterable[RaftVoterEndpoint],
        *,
        cluster_id: str | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Makes an observer a voter. `cluster_id` protects against a request to the wrong cluster."""
        listeners = [Listener(endpoint.name, endpoint.host, endpoint.port) for endpoint in endpoints]

        def read(response: AddRaftVoterResponse) -> None:
            if response.error_code:
                raise error_for(response.error_code, response.error_message)

        call = self._calls.begin("add_raft_voter", timeout_ms)
        await self._calls.request_from_node(
            call,
            self._calls.any_node,
            lambda timeout: AddRaftVoterRequest(cluster_id, timeout, voter_id, voter_directory_id, listeners),
            read,
        )

    async def remove_raft_voter(
        self, voter_id: int, voter_directory_id: Uuid, *, cluster_id: str | None = None, timeout_ms: int | None = None
    ) -> None:
        """Removes a controller from the voters."""

        def read(response: RemoveRaftVoterResponse) -> None:
            if response.error_code:
                raise error_for(response.error_code, response.error_message)

        call = self._calls.begin("remove_raft_voter", timeout_ms)
        request = RemoveRaftVoterRequest(cluster_id, voter_id, voter_directory_id)
        await self._calls.request_from_node(call, self._calls.any_node, lambda _: request, read)


def _quorum(partition: described.PartitionData, nodes: Iterable[described.Node]) -> QuorumInfo:
    return QuorumInfo(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        tuple(map(_state, partition.current_voters)),
        tuple(map(_state, partition.observers)),
        {
            node.node_id: tuple(RaftVoterEndpoint(listener.name, listener.host, listener.port) for listener in node.listeners)
            for node in nodes
        },
    )


def _state(state: described.ReplicaState) -> ReplicaState:
    return ReplicaState(
        state.replica_id,
        state.replica_directory_id,
        state.log_end_offset,
        None if state.last_fetch_timestamp < 0 else state.last_fetch_timestamp,
        None if state.last_caught_up_timestamp < 0 else state.last_caught_up_timestamp,
    )
