"""Disks of a test's own that can fail: ext4 in a file on a loop device. After `fail` every call on files of the disk returns EIO, by the
kernel's own shutdown of the file system; what was not synced is lost. After `repair` it is there again, as after a new cable."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

MEGABYTES = 256  # sparse: the file takes what is written
EXT4_IOC_SHUTDOWN = 0x8004587D  # _IOR('X', 125, __u32)
WITHOUT_FLUSH = 2  # EXT4_GOING_FLAGS_NOLOGFLUSH: the journal is not written either


class NotPermitted(Exception):
    """There can be no such disks here; the message says why."""


class Disk:
    def __init__(self, place: Path) -> None:
        self.path = place / "mounted"
        self._image = place / "image"
        self.path.mkdir(parents=True)
        with open(self._image, "wb") as image:
            image.truncate(MEGABYTES << 20)
        _run("mkfs.ext4", "-q", "-F", str(self._image))
        self._mount()

    def fail(self) -> None:
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, EXT4_IOC_SHUTDOWN, struct.pack("I", WITHOUT_FLUSH))
        finally:
            os.close(descriptor)

    def repair(self) -> None:
        """Only while no process has a file of it open."""
        _run("umount", str(self.path))
        self._mount()

    def close(self) -> None:
        """Detaches it at once, even if a process has not ended yet."""
        subprocess.run(["umount", "-l", str(self.path)], check=False, capture_output=True)
        self._image.unlink(missing_ok=True)

    def _mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.path))


@contextmanager
def disks(place: Path, names: Sequence[str]) -> Generator[dict[str, Disk], None, None]:
    """Skips the test where there can be none."""
    made: dict[str, Disk] = {}
    try:
        try:
            for name in names:
                made[name] = _new(place / name)
        except NotPermitted as why:
            pytest.skip(str(why))
        yield made
    finally:
        for disk in made.values():
            disk.close()


def _new(place: Path) -> Disk:
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        raise NotPermitted("a failing disk is an ext4 image on a loop device, which takes root and mkfs.ext4 (apt-get install e2fsprogs)")
    try:
        return Disk(place)
    except subprocess.CalledProcessError as refused:
        raise NotPermitted(f"no ext4 image can be mounted here: {refused.stderr.strip()}") from None


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True)
