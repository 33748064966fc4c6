"""The output of `barnabas pipeline package`: this Barnabas in one file, for executors without an installation.

A .zip goes with --py-files: plain Python, for any machine that has the run-time dependencies. A .tar.gz goes with --archives: the compiled
modules and the dependencies too, for machines like this one. Neither contains Spark, Arrow or numpy, which PySpark brings.
"""

from __future__ import annotations

import os
import tarfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Final

PACKAGES: Final = ("barnabas", "pyspark_barnabas")
DEPENDENCIES: Final = ("cramjam", "google-crc32c", "google-re2", "librt", "mypy_extensions", "uvloop")
ZIP: Final = ".zip"
TAR: Final = ".tar.gz"
_COMPILED: Final = (".so", ".pyd")
_LEFT_OUT: Final = "__pycache__"


class PackageRefused(Exception):
    """The package cannot be written; the text is printed for the user."""


def write_package(target: Path) -> int:
    """Writes a .zip or .tar.gz, by the name of the file, and returns the number of files in it."""
    if not target.name.endswith((ZIP, TAR)):
        raise PackageRefused(f"{target}: name it .zip, for --py-files, or .tar.gz, for --archives with compiled modules and dependencies")
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        count = _write_zip(unfinished) if target.name.endswith(ZIP) else _write_tar(unfinished)
        os.replace(unfinished, target)
    except OSError as error:
        raise PackageRefused(f"{target}: {error.strerror or error}") from None
    finally:
        unfinished.unlink(missing_ok=True)
    return count


def _write_zip(path: Path) -> int:
    files = [(file, name) for file, name in own_files() if not name.endswith(_COMPILED)]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, name in files:
            archive.write(file, name)
    return len(files)


def _write_tar(path: Path) -> int:
    files = [*own_files(), *_dependency_files()]
    with tarfile.open(path, "w:gz") as archive:
        for file, name in files:
            archive.add(file, name)
    return len(files)


def own_files() -> Iterator[tuple[Path, str]]:
    """The files of our packages and the shared libraries of the compiled modules, with their names in the archive."""
    for package in PACKAGES:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise PackageRefused(f"the package {package} is not installed")
        root = Path(spec.origin).parent
        for file in sorted(root.rglob("*")):
            if file.is_file() and _LEFT_OUT not in file.parts:
                yield file, f"{package}/{file.relative_to(root).as_posix()}"
        for library in sorted(root.parent.glob(f"{package}_*__mypyc*")):
            yield library, library.name


def _dependency_files() -> Iterator[tuple[Path, str]]:
    for name in DEPENDENCIES:
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:
            continue  # optional on this system, or part of another package
        for file in files:
            path = Path(str(file.locate()))
            if ".." not in file.parts and _LEFT_OUT not in file.parts and path.is_file():
                yield path, file.as_posix()
