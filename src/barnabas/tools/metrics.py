"""Show the metrics of brokers, filtered, and with --watch the rates of counters. (Not in Kafka.)

It reads the address that metrics.listener sets for a broker, over HTTP or HTTPS, and needs neither Prometheus nor JMX.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from barnabas.tools.administration.metric_samples import Filter, Sample, chosen, filter_of, number, parse, rates
from barnabas.tools.command_line.failures import Terse, failed_with_message, finish
from barnabas.tools.command_line.options import Option, Options, UsageError
from barnabas.tools.command_line.text import print_json, print_table
from barnabas.tools.connecting.connect import command_config_option
from barnabas.tools.connecting.scrape import DEFAULT_URL, ScrapeCredentials, metrics_url, scrape

ABOUT: Final = "Shows the metrics of brokers."
RUNS_ALONE: Final = True  # without any option, it shows the metrics of the default address
_INTERVAL_S: Final = 2
_TO_THE_TOP: Final = "\x1b[H\x1b[J"
_FORMATS: Final = ("table", "json", "prometheus")
OPTIONS: Final = (
    Option(
        "url",
        f"The address of metrics.listener of a broker; several separated by commas, or the option several times. (default: {DEFAULT_URL})",
        "required",
        described_as="http://HOST:PORT",
        separator=",",
    ),
    Option(
        "bootstrap-server",
        "Instead of --url: a broker of a cluster. The addresses are those of metrics.listener of all brokers.",
        "required",
        described_as="server to connect to",
    ),
    command_config_option(),
    Option(
        "filter",
        "Which metrics to show: a name with * and ?, or a regular expression that is searched in a name with its labels. The option can be "
        "given several times.",
        "required",
        described_as="pattern",
    ),
    Option(
        "watch",
        f"Read again every so many seconds (default: {_INTERVAL_S}), until ^C, and show the rates of counters per second.",
        "optional",
        "Integer",
        "seconds",
    ),
    Option("format", "table, json or prometheus.", "required", described_as="format", default="table"),
    Option("ca", "For https: the file with the certificates of the authorities that are trusted.", "required", described_as="file"),
    Option("user", "The user who reads, if metrics are not open to all. Without a password it is asked for.", "required",
           described_as="NAME[:PASSWORD]"),
)  # fmt: skip

Read = dict[str, list[Sample]]  # by address


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> int:
    options = Options(OPTIONS, arguments)
    if arguments:
        options.maybe_help_or_version(ABOUT)
    form = options.text("format")
    if form not in _FORMATS:
        raise UsageError(f"--format takes {', '.join(_FORMATS)}, not {form}")
    interval_s = _interval(options)
    filters = _filters(options)
    credentials = ScrapeCredentials(options.optional("ca"), _user(options))
    urls = _urls(options)
    before: dict[str, dict[str, float]] = {}
    before_s = 0.0
    while True:
        now_s = time.monotonic()
        try:
            read = {url: _read(url, credentials, filters) for url in urls}
        except Terse as error:
            if interval_s is None:
                raise
            print(error, file=sys.stderr, flush=True)
        else:
            changes = {url: rates(before.get(url, {}), samples, now_s - before_s) for url, samples in read.items()}
            _show(read, changes, form, watching=interval_s is not None)
            before = {url: {sample.series: sample.value for sample in samples} for url, samples in read.items()}
            before_s = now_s
        if interval_s is None:
            return 0
        time.sleep(interval_s)


def _interval(options: Options) -> int | None:
    if not options.has("watch"):
        return None
    interval_s = options.integer("watch") if options.texts("watch") else _INTERVAL_S
    if interval_s <= 0:
        raise UsageError(f"--watch takes a number of seconds greater than 0, not {interval_s}")
    return interval_s


def _filters(options: Options) -> list[Filter]:
    try:
        return [filter_of(pattern) for pattern in options.texts("filter")]
    except ValueError as error:
        raise UsageError(f"--filter: {error}") from None


def _user(options: Options) -> str | None:
    user = options.optional("user")
    if user is None or ":" in user:
        return user
    from getpass import getpass

    return f"{user}:{getpass(f'Password of {user}: ')}"


def _urls(options: Options) -> list[str]:
    if not options.has("bootstrap-server"):
        return list(dict.fromkeys(metrics_url(url) for url in options.texts("url") or [DEFAULT_URL]))
    if options.has("url"):
        raise UsageError("--url and --bootstrap-server cannot be used together")
    from barnabas.tools.connecting.metrics_addresses import metrics_addresses

    return metrics_addresses(options.text("bootstrap-server"), options.optional("command-config"))


def _read(url: str, credentials: ScrapeCredentials, filters: Sequence[Filter]) -> list[Sample]:
    text = scrape(url, credentials)
    try:
        return chosen(parse(text), filters)
    except ValueError as error:
        raise Terse(f"{url} does not show metrics: {error}. Check that it is the address of metrics.listener") from None


def _show(read: Read, changes: Mapping[str, Mapping[str, float]], form: str, *, watching: bool) -> None:
    if form == "json":
        rows = [_as_json(url, sample, changes[url].get(sample.series)) for url, samples in read.items() for sample in samples]
        print(json.dumps(rows), flush=True) if watching else print_json(rows)
    elif form == "prometheus":
        for line in _text(read):
            print(line)
        sys.stdout.flush()
    elif watching and not sys.stdout.isatty():
        for line in _lines(read, changes):
            print(line)
        sys.stdout.flush()
    else:
        if watching:
            print(_TO_THE_TOP, end="")
        _print_table(read, changes, watching=watching)


def _as_json(url: str, sample: Sample, rate: float | None) -> dict[str, Any]:
    row = {"url": url, "name": sample.name, "labels": sample.label_values(), "value": sample.value}
    return row if rate is None else {**row, "per_second": rate}


def _text(read: Read) -> list[str]:
    """The samples of a name stand together, as the format requires. Those of several brokers have the label `instance`."""
    by_name: dict[str, list[str]] = {}
    kinds: dict[str, str] = {}
    for url, samples in read.items():
        instance = f'instance="{url.partition("://")[2].partition("/")[0]}"' if len(read) > 1 else ""
        for sample in samples:
            labels = ",".join(filter(None, (sample.labels, instance)))
            kinds.setdefault(sample.name, "counter" if sample.is_counter else "untyped")
            by_name.setdefault(sample.name, []).append(
                f"{sample.name}{{{labels}}} {sample.value!r}" if labels else f"{sample.name} {sample.value!r}"
            )
    return [line for name, lines in by_name.items() for line in (f"# TYPE {name} {kinds[name]}", *lines)]


def _lines(read: Read, changes: Mapping[str, Mapping[str, float]]) -> list[str]:
    at = time.strftime("%H:%M:%S")
    lines = []
    for url, samples in read.items():
        where = f" {url}" if len(read) > 1 else ""
        for sample in samples:
            rate = changes[url].get(sample.series)
            lines.append(f"{at}{where} {sample.series} {number(sample.value)}" + ("" if rate is None else f" {rate:.2f}/s"))
    return lines


def _print_table(read: Read, changes: Mapping[str, Mapping[str, float]], *, watching: bool) -> None:
    headers = [*(["BROKER"] if len(read) > 1 else []), "METRIC", "VALUE", *(["PER SECOND"] if watching else [])]
    rows = []
    for url, samples in read.items():
        for sample in samples:
            row = [sample.series, number(sample.value)]
            if len(read) > 1:
                row.insert(0, url.partition("://")[2].partition("/")[0])
            if watching:
                rate = changes[url].get(sample.series)
                row.append("" if rate is None else f"{rate:.2f}")
            rows.append(row)
    if rows:
        print_table(headers, rows)
    else:
        print("No metric matches --filter.")
    sys.stdout.flush()
