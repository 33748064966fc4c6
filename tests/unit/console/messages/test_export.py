"""Files of messages."""

import asyncio
import csv
import io
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from barnabas.console.messages.export import DownloadTooLarge, ExportRecord, export_of, write_file
from barnabas.console.messages.parquet import write_parquet
from tests.unit.console.messages.records import message

MESSAGES = [
    message(b'{"a": 1.10,\n "b": "x"}', b"k1", (("h", b"v"), ("n", None))),
    message("=cmd|' /C calc'!A0 é".encode(), b"@x"),
    message(b"\xff\xfe", None),
    message(None, b"tombstone"),
    message(b'two\nlines,"quoted"\r\n', b"-5"),
    message(b'{"card": "4111"}', masks=({"mask": "$.card"},)),
    message(b"4111", masks=({"mask": "$.card"},)),
]


async def batches(messages: list[Any]) -> AsyncGenerator[list[ExportRecord], None]:
    for number in range(0, len(messages), 3):
        yield [export_of(one)[0] for one in messages[number : number + 3]]


def written(file_format: Any, messages: list[Any] = MESSAGES, **bounds: int) -> bytes:
    async def write() -> bytes:
        pieces = (
            write_parquet(batches(messages), **bounds) if file_format == "parquet" else write_file(batches(messages), file_format, **bounds)
        )
        return b"".join([piece async for piece in pieces])

    return asyncio.run(write())


def test_json_lines_have_values_as_json_with_their_digits() -> None:
    lines = written("jsonl").decode().splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == len(MESSAGES)
    assert '"a": 1.10' in lines[0]
    assert rows[0]["value"] == {"a": 1.1, "b": "x"} and rows[0]["value_form"] == "json"
    assert rows[0]["headers"] == [{"name": "h", "value": "v", "form": "text"}, {"name": "n", "value": None, "form": "null"}]
    assert rows[0]["timestamp"] == "2023-11-14T22:13:20.000Z"
    assert (rows[2]["value"], rows[2]["value_form"], rows[2]["key"]) == ("//4=", "base64", None)
    assert (rows[3]["value"], rows[3]["value_form"]) == (None, "null")
    assert rows[4]["value"] == 'two\nlines,"quoted"\r\n'
    assert (rows[6]["value"], rows[6]["value_form"]) == (None, "withheld")


def test_a_spreadsheet_runs_no_formula() -> None:
    rows = list(csv.DictReader(io.StringIO(written("csv").decode(), newline="")))
    assert len(rows) == len(MESSAGES)
    assert rows[1]["value"].startswith("'=cmd") and rows[1]["key"] == "'@x" and rows[4]["key"] == "'-5"
    assert rows[4]["value"] == 'two\nlines,"quoted"\r\n'


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r=", "\n=", " =", "＝", "＠"])
def test_every_start_of_a_formula_is_guarded(start: str) -> None:
    rows = list(csv.DictReader(io.StringIO(written("csv", [message(f"{start}1".encode())]).decode(), newline="")))
    assert rows[0]["value"] == f"'{start}1"


def test_parquet_is_written_by_a_child_process() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = parquet.read_table(io.BytesIO(written("parquet"))).to_pylist()
    assert [row["value"] for row in rows[1:4]] == ["=cmd|' /C calc'!A0 é", "//4=", None]
    assert json.loads(rows[0]["value"]) == {"a": 1.10, "b": "x"}
    assert rows[0]["timestamp"].isoformat() == "2023-11-14T22:13:20+00:00"
    assert "4111" not in repr(rows)


@pytest.mark.parametrize("file_format", ["jsonl", "csv"])
def test_a_masked_field_is_in_no_file(file_format: str) -> None:
    assert b"4111" not in written(file_format)


def test_a_file_that_is_too_large_is_broken_off() -> None:
    with pytest.raises(DownloadTooLarge):
        written("jsonl", bytes_max=300)


def test_a_scan_that_fails_ends_the_child_process_too() -> None:
    async def failing() -> AsyncGenerator[list[ExportRecord], None]:
        yield [export_of(MESSAGES[0])[0]]
        raise RuntimeError("the broker is gone")

    async def write() -> None:
        async for _ in write_parquet(failing()):
            pass

    with pytest.raises(RuntimeError, match="the broker is gone"):
        asyncio.run(write())
