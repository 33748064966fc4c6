# Compiled by mypyc: src/compiled.toml lists this module.
"""Maps errors of the log to the error codes that a client of a coordinator receives.

The client's request names a group, not the partition behind it. So the code makes the client find the coordinator again, or retry later.
"""

from __future__ import annotations

from typing import Final

from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.writer import STRING_SIZE_MAX

_CLIENT_CODES: Final[dict[int, int]] = {
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


def truncated(text: str) -> str:
    """The text cut to the longest string a response can carry; an error message may quote an enormous group id."""
    data = text.encode()
    return text if len(data) <= STRING_SIZE_MAX else data[:STRING_SIZE_MAX].decode(errors="ignore")


def error_code(error: Exception) -> int:
    """The code of a KafkaError; UNKNOWN_SERVER_ERROR for any other exception, which is a bug in the broker."""
    return error.code if isinstance(error, KafkaError) else int(ErrorCode.UNKNOWN_SERVER_ERROR)


def client_error_code(error: Exception) -> int:
    """The code that a client of the coordinator receives."""
    return client_code(error_code(error))


def commit_error_code(error: Exception) -> int:
    """The code that an offset commit receives. Offsets too large for a batch of the offsets topic have a code of their own."""
    code = error_code(error)
    return int(ErrorCode.INVALID_COMMIT_OFFSET_SIZE) if code in _TOO_LARGE else client_code(code)


def client_code(code: int) -> int:
    return int(_CLIENT_CODES.get(code, code))
