"""kcat, the command line client: keys and headers from its arguments, one message per file, and lengths in its output to read it by."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.integration.clients.client import BEGINNING, WAIT_S, Refused, place
from tests.integration.clients.records import MEGABYTE, Record

FORMAT = "%o %T %K %S %h\n%k%s\n"  # offset, timestamp, lengths (-1 for null), headers; then the bytes of key and value


class Kcat:
    def __init__(self, bootstrap: str, directory: Path) -> None:
        program = shutil.which("kcat") or shutil.which("kafkacat")
        if program is None:
            pytest.skip("install kcat (Debian: apt-get install kcat)")
        self._command = [program, "-b", bootstrap, "-p", "0"]
        self._file = directory / "value"

    def produce(self, topic: str, codec: str, record: Record) -> None:
        """Sends one record; kcat stamps it with the time of now."""
        options = ["-P", "-t", topic, "-z", codec, "-X", f"message.max.bytes={4 * MEGABYTE}", "-X", f"message.timeout.ms={WAIT_S * 1000}"]
        for name, value in record.headers:
            options += ["-H", name if value is None else f"{name}={value.decode()}"]
        if record.value is None:
            # An empty file is not sent at all; a line that ends after its key is a record without a value.
            self._run([*options, "-Z", "-K", "\t"], (record.key or b"") + b"\t\n")
            return
        if record.key is not None:
            options += ["-k", record.key.decode()]
        self._file.write_bytes(record.value)
        self._run([*options, str(self._file)])

    def consume(self, topic: str, start: str, count: int) -> list[Record]:
        kind, number = place(start)
        offset = {BEGINNING: BEGINNING, "offset": str(number), "time": f"s@{number}"}[kind]
        return _parse(self._run(["-C", "-q", "-e", "-t", topic, "-o", offset, "-c", str(count), "-f", FORMAT]))

    def _run(self, options: Sequence[str], text: bytes = b"") -> bytes:
        done = subprocess.run([*self._command, *options], input=text, capture_output=True, timeout=WAIT_S, check=False)
        if done.returncode != 0:
            raise Refused(done.stderr.decode())
        return done.stdout


def _parse(output: bytes) -> list[Record]:
    records = []
    position = 0
    while position < len(output):
        end = output.index(b"\n", position)
        offset, timestamp_ms, key_length, value_length, headers = output[position:end].decode().split(" ", 4)
        key, position = _take(output, end + 1, int(key_length))
        value, position = _take(output, position, int(value_length))
        pairs = [pair.split("=", 1) for pair in headers.split(",") if pair]
        records.append(Record(int(offset), int(timestamp_ms), key, value, tuple((name, text.encode()) for name, text in pairs)))
        position += 1
    return records


def _take(output: bytes, position: int, length: int) -> tuple[bytes | None, int]:
    if length < 0:
        return None, position
    return output[position : position + length], position + length
