"""How a request of many elements is taken apart, and the answers to its parts are put together.

A handler whose elements do not concern each other has `PARTS`: the dispatcher then gives it no more elements in one call than a turn of the
loop has time for. Parts keep the order of the elements, and what an answer says of one topic is said once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from barnabas.broker.scheduling.turns import ELEMENTS_PER_SLICE
from barnabas.protocol.message import Message
from barnabas.uuid import Uuid

_ERROR_CODE: Final = "error_code"


class Parts:
    """`lists` are the fields that lead to the elements of a request, from the outside in: topics, then partitions. `answers` are those of
    the response. A handler whose elements are dear says how many a part may have."""

    def __init__(self, lists: Sequence[str], answers: Sequence[str], size: int = ELEMENTS_PER_SLICE) -> None:
        self._lists = tuple(lists)
        self._answers = tuple(answers)
        self._size = size

    def of(self, message: Message) -> Iterator[Message]:
        """The message in parts of up to `size` elements each; the original is not changed. A structure without elements counts as one."""
        return (part for part, _ in _split(message, self._lists, self._size))

    def joint(self, first: Any) -> Joint:
        """The response to the first part, which the others are joined to."""
        return Joint(first, self._answers)


class DeleteTopicsParts(Parts):
    """Those of DeleteTopics, which up to version 5 has nothing but names."""

    def __init__(self) -> None:
        super().__init__(("topics",), ("responses",))
        self._of_names = Parts(("topic_names",), ("responses",))

    def of(self, message: Any) -> Iterator[Message]:
        return super().of(message) if message.topics else self._of_names.of(message)


class OffsetFetchParts(Parts):
    """Those of OffsetFetch, which up to version 7 has one group, whose topics stand in the request itself."""

    def __init__(self) -> None:
        super().__init__(("groups", "topics", "partition_indexes"), ("groups", "topics", "partitions"))
        self._of_one_group = Parts(("topics", "partition_indexes"), ("topics", "partitions"))

    def of(self, message: Any) -> Iterator[Message]:
        return super().of(message) if message.groups else self._of_one_group.of(message)

    def joint(self, first: Any) -> Joint:
        return super().joint(first) if first.groups else self._of_one_group.joint(first)


def _split(message: Message, lists: tuple[str, ...], size: int) -> Iterator[tuple[Message, int]]:
    """Parts of a structure, with the number of elements in each."""
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


class Joint:
    """A response, or a structure in it, that grows. What is not in its lists stays as it was in the first; an error of any part becomes
    that of the whole."""

    def __init__(self, whole: Any, answers: tuple[str, ...]) -> None:
        self.whole = whole
        self._list: list[Any] = getattr(whole, answers[0])
        self._name = answers[0]
        self._inner = answers[1:]
        self._joints = {_identity(each): Joint(each, self._inner) for each in self._list} if self._inner else {}
        self._has_error = _ERROR_CODE in whole.field_names()

    def add(self, other: Any) -> None:
        if self._has_error and self.whole.error_code == 0:
            self.whole.error_code = other.error_code
        elements: list[Any] = getattr(other, self._name)
        if not self._inner:
            self._list.extend(elements)
            return
        for element in elements:
            identity = _identity(element)
            joint = self._joints.get(identity)
            if joint is None:
                self._list.append(element)
                self._joints[identity] = Joint(element, self._inner)
            else:
                joint.add(element)


def _identity(element: Message) -> tuple[object, ...]:
    """What tells a topic, a group or a producer from others: its names and ids, which are not in lists."""
    values = [getattr(element, name) for name in element.field_names() if name != _ERROR_CODE]
    return tuple(value for value in values if isinstance(value, (str, int, Uuid)))
