"""`make screenshots`: each page of the console in both themes and at phone width, on a cluster with traffic.

python -m tests.integration.console.screenshots DIRECTORY [--readme DIRECTORY] [PAGE …]
"""

from __future__ import annotations

import base64
import itertools
import json
import tempfile
import threading
import time
from argparse import ArgumentParser
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from barnabas.client import Admin, OffsetAndMetadata, Producer, TopicPartition
from barnabas.client.admin import OffsetSpec
from tests import chromium, spark_session
from tests.chromium import PHONE, WIDE, Browser
from tests.integration.console import world as worlds
from tests.integration.console.pages import WITH_SPARK, WITHOUT_SPARK, pipeline_of
from tests.integration.console.person import Person
from tests.integration.console.world import GROUP, ORDERS, World, order

README: Final = {"overview": "light", "messages-filtered": "light", "group": "dark", "pipeline": "dark"}
WARM_UP_S: Final = 45  # until the charts have lines
HEIGHT_MAX: Final = 2400
README_SIZE: Final = (1280, 800)
_PAUSE_S: Final = 0.05


def main() -> None:
    parser = ArgumentParser("make screenshots", description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--readme", type=Path, help="a directory for the pictures of README.md")
    parser.add_argument("pages", nargs="*", help="names of pages; default: all")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work, ExitStack() as stack:
        directory = Path(work)
        world = stack.enter_context(worlds.running(directory))
        stack.enter_context(_traffic(world))
        spark = stack.enter_context(spark_session.running(directory / "spark", connector=False))
        query = worlds.start_query(world, spark, directory / "checkpoint")
        stack.callback(query.stop)
        browser = stack.enter_context(chromium.running(directory / "profile"))
        person = Person(browser, world.writing)
        given.directory.mkdir(parents=True, exist_ok=True)
        person.open("/")
        _themes_and_widths(browser, given.directory, "login")
        person.log_in("admin", world.admin_password)
        pages = {**WITHOUT_SPARK, **WITH_SPARK, "pipeline": pipeline_of(person)}
        time.sleep(WARM_UP_S)
        for name, path in pages.items():
            if given.pages and name not in given.pages:
                continue
            person.open(path)
            _themes_and_widths(browser, given.directory, name)
            if given.readme is not None and name in README:
                given.readme.mkdir(parents=True, exist_ok=True)
                browser.theme(README[name])
                _picture(browser, given.readme / f"console-{name}.png", README_SIZE)


def _themes_and_widths(browser: Browser, directory: Path, name: str) -> None:
    for theme, (label, size) in itertools.product(("light", "dark"), (("wide", WIDE), ("phone", PHONE))):
        browser.theme(theme)
        browser.resize(size)
        height = min(HEIGHT_MAX, max(size[1], int(browser.run("return document.documentElement.scrollHeight"))))
        _picture(browser, directory / f"{name}-{theme}-{label}.png", (size[0], height))
        wide = int(browser.run("return document.documentElement.scrollWidth"))
        if wide > size[0]:
            print(f"{name} is {wide} pixels wide on a screen of {size[0]}")
    browser.resize(WIDE)


def _picture(browser: Browser, path: Path, size: tuple[int, int]) -> None:
    browser.resize(size)
    browser.run_async("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));")
    path.write_bytes(base64.b64decode(browser.command("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def _traffic(world: World) -> Generator[None, None, None]:
    """Orders that are written all the time, now more, now fewer, and two groups that read them."""
    ended = threading.Event()

    def write() -> None:
        with Producer(world.client) as producer:
            for number in itertools.count(1000):
                one = order(number % 400)
                producer.send(ORDERS, json.dumps(one).encode(), key=one["customer"].encode())
                if ended.wait(_PAUSE_S * (1 + number // 100 % 4)):
                    return

    def read() -> None:
        with Admin(world.client) as admin:
            for number in itertools.count():
                world.consumer.poll(0.01)
                if number % 200 == 0:  # the other group
                    ends = admin.list_offsets({partition: OffsetSpec.latest() for partition in _partitions()}).all()
                    behind = {partition: OffsetAndMetadata(max(end.offset - 12, 0)) for partition, end in ends.items()}
                    admin.alter_consumer_group_offsets(GROUP, behind).all()
                if ended.is_set():
                    return

    threads = [threading.Thread(target=one) for one in (write, read)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _partitions() -> list[TopicPartition]:
    return [TopicPartition(ORDERS, number) for number in range(3)]


if __name__ == "__main__":
    main()
