"""The address of a page as a query."""

import pytest

from barnabas.console.messages.query_text import QueryError, parse_key, parse_limit, parse_partitions, parse_query, parse_time

NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2026-11-18 20:15", 1_795_032_900_000),
        ("2026-11-18T21:15:00+01:00", 1_795_032_900_000),
        ("1795032900000", 1_795_032_900_000),
        ("-15m", NOW - 900_000),
        ("- 2 d", NOW - 172_800_000),
        ("1960-01-01", 0),
    ],
)
def test_times(text: str, ms: int) -> None:
    assert parse_time(text, NOW) == ms


def test_no_more_partitions_are_read_than_can_be_named() -> None:
    with pytest.raises(QueryError, match="At most 1000 partitions"):
        parse_partitions("0-999,1000-1999,what is behind is not read")


def test_partitions_keys_and_limits() -> None:
    assert parse_partitions("0, 3-5,3") == {0, 3, 4, 5}
    assert parse_key("00 ff", "hex") == b"\0\xff"
    assert parse_key("42", "long") == (42).to_bytes(8, "big")
    assert parse_key("", "long") is None
    assert (parse_limit("100"), parse_limit("100000"), parse_limit("x")) == (100, 50, 50)


@pytest.mark.parametrize(
    "arguments",
    [
        {"start": "oldest"},
        {"start": "offset", "offset": "x"},
        {"start": "offset", "offset": ""},
        {"start": "time", "time": "yesterday"},
        {"start": "time", "time": "9999999999999999999999"},
        {"partition": "a"},
        {"partition": "0-99999999"},
        {"partition": "٣"},
        {"key": "zz", "key_as": "hex"},
        {"key": "99999999999", "key_as": "int"},
        {"key": "x", "key_as": "uuid"},
        {"kind": "expression", "filter": "value.x"},
        {"isolation": "serializable"},
        {"keys": "xml"},
        {"cursor": "damaged"},
    ],
)
def test_what_is_not_understood_is_refused_in_words(arguments: dict[str, str]) -> None:
    with pytest.raises(QueryError):
        parse_query("orders", lambda name: arguments.get(name, ""), NOW)


def test_nothing_is_the_newest_messages() -> None:
    query = parse_query("orders", lambda name: "", NOW)
    assert query.is_backwards and query.filter is None and query.partitions == frozenset()
