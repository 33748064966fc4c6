"""Lists in Kafka's format (KIP-466): entries of one size side by side, all others behind their length."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.errors import SerializationError
from barnabas.client.serialization import (
    IntegerDeserializer,
    IntegerSerializer,
    ListDeserializer,
    ListSerializer,
    StringDeserializer,
    StringSerializer,
)
from barnabas.config_def import InvalidConfig

INTEGERS = ListSerializer(IntegerSerializer()), ListDeserializer(IntegerDeserializer())
TEXTS = ListSerializer(StringSerializer()), ListDeserializer(StringDeserializer())


@given(st.lists(st.none() | st.integers(-(2**31), 2**31 - 1)))
def test_a_list_of_integers_is_read_again(value: list[int | None]) -> None:
    assert INTEGERS[1].deserialize("t", INTEGERS[0].serialize("t", value)) == value


@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]))))
def test_a_list_of_texts_is_read_again(value: list[str | None]) -> None:
    assert TEXTS[1].deserialize("t", TEXTS[0].serialize("t", value)) == value


@given(st.binary())
def test_any_bytes_are_a_list_or_refused(data: bytes) -> None:
    for _, deserializer in (INTEGERS, TEXTS):
        try:
            deserializer.deserialize("t", data)
        except SerializationError:
            pass


def test_entries_of_one_size_stand_behind_the_indexes_of_those_that_are_none() -> None:
    assert INTEGERS[0].serialize("t", [7, None]) == bytes.fromhex("00 00000001 00000001 00000002 00000007")


def test_other_entries_carry_their_length_and_none_is_minus_one() -> None:
    assert TEXTS[0].serialize("t", ["ab", None]) == bytes.fromhex("01 00000002 00000002 6162 ffffffff")


@pytest.mark.parametrize(
    "inner", ["org.apache.kafka.common.serialization.Serdes$IntegerSerde", "org.apache.kafka.common.serialization.IntegerSerializer"]
)
def test_the_inner_serializer_comes_from_the_settings(inner: str) -> None:
    serializer = ListSerializer()
    serializer.configure({"default.list.value.serde.inner": inner}, False)
    assert serializer.serialize("t", [7]) == INTEGERS[0].serialize("t", [7])


def test_the_kind_of_list_comes_from_the_settings() -> None:
    deserializer = ListDeserializer()
    settings = {"default.list.key.serde.inner": IntegerDeserializer, "default.list.key.serde.type": tuple}
    deserializer.configure(settings, True)
    assert deserializer.deserialize("t", INTEGERS[0].serialize("t", [7, 8])) == (7, 8)


def test_without_an_inner_serializer_the_setting_to_set_is_named() -> None:
    with pytest.raises(InvalidConfig, match=r"default\.list\.key\.serde\.inner"):
        ListSerializer().configure({}, True)


@pytest.mark.parametrize("made", [INTEGERS[0], INTEGERS[1]])
def test_one_that_has_its_inner_serializer_cannot_be_configured(made: Any) -> None:
    with pytest.raises(InvalidConfig, match="already initialized"):
        made.configure({"default.list.value.serde.inner": IntegerSerializer}, False)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x02",
        b"\x01",
        bytes.fromhex("01 7fffffff"),
        bytes.fromhex("01 00000001 7fffffff"),
        bytes.fromhex("00 7fffffff"),
        b"\x01" + b"\xff" * 4,
    ],
)
def test_counts_and_lengths_beyond_the_data_are_refused(data: bytes) -> None:
    with pytest.raises(SerializationError):
        INTEGERS[1].deserialize("t", data)
