"""The dump-log tool without Apache Kafka beside it: stored dumps, permissions, damage and the words of its errors."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from barnabas import cli
from barnabas.records.builder import BatchBuilder
from barnabas.tools import dump_log
from tests import golden

LOG = "00000000000000000000.log"


def batch(base_offset: int, *values: bytes | None) -> bytes:
    builder = BatchBuilder(base_offset=base_offset)
    for value in values:
        builder.append(1000, b"k", value)
    return builder.build()


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("partition", [path for path in golden.partitions("4.2.0") if not golden.is_internal(path)], ids=golden.name)
def test_the_dump_of_a_golden_log_is_the_one_kafka_printed(
    partition: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(partition)
    files = ",".join(file.name for file in golden.files(partition))
    assert dump_log.main(["--deep-iteration", "--print-data-log", "--files", files]) == 0
    printed = capsys.readouterr()
    stored = (partition / "DUMP.txt").read_text("utf-8")
    assert printed.out + printed.err.replace(f"{partition}/", "") == stored


def test_a_log_that_ends_inside_a_batch_shows_the_bytes_left_over(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / LOG).write_bytes(batch(0, b"a") + batch(1, b"b")[:-3])
    assert dump_log.main(["--files", LOG]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"Found {len(batch(1, b'b')) - 3} invalid bytes at the end of {LOG}"


def test_a_limit_of_bytes_ends_the_dump_without_a_word_about_the_rest(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / LOG).write_bytes(batch(0, b"a") + batch(1, b"b"))
    assert dump_log.main(["--max-bytes", str(len(batch(0, b"a")) + 9), "--files", LOG]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[2].partition(" ")[0] for line in lines[2:]] == ["0"]


def test_gaps_between_offsets_are_listed_the_last_one_first(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / LOG).write_bytes(batch(0, b"a") + batch(5, b"b") + batch(9, b"c"))
    assert dump_log.main(["--deep-iteration", "--files", LOG]) == 0
    assert capsys.readouterr().err.splitlines() == [
        f"Non-consecutive offsets in {directory}/{LOG}",
        "  5 is followed by 9",
        "  0 is followed by 5",
    ]


def test_batches_before_a_damaged_one_are_shown_and_the_error_names_file_and_position(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    intact = batch(0, b"a")
    damaged = bytearray(batch(1, b"b"))
    struct.pack_into(">i", damaged, 57, 3)  # claims three records
    (directory / LOG).write_bytes(intact + damaged)
    assert dump_log.main(["--deep-iteration", "--files", LOG]) == 1
    printed = capsys.readouterr()
    assert "baseOffset: 0" in printed.out and "isvalid: false" in printed.out
    assert printed.err.startswith(f"{LOG}, batch at position {len(intact)}: ")


def test_a_record_too_short_for_its_decoder_is_an_error_that_names_the_offset(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / LOG).write_bytes(batch(7, b"four"))
    assert dump_log.main(["--value-decoder-class", "org.apache.kafka.tools.api.LongDecoder", "--files", LOG]) == 1
    assert "needs 8 bytes, and the record at offset 7 has 4" in capsys.readouterr().err


def test_an_unknown_decoder_is_refused_before_anything_is_read(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dump_log.main(["--key-decoder-class", "org.example.Decoder", "--files", LOG]) == 1
    assert capsys.readouterr().err.startswith("There is no decoder class org.example.Decoder")


def test_a_file_of_no_known_kind_is_passed_over(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "leader-epoch-checkpoint").write_text("0\n0\n")
    assert dump_log.main(["--files", "leader-epoch-checkpoint"]) == 0
    assert capsys.readouterr() == ("Dumping leader-epoch-checkpoint\n", "Ignoring unknown file leader-epoch-checkpoint\n")


def test_a_missing_file_is_named(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dump_log.main(["--files", LOG]) == 1
    assert capsys.readouterr().err == f"{LOG}: No such file or directory\n"


def test_a_snapshot_with_a_wrong_checksum_is_reported_and_the_next_file_dumped(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "00000000000000000003.snapshot").write_bytes(b"\0\1" + bytes(8))
    (directory / LOG).write_bytes(batch(0, b"a"))
    assert dump_log.main(["--files", f"00000000000000000003.snapshot,{LOG}"]) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith("Snapshot is corrupt (CRC is no longer valid). Stored crc: 0.")
    assert "baseOffset: 0" in printed.out


def test_dumping_never_changes_a_file(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = golden.LOGS / "kafka-4.2.0" / "first" / "g-txn-0"
    for file in golden.files(source):
        (directory / file.name).write_bytes(file.read_bytes() + bytes(24 if file.suffix.endswith("index") else 0))
    before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in directory.iterdir()}
    for file in directory.iterdir():
        file.chmod(0o400)
    files = ",".join(before)
    for options in ([], ["--print-data-log"], ["--verify-index-only"], ["--index-sanity-check"]):
        dump_log.main([*options, "--files", files])
    assert {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in directory.iterdir()} == before


def test_the_command_lists_its_tools_and_knows_no_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    assert "dump-log" in capsys.readouterr().out
    assert cli.main(["make-coffee"]) == 1
    assert capsys.readouterr().err == "barnabas: there is no tool 'make-coffee'; `barnabas --help` lists them\n"


def test_the_command_hands_its_arguments_to_the_tool(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / LOG).write_bytes(batch(0, b"a"))
    assert cli.main(["dump-log", "--print-data-log", "--files", LOG]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("key: k payload: a")
