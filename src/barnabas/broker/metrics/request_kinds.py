# Compiled by mypyc: src/compiled.toml lists this module.
"""The kinds of requests that are measured apart, under the names of Kafka's `request` tag: one for each API, and two for Fetch.

A kind exists from its first request on. There are no more kinds than APIs that this broker serves, whatever clients send.
"""

from __future__ import annotations

from typing import Final

from barnabas.network.request_metrics import RequestMetrics
from barnabas.protocol.registry import Api

FETCH: Final = "Fetch"
FETCH_CONSUMER: Final = "FetchConsumer"
FETCH_FOLLOWER: Final = "FetchFollower"


class RequestKinds:
    """Only the dispatcher calls `of` and `of_fetch`, with APIs that have a handler."""

    def __init__(self) -> None:
        self._by_key: dict[int, RequestMetrics] = {}
        self._consumers: RequestMetrics | None = None
        self._followers: RequestMetrics | None = None

    def of(self, api: Api) -> RequestMetrics:
        """The kind of any API but Fetch."""
        kind = self._by_key.get(api.key)
        if kind is None:
            kind = self._by_key[api.key] = RequestMetrics(api.name, api.highest_version + 1)
        return kind

    def of_fetch(self, api: Api, is_follower: bool) -> RequestMetrics:
        kind = self._followers if is_follower else self._consumers
        if kind is None:
            kind = RequestMetrics(FETCH_FOLLOWER if is_follower else FETCH_CONSUMER, api.highest_version + 1)
            if is_follower:
                self._followers = kind
            else:
                self._consumers = kind
        return kind

    def all(self) -> list[RequestMetrics]:
        kinds = list(self._by_key.values())
        return kinds + [kind for kind in (self._consumers, self._followers) if kind is not None]

    def by_name(self) -> dict[str, list[RequestMetrics]]:
        """The kinds by Kafka's name. Fetch is the sum of consumers and followers."""
        named = {kind.name: [kind] for kind in self.all()}
        fetches = [kind for kind in (self._consumers, self._followers) if kind is not None]
        if fetches:
            named[FETCH] = fetches
        return named
