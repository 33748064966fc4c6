"""The formatters for internal topics that Kafka had up to 3.9, in Scala, with the lines that they print.

Scripts read `[group,topic,partition]::OffsetAndMetadata(…)`. Kafka's newer formatters of the same purpose print JSON, under other names.
The lines are those of Kafka 2.8.2; members and partitions are in the order of Scala's hash tables. Kafka 3.9.1 prints the same lines, but
no `, ` after `supportedProtocols=List(…)`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import IO, Any, Final

from barnabas.java_hash import java_hash
from barnabas.metadata.znodes.ordering import scala_buckets, scala_mutable
from barnabas.tools.command_line.failures import ToolError
from barnabas.tools.records.schema_json import COORDINATOR_RECORDS, read_json, schemas
from barnabas.topic_partition import TopicPartition

_OFFSET_KINDS: Final = (0, 1)
_GROUP_KIND: Final = 2
_NO_EPOCH: Final = -1
_NO_TIME: Final = -1
# By their ids in the transaction log.
_STATES: Final = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence")


class _OldFormatter:
    """A line `what::value` for each record of some types; `NULL` is the value of a tombstone."""

    kinds: tuple[int, ...]
    schema: str

    def configure(self, properties: Mapping[str, str]) -> None:
        return None

    def write(self, record: Any, output: IO[bytes]) -> None:
        if record.key is None:
            return
        try:
            (kind,) = struct.unpack_from(">h", record.key)
            if kind not in self.kinds:
                return
            key = read_json(schemas(COORDINATOR_RECORDS)[f"{self.schema}Key"], record.key[2:], 0)
            text = "NULL" if record.value is None else self.value_text(key, self._value(record.value))
        except Exception as error:
            raise ToolError(f"Could not read record at offset {record.offset} due to: {error}") from error
        output.write(f"{self.key_text(key)}::{text}\n".encode())

    def close(self) -> None:
        return None

    def key_text(self, key: Mapping[str, Any]) -> str:
        raise NotImplementedError

    def value_text(self, key: Mapping[str, Any], value: Mapping[str, Any]) -> str:
        raise NotImplementedError

    def _value(self, data: bytes) -> dict[str, Any]:
        (version,) = struct.unpack_from(">h", data)
        return read_json(schemas(COORDINATOR_RECORDS)[f"{self.schema}Value"], data[2:], version)


class OldOffsetsFormatter(_OldFormatter):
    kinds = _OFFSET_KINDS
    schema = "OffsetCommit"

    def key_text(self, key: Mapping[str, Any]) -> str:
        return f"[{key['group']},{key['topic']},{key['partition']}]"

    def value_text(self, key: Mapping[str, Any], value: Mapping[str, Any]) -> str:
        epoch = value.get("leaderEpoch", _NO_EPOCH)
        expires = value.get("expireTimestamp", _NO_TIME)
        return (
            f"OffsetAndMetadata(offset={value['offset']}, leaderEpoch={'Optional.empty' if epoch == _NO_EPOCH else f'Optional[{epoch}]'}, "
            f"metadata={value['metadata']}, commitTimestamp={value['commitTimestamp']}, "
            f"expireTimestamp={'None' if expires == _NO_TIME else f'Some({expires})'})"
        )


class OldGroupMetadataFormatter(_OldFormatter):
    kinds = (_GROUP_KIND,)
    schema = "GroupMetadata"

    def key_text(self, key: Mapping[str, Any]) -> str:
        return str(key["group"])

    def value_text(self, key: Mapping[str, Any], value: Mapping[str, Any]) -> str:
        members: dict[str, Mapping[str, Any]] = {member["memberId"]: member for member in value["members"]}
        shown = ", ".join(f"{member_id} -> {_member(members[member_id], value)}" for member_id in scala_mutable(members))
        return (
            f"GroupMetadata(groupId={key['group']}, generation={value['generation']}, "
            f"protocolType={_option(value['protocolType'] or None)}, "
            f"currentState={'Stable' if members else 'Empty'}, members=HashMap({shown}))"
        )


def _member(member: Mapping[str, Any], group: Mapping[str, Any]) -> str:
    rebalance_ms = member.get("rebalanceTimeout", -1)
    return (
        f"MemberMetadata(memberId={member['memberId']}, groupInstanceId={_option(member.get('groupInstanceId'))}, "
        f"clientId={member['clientId']}, clientHost={member['clientHost']}, sessionTimeoutMs={member['sessionTimeout']}, "
        f"rebalanceTimeoutMs={member['sessionTimeout'] if rebalance_ms == -1 else rebalance_ms}, "
        f"supportedProtocols=List({group['protocol']}), )"
    )


class OldTransactionLogFormatter(_OldFormatter):
    kinds = (0,)
    schema = "TransactionLog"

    def key_text(self, key: Mapping[str, Any]) -> str:
        return str(key["transactionalId"])

    def value_text(self, key: Mapping[str, Any], value: Mapping[str, Any]) -> str:
        partitions = [
            TopicPartition(topic["topic"], number) for topic in value["transactionPartitions"] or () for number in topic["partitionIds"]
        ]
        shown = ", ".join(map(str, scala_buckets({partition: _hash_code(partition) for partition in partitions})))
        return (
            f"TransactionMetadata(transactionalId={key['transactionalId']}, producerId={value['producerId']}, "
            f"producerEpoch={value['producerEpoch']}, txnTimeoutMs={value['transactionTimeoutMs']}, "
            f"state={_STATES[value['transactionStatus']]}, pendingState=None, "
            f"topicPartitions=HashSet({shown}), txnStartTimestamp={value['transactionStartTimestampMs']}, "
            f"txnLastUpdateTimestamp={value['transactionLastUpdateTimestampMs']})"
        )


class ChecksumFormatter:
    """`checksum:0` for each record: Kafka's console consumer had dropped the checksum before a formatter could print it."""

    def __init__(self) -> None:
        self._line = b""

    def configure(self, properties: Mapping[str, str]) -> None:
        topic = f"{properties['topic']}:" if "topic" in properties else ""
        self._line = f"{topic}checksum:0\n".encode()

    def write(self, record: Any, output: IO[bytes]) -> None:
        output.write(self._line)

    def close(self) -> None:
        return None


def _hash_code(partition: TopicPartition) -> int:
    """The hashCode of Java's TopicPartition."""
    return 31 * (31 + partition.partition) + java_hash(partition.topic)


def _option(value: str | None) -> str:
    """Scala's Option."""
    return "None" if value is None else f"Some({value})"
