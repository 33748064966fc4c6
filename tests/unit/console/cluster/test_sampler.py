"""When a page sees a change."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from barnabas.client.admin.topics.topic_descriptions import TopicDescription
from barnabas.console.cluster.sampler import FAST_MS, Sampler
from barnabas.errors import KafkaError
from barnabas.uuid import Uuid


class Cluster:
    """An admin client of a cluster with topics and nothing else. A sample that has listed them goes on when `gate` is open."""

    def __init__(self) -> None:
        self.topics = ["old"]
        self.gate = asyncio.Event()
        self.gate.set()
        self.listed = asyncio.Event()

    async def describe_cluster(self, **_: object) -> Any:
        return SimpleNamespace(cluster_id="c", controller=None, nodes=())

    async def list_topics(self, **_: object) -> list[str]:
        return list(self.topics)

    async def describe_topics(self, names: list[str], **_: object) -> Any:
        self.listed.set()
        await self.gate.wait()
        return SimpleNamespace(successes={name: TopicDescription(name, False, (), None, Uuid.ZERO) for name in names})

    def __getattr__(self, name: str) -> Any:
        async def refuse(*_: object, **__: object) -> None:
            raise KafkaError(f"{name} is not offered")

        return refuse


class Clock:
    """A clock that stands still."""

    ms = 1_000_000

    def monotonic_ms(self) -> int:
        return self.ms

    def now_ms(self) -> int:
        return self.ms


def test_names_that_are_not_there_make_the_sampler_hurry_at_most_once_in_five_seconds() -> None:
    async def run() -> None:
        cluster, clock = Cluster(), Clock()
        admin: Any = cluster
        sampler = Sampler(admin)
        sampler._clock = clock  # type: ignore[assignment]
        await sampler.current()
        for name in ("first", "second", "third"):
            cluster.topics.append(name)
            sampler.look_again()
            assert set((await sampler.current()).topics) == {"old", "first"}
        clock.ms += FAST_MS
        sampler.look_again()
        assert set((await sampler.current()).topics) == {"old", "first", "second", "third"}
        await sampler.close()

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_sample_that_had_begun_before_a_change_is_not_taken_for_one_after_it() -> None:
    async def run() -> None:
        cluster = Cluster()
        admin: Any = cluster
        sampler = Sampler(admin)
        assert set((await sampler.current()).topics) == {"old"}
        cluster.gate.clear()
        cluster.listed.clear()
        sampler.stale()
        await cluster.listed.wait()  # this sample has seen one topic
        cluster.topics.append("new")
        sampler.stale()
        look = asyncio.create_task(sampler.current())
        await asyncio.sleep(0)
        cluster.gate.set()
        assert set((await look).topics) == {"new", "old"}
        await sampler.close()

    asyncio.run(asyncio.wait_for(run(), 30))
