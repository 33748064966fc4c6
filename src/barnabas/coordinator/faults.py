# Compiled by mypyc: src/compiled.toml lists this module.
"""How an error of the log reads to a client of a coordinator.

The client asked about a group and knows nothing of the partition behind it: it is told to look for the coordinator again, or to wait.
"""

from __future__ import annotations

from typing import Final

from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.writer import STRING_SIZE_MAX

_ANSWERS: Final[dict[int, int]] = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}

_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE})


def told(text: str) -> str:
    """A text as a response can carry it: one that quotes an enormous group id is cut."""
    data = text.encode()
    return text if len(data) <= STRING_SIZE_MAX else data[:STRING_SIZE_MAX].decode(errors="ignore")


def error_code(error: Exception) -> int:
    """The code of an error as it is; one that has none is a fault of ours."""
    return error.code if isinstance(error, KafkaError) else int(ErrorCode.UNKNOWN_SERVER_ERROR)


def client_error_code(error: Exception) -> int:
    """The code a client of the coordinator hears."""
    return client_code(error_code(error))


def commit_error_code(error: Exception) -> int:
    """The code a client hears that commits offsets: one of its own says that they do not fit into a batch of the offsets topic."""
    code = error_code(error)
    return int(ErrorCode.INVALID_COMMIT_OFFSET_SIZE) if code in _TOO_LARGE else client_code(code)


def client_code(code: int) -> int:
    return int(_ANSWERS.get(code, code))
