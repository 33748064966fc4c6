"""The progress bar that all tools share: its line, its rate, and nothing in a pipe."""

from __future__ import annotations

import sys

import pytest

from barnabas.tools.command_line import progress as progress_module
from barnabas.tools.command_line.progress import BYTES, ProgressBar, ProgressRate, RedrawnLine, duration_text, progress_line, size_text


def test_the_line_has_share_amounts_rate_and_time_left() -> None:
    assert progress_line("broker 1", 50 << 20, 200 << 20, BYTES, 10 << 20) == (
        "broker 1 ████████······················  25%  50.0 MiB of 200.0 MiB, 10.0 MiB/s, 15 s left"
    )
    assert progress_line("counted", 3, 1_200, "orders", 2.0) == (
        "counted ······························   0%  3 of 1,200 orders, 2.0/s, 9 min 58 s left"
    )


def test_without_a_rate_or_at_the_end_no_time_is_left() -> None:
    assert progress_line("x", 0, 10, "tasks", None).endswith("0 of 10 tasks")
    assert progress_line("x", 10, 10, "tasks", 5.0).endswith("10 of 10 tasks, 5.0/s")
    assert "100%" in progress_line("x", 0, 0, "tasks", None)


def test_the_rate_is_that_of_the_last_thirty_seconds() -> None:
    rate = ProgressRate()
    assert rate.per_s() is None
    for second in range(100):
        rate.at(second if second < 60 else 60 + (second - 60) * 10, second)
    assert rate.per_s() == pytest.approx(10)


def test_a_rate_of_nothing_is_unknown() -> None:
    rate = ProgressRate()
    rate.at(5, 0.0)
    rate.at(5, 9.0)
    assert rate.per_s() is None


def test_sizes_and_times_have_units() -> None:
    assert [size_text(12), size_text(1536), size_text(5 * 2**40)] == ["12 B", "1.5 KiB", "5.0 TiB"]
    assert [duration_text(59), duration_text(80), duration_text(3 * 3600 + 120)] == ["59 s", "1 min 20 s", "3 h 2 min"]


def test_in_a_pipe_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar("copying", 10, BYTES)
    bar.add(5)
    bar.end()
    assert capsys.readouterr() == ("", "")
    assert bar.done == 5


def test_on_a_terminal_the_line_is_redrawn_and_removed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress_module, "_REDRAW_S", 0)
    monkeypatch.setenv("COLUMNS", "60")
    bar = ProgressBar("copying", 10, "files")
    bar.at(5)
    bar.at(6, 20)
    bar.end()
    out, err = capsys.readouterr()
    assert out == ""
    first, second, last = err.split("\r")[1:4]
    assert first.startswith("copying ███████████████···············  50%  5 of 10 files")
    assert "30%  6 of 20 files" in second
    assert last.strip() == ""
    assert all(len(line) < 60 for line in err.split("\r"))


def test_a_shorter_text_leaves_nothing_of_the_longer_one(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    line = RedrawnLine()
    line.show("a long text")
    line.show("short")
    assert capsys.readouterr().err == "\ra long text\rshort      "


def test_a_line_on_a_terminal_is_not_wrapped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    RedrawnLine().show("x" * 100)
    assert capsys.readouterr().err == "\r" + "x" * 39
