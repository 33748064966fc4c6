"""Makes requests from a seed. Routes come from the console's own table, and names of fields from its sources and templates, so that a new
page is fuzzed without being named here. Values that pages show are learned, and come back in later requests."""

from __future__ import annotations

import functools
import html
import inspect
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final
from urllib.parse import parse_qsl, quote_from_bytes, urlencode

import barnabas.console
from barnabas.console.web.routes import Route
from tests.fuzz.console.values import HOSTS, MARKER, METHODS, NAMES, NUMBERS, TARGETS, TEXTS, TYPES

SOURCES: Final = Path(barnabas.console.__path__[0])
LEARNED_MAX: Final = 200  # values of one field
# A change of these settings or quotas could end the fuzzer's own connections.
HARMLESS_SETTINGS: Final = ("log.cleaner.threads", "background.threads", "no.such.setting", "", MARKER, "listeners ")
_BROKER_SETTINGS: Final = "/brokers/{id}/settings"
_FIELD: Final = re.compile(r"""(?:argument|number_argument|form_list|entered\.get|form\.get)\(\s*"([^"]+)"|\bname="([a-z_.-]+)\"""")
_INPUT: Final = re.compile(r'name="([^"]+)"[^>]*?value="([^"]*)"')
_LINK: Final = re.compile(r'(?:href|action|data-live|hx-get|hx-post)="([^"]*)"')


@dataclass(frozen=True)
class FuzzedRequest:
    """What is sent, and which route it is for."""

    route: str
    method: str
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    pieces: int = 1  # the bytes are sent in so many

    @property
    def wire(self) -> bytes:
        head = b"".join(b"%s: %s\r\n" % (name, value) for name, value in self.headers)
        return b"%s %s HTTP/1.1\r\n%s\r\n%s" % (self.method.encode("latin-1", "replace"), self.target, head, self.body)

    def __str__(self) -> str:
        return f"{self.method} {self.target[:300]!r} (route {self.route}) headers {self.headers!r:.600} body {self.body[:600]!r}"


@dataclass
class Visitor:
    """The cookie and the token of a visitor of the console."""

    host: str
    cookie: str = ""
    token: str = ""


