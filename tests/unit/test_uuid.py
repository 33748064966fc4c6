from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.uuid import Uuid


def test_an_id_is_written_as_kafka_writes_it() -> None:
    uuid = Uuid.from_string("jX5GglsRRQqaz-c3me35uA")
    assert uuid.value.hex() == "8d7e46825b11450a9acfe73799edf9b8"
    assert str(uuid) == "jX5GglsRRQqaz-c3me35uA"


def test_padding_is_read_and_not_written() -> None:
    assert str(Uuid.from_string("AAAAAAAAAAAAAAAAAAAAAQ==")) == "AAAAAAAAAAAAAAAAAAAAAQ"


def test_the_reserved_ids() -> None:
    assert str(Uuid.ZERO) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert str(Uuid.METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.mark.parametrize(
    "text", ["", "abc", "jX5GglsRRQqaz+c3me35uA", "jX5GglsRRQqaz-c3me35u", "jX5GglsRRQqaz-c3me35uA=", "jX5GglsRRQqaz-c3me35u\n"]
)
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a base64-encoded UUID"):
        Uuid.from_string(text)


def test_a_long_text_is_not_repeated_whole_in_the_error() -> None:
    with pytest.raises(ValueError, match=r"prefix `x{24}` is too long"):
        Uuid.from_string("x" * 1000)


def test_an_id_has_sixteen_bytes() -> None:
    with pytest.raises(ValueError, match="16 bytes, not 4"):
        Uuid(b"four")


def test_one_seed_gives_one_id() -> None:
    assert Uuid.random(Random(1)) == Uuid.random(Random(1))


@given(st.randoms(use_true_random=False))
def test_a_random_id_is_of_version_4_and_is_no_option_of_a_command(random: Random) -> None:
    uuid = Uuid.random(random)
    assert uuid.value[6] >> 4 == 4
    assert uuid.value[8] >> 6 == 0b10
    assert not str(uuid).startswith("-")


@given(st.binary(min_size=16, max_size=16))
def test_every_id_survives_its_text(value: bytes) -> None:
    assert Uuid.from_string(str(Uuid(value))) == Uuid(value)
