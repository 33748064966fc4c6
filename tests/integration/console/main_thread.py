"""Measures how long each page blocks the browser's main thread, by the browser's own reports of tasks that take more than 50 ms.

python -m tests.integration.console.main_thread [--topics 1000]
"""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Final

from barnabas.client import Admin, NewTopic, Producer
from tests import chromium
from tests.chromium import Browser
from tests.integration.console import world as worlds
from tests.integration.console.pages import WITHOUT_SPARK
from tests.integration.console.person import Person
from tests.integration.console.world import World

LARGE: Final = "large-values"
BIG: Final = {
    "500 messages of 4 kB": f"/topics/{LARGE}/messages?limit=500",
    "a message of 20 MB": f"/topics/{LARGE}/messages/0/0",
    "the second page of topics": "/topics?page=2",
    "topics, sorted": "/topics?sort=size&order=descending",
    "a topic with 1,000 partitions": "/topics/many-partitions",
}
TOPICS_AT_ONCE: Final = 100
OBSERVE: Final = """window.tasks = []; new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((one) => one.duration)))
    .observe({type: "longtask", buffered: true});"""
SETTLE: Final = "const done = arguments[0]; setTimeout(() => done(window.tasks), 3000);"  # the first live updates come meanwhile


def main() -> None:
    parser = ArgumentParser("main_thread", description=__doc__.partition("\n")[0])
    parser.add_argument("--topics", type=int, default=1000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work, worlds.running(Path(work)) as world:
        _fill(world, given.topics)
        with chromium.running(Path(work, "profile")) as browser:
            person = Person(browser, world.writing)
            person.log_in("admin", world.admin_password)
            for name, path in {**WITHOUT_SPARK, **BIG}.items():
                person.open(path)
                tasks = _tasks(browser)
                print(f"{max(tasks, default=0):6.0f} ms longest, {len(tasks)} of more than 50 ms: {name}", flush=True)


def _tasks(browser: Browser) -> list[float]:
    browser.run(OBSERVE)
    return [float(duration) for duration in browser.run_async(SETTLE)]


def _fill(world: World, topics: int) -> None:
    with Admin(world.client) as admin:
        for first in range(0, topics, TOPICS_AT_ONCE):
            numbers = range(first, min(first + TOPICS_AT_ONCE, topics))
            admin.create_topics([NewTopic(f"topic-{number:04}", 1, 1) for number in numbers]).all()
        large = NewTopic(LARGE, 1, 1, configs={"max.message.bytes": "30000000"})
        admin.create_topics([large, NewTopic("many-partitions", 1000, 1)], timeout_ms=300_000).all()
    with Producer({**world.client, "max.request.size": 30_000_000, "buffer.memory": 90_000_000}) as producer:
        producer.send(LARGE, b'{"text": "' + b"<b>text</b> " * 1_700_000 + b'"}')
        for number in range(600):
            producer.send(LARGE, b'{"number": %d, "text": "%s"}' % (number, b"some text, " * 360))
        producer.flush()


if __name__ == "__main__":
    main()
