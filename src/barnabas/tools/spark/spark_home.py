"""A home for the Spark that pip has installed, from which its Python workers start four times as fast.

Spark puts the zip of PySpark in its home before everything else on the path of each Python worker, and what is in a zip is compiled anew by
every process. A home that has all but this zip lets workers import the PySpark that is installed, which was compiled when it was. It is for
a Spark that runs on this machine: clusters that are sent their Python (YARN) get that very zip. A home that the user has set is never
replaced.
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
    """What to add to the environment of a Spark on this machine; nothing where its user has chosen a home, or pip has installed none.

    The home is made in `directory`, or kept among this user's cached files: a JVM loads classes from it until its end.
    """
    installed = _installed()
    if os.environ.get(HOME) or installed is None:
        return {}
    home = directory or _cached(installed)
    try:
        return {HOME: str(_made(home, installed))}
    except OSError:
        return {}  # no place for it, or a system without links: workers start slowly, as they do without us


@contextmanager
def home_set(directory: Path | None = None) -> Generator[None, None, None]:
    """Sets it for a Spark session that this process starts in the block; what was started keeps it."""
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
    """Where pip has put Spark; a PySpark that is only a client of others has no Java in it."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        return None
    root = Path(found.origin).parent
    return root if (root / "jars").is_dir() and (root / "bin" / "spark-submit").is_file() else None


def _cached(installed: Path) -> Path:
    """By where Spark is, so that each virtual environment has its own."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(base if os.path.isabs(base) else os.path.expanduser("~/.cache"))
    return cache / "barnabas" / f"spark-home-{hashlib.sha256(str(installed).encode()).hexdigest()[:16]}"


def _made(home: Path, installed: Path) -> Path:
    """Made aside and moved into place, since others may be making it too."""
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
