"""The files of a broker's log: which line goes where, and when a file is renamed or deleted."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.tools.running import logs
from barnabas.tools.running.log_files import FILES, HOUR_S, SERVER, RotatedFile, file_of

HOUR = 1_700_000_000 // HOUR_S


def at_once(work: object) -> None:
    assert callable(work)
    work()


def test_others_may_not_read_the_files(tmp_path: Path) -> None:
    RotatedFile(str(tmp_path), SERVER).close()
    assert (tmp_path / "server.log").stat().st_mode & 0o027 == 0


def opened(directory: Path, **bounds: int) -> RotatedFile:
    path = directory / SERVER
    path.touch()
    os.utime(path, (HOUR * HOUR_S, HOUR * HOUR_S))
    return RotatedFile(str(directory), SERVER, in_background=at_once, **bounds)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize(
    ("logger", "file"),
    [
        ("barnabas.broker.server.server", "server.log"),
        ("barnabas.client.network.connection", "server.log"),
        ("somebody.else", "server.log"),
        ("state.change.logger", "state-change.log"),
        ("barnabas.controller.term", "controller.log"),
        ("barnabas.controller.states.topic_deletion", "controller.log"),
        ("barnabas.broker.cluster.remote_channel", "controller.log"),
        ("kafka.request.logger", "kafka-request.log"),
        ("kafka.request.logger.Produce", "kafka-request.log"),
        ("barnabas.storage.compaction.cleaner", "log-cleaner.log"),
        ("barnabas.storage.log.log", "server.log"),
        ("kafka.authorizer.logger", "kafka-authorizer.log"),
    ],
)
def test_a_logger_has_its_file(logger: str, file: str) -> None:
    assert file_of(logger) == file


def test_lines_of_one_hour_are_in_one_file(tmp_path: Path) -> None:
    file = opened(tmp_path)
    for second in (0, 1, HOUR_S - 1):
        file.write(f"line {second}", HOUR * HOUR_S + second)
    file.close()
    assert names(tmp_path) == ["server.log"]
    assert (tmp_path / "server.log").read_text() == "line 0\nline 1\nline 3599\n"


def test_the_next_hour_begins_a_new_file(tmp_path: Path) -> None:
    file = opened(tmp_path)
    file.write("old", HOUR * HOUR_S)
    file.write("new", (HOUR + 1) * HOUR_S)
    file.close()
    ended, current = sorted(names(tmp_path), reverse=True)
    assert re.fullmatch(r"server\.log\.\d{4}-\d\d-\d\d-\d\d", ended)
    assert ((tmp_path / ended).read_text(), (tmp_path / current).read_text()) == ("old\n", "new\n")


def test_a_file_that_an_earlier_run_left_is_continued_in_its_hour_only(tmp_path: Path) -> None:
    file = opened(tmp_path)
    file.write("first run", HOUR * HOUR_S)
    file.close()
    os.utime(tmp_path / SERVER, (HOUR * HOUR_S, HOUR * HOUR_S))
    file = RotatedFile(str(tmp_path), SERVER, in_background=at_once)
    file.write("same hour", HOUR * HOUR_S + 1)
    file.write("next hour", (HOUR + 1) * HOUR_S)
    file.close()
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == ["first run\nsame hour\n", "next hour\n"]


def test_a_large_file_is_ended_within_its_hour(tmp_path: Path) -> None:
    file = opened(tmp_path, file_bytes_max=30)
    for number in range(6):
        file.write(f"line number {number}", HOUR * HOUR_S)
    file.close()
    ended = [name for name in names(tmp_path) if name != SERVER]
    assert len(ended) == 2
    assert ended[1] == f"{ended[0]}.1"
    assert all(path.stat().st_size <= 30 for path in tmp_path.iterdir())


@pytest.mark.parametrize("bounds", [{"old_files_max": 3}, {"old_bytes_max": 15}])
def test_the_oldest_files_are_deleted(tmp_path: Path, bounds: dict[str, int]) -> None:
    other = tmp_path / "server.log.notes"  # not ours
    other.write_text("mine")
    file = opened(tmp_path, **bounds)
    for hour in range(10):
        file.write(f"{hour:4}", (HOUR + hour) * HOUR_S)
        os.utime(tmp_path / SERVER, ((HOUR + hour) * HOUR_S,) * 2)
    file.close()
    kept = sorted(path.read_text().strip() for path in tmp_path.iterdir() if path != other)
    assert kept == ["6", "7", "8", "9"]
    assert other.exists()


def test_a_line_that_cannot_be_written_goes_to_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "logs").mkdir()
    file = opened(tmp_path / "logs")
    file.write("first", HOUR * HOUR_S)
    (tmp_path / "logs" / SERVER).unlink()
    (tmp_path / "logs").rmdir()
    file.write("second", (HOUR + 1) * HOUR_S)
    file.write("third", (HOUR + 1) * HOUR_S)
    file.close()
    reason, *lines = capsys.readouterr().err.splitlines()
    assert reason.startswith(f"barnabas: {tmp_path}/logs/server.log cannot be written")
    assert lines == ["second", "third"]


@pytest.fixture
def kept_logging() -> Iterator[None]:
    """Restores what `configure` changes."""
    root = logging.getLogger()
    handlers, raises = root.handlers[:], logging.raiseExceptions
    levels = {logger: logger.level for logger in (root, logging.getLogger("kafka.request.logger"))}
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    logging.raiseExceptions = raises
    for logger, level in levels.items():
        logger.setLevel(level)


@pytest.mark.usefixtures("kept_logging")
def test_a_directory_gets_every_file_and_standard_error_the_server_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("warning", "text", directory=str(tmp_path / "logs"))
    logging.getLogger("barnabas.broker.server.server").info("The broker has started")
    logging.getLogger("barnabas.broker.server.server").warning("The disk is slow")
    logging.getLogger("barnabas.controller.term").error("The controller failed")
    logging.getLogger("state.change.logger").info("Changed partition t-0")
    directory = tmp_path / "logs"
    assert names(directory) == sorted([SERVER, *FILES.values()])
    started, slow = (directory / SERVER).read_text().splitlines()
    assert re.fullmatch(
        r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] INFO The broker has started \(kafka\.server\.KafkaServer\)",
        started,
    )
    assert slow.endswith("] WARN The disk is slow (kafka.server.KafkaServer)")
    assert "The controller failed (kafka.controller.KafkaController)" in (directory / "controller.log").read_text()
    assert "Changed partition t-0 (state.change.logger)" in (directory / "state-change.log").read_text()
    assert [line.partition("KafkaServer ")[2] for line in capsys.readouterr().err.splitlines()] == ["The disk is slow"]


@pytest.mark.usefixtures("kept_logging")
def test_without_a_directory_all_lines_are_on_one_stream(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "text")
    logging.getLogger("barnabas.controller.term").info("This broker is the controller")
    logging.getLogger("state.change.logger").info("Changed partition t-0")
    messages = [line.split(" ", 2)[2].strip() for line in capsys.readouterr().err.splitlines()]
    assert messages == ["kafka.controller.KafkaController This broker is the controller", "state.change.logger Changed partition t-0"]


@pytest.mark.usefixtures("kept_logging")
def test_a_directory_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        logs.configure("info", "text", directory=str(tmp_path / "file"))
