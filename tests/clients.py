"""What cannot live in the tests' own environment: an old kafka-python beside today's, kafkajs, and axe-core, which runs in a browser.

They are fetched once, to the user's cache, and looked for there by the tests that run them in processes of their own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tests.jvm import cache_dir
from tests.kafka import Unavailable, put_in_place

OLD_KAFKA_PYTHON = ("kafka-python==1.4.7", "six==1.17.0")
KAFKAJS = ("kafkajs@2.2.4", "kafkajs-snappy@1.1.0", "lz4js@0.2.0", "zstd-codec@0.1.5")  # and the codecs that it leaves to others

AXE_CORE = ("axe-core@4.14.1",)


@cache
def old_kafka_python() -> Path:
    """The directory to put first on sys.path."""
    place = cache_dir() / "-".join(name.replace("==", "-") for name in OLD_KAFKA_PYTHON)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--target"]
    return _fetch(place, lambda directory: [*pip, str(directory), *OLD_KAFKA_PYTHON])


@cache
def kafkajs() -> Path:
    """The node_modules directory for NODE_PATH."""
    return _node_modules(KAFKAJS)


@cache
def axe_core() -> Path:
    """The node_modules directory with axe-core, which finds faults of accessibility."""
    return _node_modules(AXE_CORE)


def _node_modules(packages: tuple[str, ...]) -> Path:
    if not shutil.which("node") or not shutil.which("npm"):
        raise Unavailable(f"{packages[0]} needs Node.js and npm: install them (Debian: apt-get install nodejs npm)")
    npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--no-save", "--prefix"]
    place = cache_dir() / "-".join(name.replace("@", "-") for name in packages)
    return _fetch(place, lambda directory: [*npm, str(directory), *packages]) / "node_modules"


def _fetch(place: Path, command: Callable[[Path], list[str]]) -> Path:
    if place.is_dir():
        return place
    cache_dir().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_dir()) as work:
        fetched = Path(work, "fetched")
        fetched.mkdir()
        done = subprocess.run(command(fetched), capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            raise Unavailable(f"could not fetch {place.name}: {(done.stdout + done.stderr).strip()[-500:]}")
        put_in_place(fetched, place)
    return place


if __name__ == "__main__":
    for fetch in (old_kafka_python, kafkajs, axe_core):
        try:
            print(f"{fetch() if fetch is old_kafka_python else fetch().parent} is ready")
        except Unavailable as problem:
            print(f"Some clients will not be tested: {problem}", file=sys.stderr)
