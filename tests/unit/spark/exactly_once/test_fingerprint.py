"""The fingerprint of a batch: the same for the same rows, however they are spread; another for other rows."""

from __future__ import annotations

from random import Random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pyspark_barnabas.exactly_once import fingerprint as module
from pyspark_barnabas.exactly_once.fingerprint import fingerprint

Row = tuple[bytes | None, bytes | None]
_contents = st.none() | st.binary(max_size=20) | st.binary(min_size=250, max_size=270)
_rows = st.lists(st.tuples(_contents, _contents), max_size=12)


def batch_of(rows: list[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"key": pa.array([row[0] for row in rows], pa.binary()), "value": pa.array([row[1] for row in rows], pa.binary())}
    )


def total(*parts: list[Row]) -> int:
    return sum(fingerprint(batch_of(part), "t") for part in parts) % 2**64


@given(_rows, st.integers(0, 12), st.integers())
def test_order_and_spreading_do_not_matter(rows: list[Row], cut: int, seed: int) -> None:
    shuffled = list(rows)
    Random(seed).shuffle(shuffled)
    assert total(rows) == total(shuffled[:cut], shuffled[cut:])


@given(_rows, _rows)
def test_other_rows_have_another_fingerprint(rows: list[Row], others: list[Row]) -> None:
    assert (total(rows) == total(others)) == (sorted(map(repr, rows)) == sorted(map(repr, others)))


@given(_rows.filter(bool), st.integers(0, 11))
def test_a_slice_is_hashed_as_if_it_were_alone(rows: list[Row], start: int) -> None:
    assert fingerprint(batch_of(rows).slice(start, 3), "t") == fingerprint(batch_of(rows[start : start + 3]), "t")


def test_key_and_value_are_told_apart() -> None:
    assert total([(b"a", b"b")]) != total([(b"b", b"a")])
    assert total([(b"a", None)]) != total([(b"a", b"")])


def test_topics_are_told_apart() -> None:
    batch = batch_of([(b"a", b"b")])
    assert fingerprint(batch, "t") != fingerprint(batch, "u")
    named = batch.append_column("topic", pa.array(["t"]))
    assert fingerprint(named, None) == fingerprint(batch, "t")


def test_many_rows_are_hashed_in_parts() -> None:
    rows: list[Row] = [(str(number).encode(), b"x" * (number % 300)) for number in range(module.ROWS_TOGETHER + 10)]
    assert total(rows) == total(rows[:5000], rows[5000:])
