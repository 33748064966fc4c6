"""How the JVMs of the tests start: with flags for a short life, and with an archive of their classes where `make kafka` has written one.

A JVM without an archive, or with one that does not fit its Java or its jars, starts as it would without.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from functools import cache
from importlib.util import find_spec
from pathlib import Path

# For a JVM that soon ends: compiling better would take longer than it saves.
SHORT_LIVED = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
SILENT = "-Xlog:disable"  # about an archive that does not fit, and classes that cannot be in one


def cache_dir() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "barnabas")


def flags(jars: Path) -> list[str]:
    """The flags for a JVM whose class path begins with all jars of this directory, in the order of the directory."""
    archive = archive_of(jars)
    return [*SHORT_LIVED, *((f"-XX:SharedArchiveFile={archive}", SILENT) if archive.exists() else ())]


def spark_environment() -> dict[str, str]:
    """With these variables each JVM of a Spark starts faster: its launcher, driver, executors, masters and workers."""
    jars = spark_jars()
    return {} if jars is None else {"JDK_JAVA_OPTIONS": " ".join(f'"{flag}"' for flag in flags(jars))}


@cache
def spark_jars() -> Path | None:
    """The jars of the Spark that pip has installed."""
    spec = find_spec("pyspark")
    jars = None if spec is None or spec.origin is None else Path(spec.origin).with_name("jars")
    return jars if jars is not None and jars.is_dir() else None


@cache
def archive_of(jars: Path) -> Path:
    """Where the archive for these jars is, or would be: other jars, or another Java, have another."""
    files = sorted((entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in os.scandir(jars))
    fingerprint = hashlib.sha256(repr((_java_release(), str(jars), files)).encode()).hexdigest()[:16]
    return cache_dir() / f"classes-{fingerprint}.jsa"


def _java_release() -> str:
    """What identifies the Java that runs, read from its files instead of starting it."""
    java = shutil.which("java")
    if java is None:
        return ""
    release = Path(java).resolve().parents[1] / "release"
    return release.read_text() if release.exists() else str(release)
