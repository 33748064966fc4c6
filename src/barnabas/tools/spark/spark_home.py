"""A home for the Spark that pip has installed, from which its Python workers start four times as fast.

Spark puts the zip of PySpark in its home first on the path of each Python worker, and every process compiles the modules of a zip anew.
With a home without this zip, workers import the installed PySpark, whose modules are compiled already. This is for a Spark on this machine
only: clusters that ship PySpark to their nodes (YARN) need the zip. A home that the user has set is never replaced.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

HOME: Final = "SPARK_HOME"
_LINKED: Final = ("bin", "conf", "jars", "sbin")


def home_settings(directory: Path | None = None) -> dict[str, str]:
    """Environment variables for a Spark on this machine; empty if SPARK_HOME is set, or Spark was not installed by pip.

    The home is created in `directory`, or in the user's cache: a JVM loads classes from it until its end.
    """
    installed = _installed()
    if os.environ.get(HOME) or installed is None:
        return {}
    home = directory or _cached(installed)
    try:
        return {HOME: str(_made(home, installed))}
    except OSError:
        return {}  # no writable place, or a system without links: workers start as slowly as by default


@contextmanager
def home_set(directory: Path | None = None) -> Generator[None, None, None]:
    """Sets SPARK_HOME while this process starts a Spark session; the started JVM keeps it."""
    settings = home_settings(directory)
    os.environ.update(settings)
    try:
        yield
    finally:
        for name in settings:
            del os.environ[name]


def is_local(master: str) -> bool:
    """Whether a Spark with this master runs on this machine alone."""
    return master.startswith("local")


def _installed() -> Path | None:
    """The directory of the Spark that pip installed; None for a PySpark that is only a client and has no jars."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    return root if (root / "jars").is_dir() and (root / "bin" / "spark-submit").is_file() else None


def _cached(installed: Path) -> Path:
    """The cached home, named after the directory of Spark, so that each virtual environment has its own."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(base if os.path.isabs(base) else os.path.expanduser("~/.cache"))
    return cache / "barnabas" / f"spark-home-{hashlib.sha256(str(installed).encode()).hexdigest()[:16]}"


def _made(home: Path, installed: Path) -> Path:
    """Creates the home under a temporary name and renames it, because other processes may create it at the same time."""
    if home.is_dir():
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{home.name}.", dir=home.parent))
    try:
        for name in _LINKED:
            (unfinished / name).symlink_to(installed / name)
        unfinished.rename(home)
    except OSError:
        shutil.rmtree(unfinished, ignore_errors=True)
        if not home.is_dir():
            raise
    return home
