# Compiled by mypyc: src/compiled.toml lists this module.
"""Counts the errors in a response by their code, and 0 for each part that succeeded: Kafka's ErrorsPerSec.

Every field of the response that holds an error code counts, if the version has it, apart from `topic_config_error_code` of
CreateTopics. Produce and Fetch are walked by compiled code; the
other responses by the names of their fields.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message, serialize
from barnabas.protocol.messages.fetch_response import FetchResponse
from barnabas.protocol.messages.produce_response import ProduceResponse

_KNOWN: Final[frozenset[int]] = frozenset(int(code) for code in ErrorCode)
_TOP_LEVEL_OF_FETCH: Final = 7  # the version that introduced it
_OF_CONFIGS: Final = "topic_config_error_code"  # of CreateTopics, beside the error of the topic: Kafka does not count it
_PROBED: Final = int(ErrorCode.UNKNOWN_SERVER_ERROR)

# For each class and version: the fields with error codes, and the fields with structures that may have some.
_fields: Final[dict[tuple[type[Message], int], tuple[list[str], list[str]]]] = {}


def count_errors(errors: dict[int, int], response: Message, version: int) -> None:
    """Adds the error codes of a response to `errors`. Produce and Fetch look the table up once for all that succeeded."""
    succeeded = 0
    if isinstance(response, ProduceResponse):
        for topic in response.responses:
            for part in topic.partition_responses:
                if part.error_code == 0:
                    succeeded += 1
                else:
                    _count(errors, part.error_code)
    elif isinstance(response, FetchResponse):
        if version >= _TOP_LEVEL_OF_FETCH:
            if response.error_code == 0:
                succeeded += 1
            else:
                _count(errors, response.error_code)
        for fetched in response.responses:
            for data in fetched.partitions:
                if data.error_code == 0:
                    succeeded += 1
                else:
                    _count(errors, data.error_code)
    else:
        _count_fields(errors, response, version)
    if succeeded != 0:
        errors[0] = errors.get(0, 0) + succeeded


def _count(errors: dict[int, int], code: int) -> None:
    """A code that Kafka does not have cannot make the table grow."""
    if code != 0 and code not in _KNOWN:
        code = _PROBED
    errors[code] = errors.get(code, 0) + 1


def _count_fields(errors: dict[int, int], message: Message, version: int) -> None:
    key = (type(message), version)
    fields = _fields.get(key)
    if fields is None:
        fields = _fields[key] = _fields_of(message, version)
    codes, structures = fields
    for name in codes:
        _count(errors, getattr(message, name))
    for name in structures:
        value: Any = getattr(message, name)
        if isinstance(value, Message):
            _count_fields(errors, value, version)
        elif isinstance(value, list):
            for element in value:
                if not isinstance(element, Message):
                    break
                _count_fields(errors, element, version)


def _fields_of(message: Message, version: int) -> tuple[list[str], list[str]]:
    codes: list[str] = []
    structures: list[str] = []
    for name in message.field_names():
        if name.endswith("error_code"):
            if name != _OF_CONFIGS and _has_field(type(message), name, version):
                codes.append(name)
        elif not isinstance(getattr(message, name), (int, str, bytes, float)):
            structures.append(name)
    return codes, structures


def _has_field(kind: Any, name: str, version: int) -> bool:
    """Whether the version has the field: whether it makes a difference to the bytes."""
    without, probe = kind(), kind()
    setattr(probe, name, _PROBED)
    try:
        written = serialize(without, version)
    except KafkaError:  # another field may not have its default
        return True
    try:
        return serialize(probe, version) != written
    except KafkaError:  # it may not be set in this version
        return False
