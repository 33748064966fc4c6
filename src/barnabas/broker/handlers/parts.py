"""Splits a request of many elements into parts, and joins the responses to the parts.

A handler whose elements are independent of each other has `PARTS`: the dispatcher then gives it at most one slice of elements in a call.
Parts keep the order of the elements, and the joined response has each topic once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from barnabas.broker.scheduling.turns import ELEMENTS_PER_SLICE
from barnabas.protocol.message import Message
from barnabas.uuid import Uuid

_ERROR_CODE: Final = "error_code"
_THROTTLE_TIME: Final = "throttle_time_ms"


class Parts:
    """`lists` are the fields that lead to the elements of a request, from the outside in: topics, then partitions. `answers` are those of
    the response. `size` is the number of elements in a part; handlers with expensive elements choose a smaller one."""

    def __init__(self, lists: Sequence[str], answers: Sequence[str], size: int = ELEMENTS_PER_SLICE) -> None:
        self._lists = tuple(lists)
        self._answers = tuple(answers)
        self._size = size

    def of(self, message: Message) -> Iterator[Message]:
        """The message in parts of up to `size` elements. The original is not changed. A structure without elements counts as one."""
        return (part for part, _ in _split(message, self._lists, self._size))

    def joined(self, first: Any) -> JoinedResponse:
        """The response to the first part. The responses to the other parts are added to it."""
        return JoinedResponse(first, self._answers)


class DeleteTopicsParts(Parts):
    """The parts of DeleteTopics, which up to version 5 names topics in another field."""

    def __init__(self) -> None:
        super().__init__(("topics",), ("responses",))
        self._of_names = Parts(("topic_names",), ("responses",))

    def of(self, message: Any) -> Iterator[Message]:
        return super().of(message) if message.topics else self._of_names.of(message)


class OffsetFetchParts(Parts):
    """The parts of OffsetFetch, which up to version 7 has one group, whose topics are fields of the request itself."""

    def __init__(self) -> None:
        super().__init__(("groups", "topics", "partition_indexes"), ("groups", "topics", "partitions"))
        self._of_one_group = Parts(("topics", "partition_indexes"), ("topics", "partitions"))

    def of(self, message: Any) -> Iterator[Message]:
        return super().of(message) if message.groups else self._of_one_group.of(message)

    def joined(self, first: Any) -> JoinedResponse:
        return super().joined(first) if first.groups else self._of_one_group.joined(first)


def _split(message: Message, lists: tuple[str, ...], size: int) -> Iterator[tuple[Message, int]]:
    """The parts of a structure, with the number of elements in each."""
    elements: list[Any] | None = getattr(message, lists[0])
    if not elements:
        yield message, 1
        return
    part: list[Any] = []
    count = 0
    for element, weight in _weighed(elements, lists[1:], size):
        if count + weight > size and part:
            yield _copy(message, lists[0], part), count
            part, count = [], 0
        part.append(element)
        count += weight
    yield _copy(message, lists[0], part), count


def _weighed(elements: list[Any], lists: tuple[str, ...], size: int) -> Iterator[tuple[Any, int]]:
    for element in elements:
        if lists:
            yield from _split(element, lists, size)
        else:
            yield element, 1


def _copy(message: Message, name: str, elements: list[Any]) -> Message:
    fields = {field: getattr(message, field) for field in message.field_names()}
    fields[name] = elements
    return type(message)(**fields)


class JoinedResponse:
    """A response, or a structure in it, that other responses are added to. Fields outside the lists stay those of the first response; the
    first error of any part becomes the error of the whole, and the longest throttle time that of the whole."""

    def __init__(self, whole: Any, answers: tuple[str, ...]) -> None:
        self.whole = whole
        self._list: list[Any] = getattr(whole, answers[0])
        self._name = answers[0]
        self._inner = answers[1:]
        self._joined = {_identity(element): JoinedResponse(element, self._inner) for element in self._list} if self._inner else {}
        self._has_error = _ERROR_CODE in whole.field_names()
        self._has_throttle_time = _THROTTLE_TIME in whole.field_names()

    def add(self, other: Any) -> None:
        if self._has_error and self.whole.error_code == 0:
            self.whole.error_code = other.error_code
        if self._has_throttle_time:
            self.whole.throttle_time_ms = max(self.whole.throttle_time_ms, other.throttle_time_ms)
        elements: list[Any] = getattr(other, self._name)
        if not self._inner:
            self._list.extend(elements)
            return
        for element in elements:
            identity = _identity(element)
            joined = self._joined.get(identity)
            if joined is None:
                self._list.append(element)
                self._joined[identity] = JoinedResponse(element, self._inner)
            else:
                joined.add(element)


def _identity(element: Message) -> tuple[object, ...]:
    """The names and ids of a topic, a group or a producer: all its fields that are plain values, without the error code."""
    values = [getattr(element, name) for name in element.field_names() if name != _ERROR_CODE]
    return tuple(value for value in values if isinstance(value, (str, int, Uuid)))
