"""A response that is written in slices has the bytes of one that is written at once."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

import barnabas
from barnabas.broker.handlers import HANDLERS
from barnabas.broker.requests.sliced_response import ELEMENTS_PER_SLICE, WRITTEN_AT_ONCE, frame_in_slices, longest_list
from barnabas.broker.scheduling.turns import at_once
from barnabas.protocol.framing import response_frame
from barnabas.protocol.messages.describe_cluster_response import DescribeClusterResponse
from barnabas.protocol.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from barnabas.protocol.messages.offset_delete_response import OffsetDeleteResponse, OffsetDeleteResponsePartition, OffsetDeleteResponseTopic
from barnabas.protocol.registry import APIS
from tests.unit.protocol.instances import random_message

MANY = 3 * ELEMENTS_PER_SLICE + 7


def groups(count: int) -> list[DescribedGroup]:
    return [DescribedGroup(0, None, f"group-{index}", "Stable") for index in range(count)]


@pytest.mark.parametrize("version", range(6))
def test_the_bytes_are_the_same(version: int) -> None:
    response = DescribeGroupsResponse(groups=groups(MANY))
    header_version = 1 if version >= 5 else 0
    assert longest_list(response) == "groups"
    slices = frame_in_slices(response, "groups", 77, version, header_version)
    assert b"".join(at_once(slices)) == b"".join(response_frame(response, 77, version, header_version))  # type: ignore[arg-type]
    assert len(response.groups) == MANY  # as before


def test_no_slice_has_more_elements_than_its_bound() -> None:
    class Counting(DescribedGroup):  # type: ignore[misc]
        written = 0

        def write(self, writer: Any, version: int) -> None:
            Counting.written += 1
            super().write(writer, version)

    response = DescribeGroupsResponse(groups=[Counting() for _ in range(MANY)])
    before = 0
    for _ in frame_in_slices(response, "groups", 1, 5, 1):
        assert Counting.written - before <= ELEMENTS_PER_SLICE
        before = Counting.written
    assert Counting.written == MANY


def test_what_stands_behind_the_list_stays_there() -> None:
    topics = [OffsetDeleteResponseTopic("t", [OffsetDeleteResponsePartition(index)]) for index in range(MANY)]
    response = OffsetDeleteResponse(16, 5, topics)
    assert b"".join(at_once(frame_in_slices(response, "topics", 1, 0, 0))) == b"".join(response_frame(response, 1, 0, 0))  # type: ignore[arg-type]


def test_short_responses_and_lists_of_numbers_are_written_at_once() -> None:
    assert longest_list(DescribeGroupsResponse(groups=groups(ELEMENTS_PER_SLICE))) is None
    assert longest_list(DescribeClusterResponse()) is None


@pytest.mark.parametrize("key", sorted(set(HANDLERS) - WRITTEN_AT_ONCE))
def test_a_list_of_any_response_can_be_written_in_slices(key: int) -> None:
    api, random = APIS[key], Random(key)
    for version in range(api.lowest_version, api.highest_version + 1):
        response: Any = random_message(f"{api.name}Response", version, random)
        for name in response.field_names():
            elements = getattr(response, name)
            if not isinstance(elements, list) or not elements or not hasattr(elements[0], "write"):
                continue
            header_version = api.response_header_version(version)
            whole = b"".join(response_frame(response, 1, version, header_version))  # type: ignore[arg-type]
            setattr(response, name, [])
            if b"".join(response_frame(response, 1, version, header_version)) == whole:  # type: ignore[arg-type]
                continue  # not in this version
            setattr(response, name, elements)
            assert b"".join(at_once(frame_in_slices(response, name, 1, version, header_version))) == whole, (api.name, version, name)


def test_what_is_compiled_is_written_at_once() -> None:
    modules = (Path(barnabas.__file__).parents[1] / "compiled.toml").read_text()
    compiled = set(re.findall(r"protocol\.messages\.(\w+)_response", modules))
    names = {re.sub(r"(?<!^)(?=[A-Z])", "_", APIS[key].name).lower() for key in WRITTEN_AT_ONCE}
    assert names == compiled
