"""The errors of the records of a batch that the broker rejected, in Kafka's words."""

from __future__ import annotations

from barnabas.client.errors import ClusterAuthorization, Disconnected, Timeout, TopicAuthorization, error_for
from barnabas.client.producer.batch import ProducerBatch
from barnabas.errors import InvalidRecord, KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce_response import PartitionProduceResponse


def failure_of(batch: ProducerBatch, answer: PartitionProduceResponse) -> KafkaError:
    """The error of the whole batch."""
    if answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return TopicAuthorization(unauthorized_topics=[batch.topic_partition.topic])
    if answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return ClusterAuthorization("The producer is not authorized to do idempotent sends")
    return error_for(answer.error_code, answer.error_message)


def record_errors(batch: ProducerBatch, answer: PartitionProduceResponse) -> dict[int, KafkaError] | None:
    """The error of each record if the broker named some: the others fail because they were in the same batch."""
    named = answer.record_errors
    if not named:
        return None
    errors: dict[int, KafkaError] = {}
    for index in range(batch.count):
        errors[index] = KafkaError("Failed to append record because it was part of a batch which had one more more invalid records")
    for row in named:
        text = row.batch_index_error_message or answer.error_message
        # With several named records, the single code cannot apply to each.
        errors[row.batch_index] = error_for(answer.error_code, text) if len(named) == 1 else InvalidRecord(text or str(error_for(87)))
    return errors


def code_of(error: KafkaError, node: int) -> tuple[int, str]:
    """Converts a client-side error to the code and message that a response would have."""
    if isinstance(error, Timeout):
        return ErrorCode.REQUEST_TIMED_OUT, f"Disconnected from node {node} due to timeout"
    if isinstance(error, Disconnected):
        return ErrorCode.NETWORK_EXCEPTION, f"Disconnected from node {node}"
    return error.code, str(error)
