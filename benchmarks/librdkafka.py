"""librdkafka's own `rdkafka_performance`, the C client that both brokers are measured with.

Its source comes inside the crate rdkafka-sys, so that Cargo brings it; it is built once into the user's cache. Where Cargo or a C compiler
is missing, the figures that need it are left out with a line that says what to install.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CRATE = "rdkafka-sys"
VERSION = "4.9.0"  # librdkafka 2.10.0
_MANIFEST = f"""[package]
name = "rdkafka-performance"
version = "0.1.0"
edition = "2021"
[lib]
path = "lib.rs"
[dependencies]
{CRATE} = "={VERSION}"
"""


class Unavailable(Exception):
    """It cannot be built here; the message says what to install."""


def prepare() -> Path:
    """The program, built if need be."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "barnabas")
    program = cache / f"rdkafka_performance-{VERSION}"
    if program.exists():
        return program
    for command, package in (("cargo", "cargo"), ("cc", "gcc"), ("make", "make")):
        if not shutil.which(command):
            raise Unavailable(f"rdkafka_performance needs {command}: install it (Debian: apt-get install {package})")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as work:
        Path(work, "Cargo.toml").write_text(_MANIFEST)
        Path(work, "lib.rs").touch()
        _run(["cargo", "vendor", "--quiet", "--versioned-dirs", "vendor"], Path(work))
        source = next(Path(work, "vendor").glob(f"{CRATE}-*")) / "librdkafka"
        _run(["bash", "./configure", "--disable-gssapi", "--disable-ssl", "--disable-curl", "--enable-static"], source)
        _run(["make", "-j2", "libs"], source)
        _run(["make", "-C", "examples", "rdkafka_performance"], source)
        shutil.copy(source / "examples" / "rdkafka_performance", f"{program}.new")
        Path(f"{program}.new").rename(program)
    return program


def is_there() -> bool:
    """Whether it can be measured with; says what is missing if not."""
    try:
        prepare()
    except Unavailable as problem:
        print(f"Without rdkafka_performance: {problem}", file=sys.stderr)
        return False
    return True


def produce(bootstrap: str, topic: str, size: int, count: int, batch_bytes: int, partition: int | None = 0) -> float:
    """MB/s of `count` records, acknowledged by all; to one partition, or to all of them where it is None."""
    where = () if partition is None else ("-p", str(partition))
    return _rate(
        [
            *("-P", "-t", topic, *where, "-s", str(size), "-c", str(count), "-a", "-1", "-b", bootstrap, "-q"),
            *("-X", "linger.ms=5", "-X", f"batch.size={batch_bytes}", "-X", "message.max.bytes=10000000"),
            *("-X", "queue.buffering.max.kbytes=1048576", "-X", "queue.buffering.max.messages=1000000"),
        ]
    )


def consume(bootstrap: str, topic: str, count: int) -> float:
    """MB/s of the first `count` records of a topic."""
    return _rate(["-C", "-t", topic, "-p", "0", "-o", "beginning", "-c", str(count), "-b", bootstrap, "-q"])


def _rate(arguments: list[str]) -> float:
    done = subprocess.run([str(prepare()), *arguments], capture_output=True, text=True, timeout=600, check=False)
    matches = re.findall(r"([0-9.]+) MB/s", done.stdout + done.stderr)
    if done.returncode != 0 or not matches:
        raise RuntimeError(f"rdkafka_performance {' '.join(arguments)}: {done.stdout[-500:]} {done.stderr[-500:]}")
    return float(matches[-1])


def _run(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(command)} failed: {done.stdout[-500:]} {done.stderr[-500:]}")