@dataclass
class Requests:
    """`routes` are the console's; `learned` has the values that its pages showed, by the name of the field."""

    routes: Sequence[Route]
    visitor: Visitor
    learned: dict[str, list[str]] = field(default_factory=dict)
    fields: tuple[str, ...] = field(default_factory=lambda: known_fields())

    def learn(self, page: str) -> None:
        """The fields and links of a page."""
        pairs = [(name, html.unescape(value)) for name, value in _INPUT.findall(page)]
        for link in _LINK.findall(page):
            pairs += parse_qsl(html.unescape(link).partition("?")[2])
        for name, value in pairs:
            values = self.learned.setdefault(name, [])
            if name != "csrf" and value not in values and len(values) < LEARNED_MAX and len(self.learned) < 1_000:
                values.append(value)

    def make(self, seed: int, number: int) -> FuzzedRequest:
        """The request of a number. All routes have their turn."""
        random = Random(seed * 7_000_003 + number)
        route = self.routes[number % len(self.routes)]
        target = "/".join(self._segment(random, part) for part in route.path.split("/"))
        if random.random() < 0.1:
            target = random.choice(("/clusters/first", "/clusters/second", "/clusters/second")) + target
        fields = self._fields(random, route)
        body = b""
        query = ""
        if route.method == "POST":
            body = _encoded(random, [("csrf", self.visitor.token), *fields])
        elif fields:
            query = _encoded(random, fields).decode("latin-1")
        method: str = route.method
        if random.random() < 0.06:
            method = random.choice(("GET", "POST", *METHODS))
        if random.random() < 0.04:
            target = random.choice(TARGETS)
        headers = self._headers(random, method, body)
        if random.random() < 0.02:
            body = random.choice((b"", body[:-3], random.randbytes(200), b"a=1&" * 30_000, b"=" * (1 << 20), b"a=%ff&b=%00", b"\xff\xfe"))
            headers = [*(one for one in headers if one[0] != b"content-length"), (b"content-length", b"%d" % len(body))]
        raw = target.encode("utf-8", "surrogateescape") if random.random() < 0.01 else quoted(target)
        return FuzzedRequest(
            f"{route.method} {route.path}",
            method,
            raw + (b"?" + query.encode("latin-1") if query else b""),
            tuple(headers),
            body,
            random.choice((1, 1, 1, 1, 2, 5)),
        )

    def _segment(self, random: Random, part: str) -> str:
        if not part.startswith("{"):
            return part
        name = random.choice(NAMES) if random.random() < 0.6 else self._value(random, part.strip("{}"))
        if part in ("{id}", "{partition}", "{offset}") and random.random() < 0.6:
            name = random.choice(("0", "1", "2"))
        return quote_from_bytes(name.encode("utf-8", "surrogatepass"), safe="") or "~"

    def _fields(self, random: Random, route: Route) -> list[tuple[str, str]]:
        own = fields_of_module(route.handler.__module__)
        names = random.sample(self.fields, random.choice((0, 1, 2, 3, 6, len(self.fields) // 2)))
        if own and random.random() < 0.7:
            names = random.sample(own, random.randint(1, len(own)))
        pairs = [(name, self._value(random, name)) for name in names for _ in range(random.choice((1, 1, 1, 2)))]
        if route.path == _BROKER_SETTINGS and route.method == "POST":
            pairs = [*(pair for pair in pairs if pair[0] != "name"), ("name", random.choice(HARMLESS_SETTINGS))]
        return pairs

    def _value(self, random: Random, name: str) -> str:
        known = self.learned.get(name)
        chance = random.random()
        if known and chance < 0.45:
            return random.choice(known)
        if known and chance < 0.55:
            value = random.choice(known)
            at = random.randrange(len(value) + 1)
            return value[:at] + random.choice(TEXTS)[:20] + value[at + random.randrange(3) :]
        if chance < 0.65:
            return random.choice(NAMES)
        return random.choice(NUMBERS if chance < 0.8 else TEXTS)

    def _headers(self, random: Random, method: str, body: bytes) -> list[tuple[bytes, bytes]]:
        headers = {"host": self.visitor.host, "cookie": self.visitor.cookie, "connection": "close"}
        if method == "POST" or body:
            headers |= {"content-type": "application/x-www-form-urlencoded", "content-length": str(len(body))}
        if random.random() < 0.25:
            headers["hx-request"] = random.choice(("true", "true", "x"))
        if random.random() < 0.3:
            name, values = random.choice(
                (
                    ("host", HOSTS),
                    (
                        "cookie",
                        (
                            "",
                            "a=b",
                            "; ".join(["a=b"] * 500),
                            self.visitor.cookie[:-1],
                            self.visitor.cookie + "x",
                            "=;;=",
                            "a" * 9_000,
                            'x="\\',
                            "é=é",
                        ),
                    ),
                    ("x-csrf-token", ("", "0", "é", self.visitor.token, self.visitor.token.upper(), "a" * 5_000)),
                    ("origin", ("null", f"http://{self.visitor.host}", "http://evil.example", "é", "")),
                    ("sec-fetch-site", ("cross-site", "same-site", "none", "", "é")),
                    ("content-type", TYPES),
                    ("accept", ("text/event-stream", "*/*;q=é", "")),
                    ("x-forwarded-for", ("1.2.3.4", "é, ,", "," * 500)),
                    ("if-modified-since", ("yesterday", "Thu, 01 Jan 1970 00:00:00 GMT", "é")),
                    ("range", ("bytes=0-", "bytes=-1", "bytes=5-1", "x", "bytes=0-1,2-3,4-5", "bytes=999999999999999999999-")),
                    ("content-length", ("-1", "99999999999999999999", "x", "1_0")),
                    ("transfer-encoding", ("chunked", "gzip", "chunked, chunked")),
                    ("expect", ("100-continue", "x")),
                    ("upgrade", ("websocket", "h2c")),
                    ("last-event-id", ("x", "é")),
                    ("accept-encoding", ("gzip;q=x", "é")),
                    ("hx-boosted", ("true",)),
                )
            )
            headers[name] = random.choice(values)
        return [(name.encode(), value.encode("utf-8", "replace")) for name, value in headers.items()]


def known_fields() -> tuple[str, ...]:
    """Names that the console's sources read from queries and forms, and that its templates write."""
    found: set[str] = set()
    for path in sorted((*SOURCES.rglob("*.py"), *SOURCES.rglob("*.html"))):
        for one in _FIELD.findall(path.read_text("utf-8")):
            found.add(one[0] or one[1])
    assert len(found) > 50, "names of fields are found by how the sources write them"
    return tuple(sorted(found - {"csrf"}))


@functools.cache
def fields_of_module(module: str) -> tuple[str, ...]:
    """Names that the module of a page reads."""
    return tuple(sorted({one[0] or one[1] for one in _FIELD.findall(inspect.getsource(sys.modules[module]))}))


def quoted(target: str) -> bytes:
    """A target as the fuzzer means it: only what would end the line is encoded."""
    return quote_from_bytes(target.encode("utf-8", "surrogatepass"), safe="/?&=%#:;@*\\~+,!$'()[]").encode()


def _encoded(random: Random, pairs: list[tuple[str, str]]) -> bytes:
    if random.random() < 0.03:
        random.shuffle(pairs)
    text = urlencode(pairs, errors="surrogatepass")
    if random.random() < 0.03:
        text = text.replace("%", random.choice(("%", "%%", "%2")), 3)
    return text.encode()
