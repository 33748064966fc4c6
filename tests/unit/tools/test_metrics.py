"""`barnabas metrics`, against a small HTTP server that shows the metrics of a test."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from barnabas.tools import metrics
from barnabas.tools.administration.metric_samples import filter_of, number, parse, rates
from barnabas.tools.connecting.metrics_addresses import address_of
from barnabas.tools.connecting.scrape import metrics_url

TEXT = """# HELP bytes_total Bytes.
# TYPE bytes_total counter
bytes_total{topic="a"} 100
bytes_total{topic="b\\"c"} 7
# TYPE size gauge
size 1.5
# TYPE times summary
times{quantile="0.5"} 3
times_count 9
"""


@contextmanager
def shown(*texts: str, status: int = 200, authorization: str | None = None) -> Iterator[str]:
    """The address of a server that answers with one text after the other, and then with the last."""
    left = list(texts)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if authorization is not None and self.headers.get("Authorization") != authorization:
                self.send_error(401)
                return
            body = (left.pop(0) if len(left) > 1 else left[0]).encode() if self.path == "/metrics" else b""
            self.send_response(status if self.path == "/metrics" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_table_of_what_the_filter_takes(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(TEXT) as url:
        assert metrics.main(["--url", url, "--filter", "bytes_*"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["METRIC", "VALUE"], ['bytes_total{topic="a"}', "100"], ['bytes_total{topic="b\\"c"}', "7"]]


def test_a_regular_expression_is_searched_in_the_labels_too(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(TEXT) as url:
        assert metrics.main(["--url", url, "--filter", 'topic="a"|^size', "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["labels"], row["value"]) for row in rows] == [("bytes_total", {"topic": "a"}, 100), ("size", {}, 1.5)]


def test_labels_are_unescaped_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(TEXT) as url:
        metrics.main(["--url", url, "--filter", "b.c", "--filter", "bytes_total", "--format", "json"])
    assert [row["labels"]["topic"] for row in json.loads(capsys.readouterr().out)] == ["a", 'b"c']


def test_the_format_of_prometheus_names_the_brokers_if_there_are_several(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(TEXT) as first, shown(TEXT) as second:
        assert metrics.main(["--url", f"{first},{second}", "--filter", "size", "--format", "prometheus"]) == 0
    one, two = (url.removeprefix("http://") for url in (first, second))
    assert capsys.readouterr().out.splitlines() == [
        "# TYPE size untyped",
        f'size{{instance="{one}"}} 1.5',
        f'size{{instance="{two}"}} 1.5',
    ]


def test_watching_without_a_terminal_prints_lines_with_rates(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("barnabas.tools.metrics.time.sleep", nap)
    with shown(TEXT, TEXT.replace(" 100", " 140")) as url, pytest.raises(KeyboardInterrupt):
        metrics.main(["--url", url, "--filter", '="a"', "--watch", "4"])
    lines = [line.split()[1:] for line in capsys.readouterr().out.splitlines()]
    assert [line[:2] for line in lines] == [['bytes_total{topic="a"}', "100"], ['bytes_total{topic="a"}', "140"]]
    assert (len(lines[0]), lines[1][2][-2:], float(lines[1][2][:-2]) > 0) == (2, "/s", True)
    assert naps == [4, 4]


def test_a_counter_that_began_again_counts_from_zero() -> None:
    samples = parse(TEXT)
    before = {'bytes_total{topic="a"}': 1000.0, "times_count": 5.0, "size": 1.0}
    assert rates(before, samples, 2) == {'bytes_total{topic="a"}': 50.0, "times_count": 2.0}


def test_nothing_listens(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert metrics.main(["--url", url]) == 1
    out = capsys.readouterr()
    assert (out.out + out.err).strip().splitlines() == [
        f"Nothing listens at {url}/metrics: set metrics.listener=http://localhost:9404 for the broker, or name its address with --url"
    ]


def test_a_user_is_sent_and_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(TEXT, authorization="Basic YWxpY2U6c2VjcmV0") as url:
        assert metrics.main(["--url", url, "--user", "alice:secret", "--filter", "size"]) == 0
        capsys.readouterr()
        assert metrics.main(["--url", url]) == 1
    out = capsys.readouterr()
    assert "name a user that may read metrics with --user NAME:PASSWORD" in out.out + out.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--format", "xml"], "--format takes table, json, prometheus, not xml"),
        (["--watch", "0"], "--watch takes a number of seconds greater than 0, not 0"),
        (["--filter", "("], "--filter: ( is neither a name with * and ? nor a regular expression"),
        (["--url", "ftp://x"], "--url ftp://x: it must be http://HOST:PORT or https://HOST:PORT"),
        (["--url", "x:1", "--bootstrap-server", "y:2"], "--url and --bootstrap-server cannot be used together"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert metrics.main(arguments) == 1
    out = capsys.readouterr()
    assert complaint in out.out + out.err


def test_what_is_not_metrics_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with shown("<html>") as url:
        assert metrics.main(["--url", url]) == 1
    out = capsys.readouterr()
    assert "does not show metrics: not a line of metrics: <html>" in out.out + out.err


def test_addresses() -> None:
    assert metrics_url("localhost:9404") == metrics_url("http://localhost:9404/") == "http://localhost:9404/metrics"
    assert metrics_url("https://h:1/other") == "https://h:1/other"
    assert address_of("http://:9404", "broker-1") == "http://broker-1:9404/metrics"
    assert address_of("https://localhost:9404", "broker-1") == "https://localhost:9404/metrics"


def test_filters_and_numbers() -> None:
    sample = parse('size{topic="a"} NaN')[0]
    assert filter_of("siz?")(sample) and not filter_of("siz")(sample) and filter_of("^size.topic=.a")(sample)
    assert [number(value) for value in (3.0, 0.25, 1e20, float("inf"), float("nan"))] == ["3", "0.25", "1e+20", "inf", "nan"]
