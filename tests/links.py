"""Machines of a test's own: network namespaces on one bridge, between any two of which a link can be cut, one way or both. What is cut is
silently lost, as by a broken switch: no connection is refused or reset. The test itself is on the bridge, and no link of its own is cut.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import pytest

NOBODY = "02:00:00:00:00:01"  # what is sent to this hardware address reaches no one
NETWORK = "198.18"  # set apart for trials of network devices: in use nowhere else
TEST_HOST = 254


class NotPermitted(Exception):
    """There can be no namespaces here; the message says why."""


class Links:
    def __init__(self, names: Sequence[str]) -> None:
        if os.geteuid() != 0 or shutil.which("ip") is None:
            raise NotPermitted("links between brokers are cut in network namespaces, which takes root and `ip` (apt-get install iproute2)")
        self._prefix = f"bn{os.getpid() % 100_000}"
        self._subnet = f"{NETWORK}.{os.getpid() % 254 + 1}"
        self._hosts = {name: number for number, name in enumerate(names, 1)}
        self._cut: set[tuple[str, str]] = set()
        try:
            self._make()
        except subprocess.CalledProcessError as refused:
            self.close()
            raise NotPermitted(f"network namespaces cannot be made here: {refused.stderr.strip()}") from None

    def address(self, name: str) -> str:
        return f"{self._subnet}.{self._hosts[name]}"

    def inside(self, name: str) -> list[str]:
        """What a command begins with that runs on this machine."""
        return ["ip", "netns", "exec", self._namespace(name)]

    def cut(self, source: str, target: str) -> None:
        """Nothing that `source` sends reaches `target` any more; the other way is as it was."""
        _ip("-n", self._namespace(source), "neigh", "replace", self.address(target), "lladdr", NOBODY, "dev", "eth0", "nud", "permanent")
        self._cut.add((source, target))

    def cut_both_ways(self, one: str, other: str) -> None:
        self.cut(one, other)
        self.cut(other, one)

    def mend(self, source: str, target: str) -> None:
        _ip("-n", self._namespace(source), "neigh", "del", self.address(target), "dev", "eth0")
        self._cut.discard((source, target))

    def mend_all(self) -> None:
        for source, target in list(self._cut):
            self.mend(source, target)

    def close(self) -> None:
        for name in self._hosts:
            _try("link", "del", f"{self._prefix}v{self._hosts[name]}")
            _try("netns", "del", self._namespace(name))
        _try("link", "del", f"{self._prefix}b")

    def _namespace(self, name: str) -> str:
        return f"{self._prefix}-{name}"

    def _make(self) -> None:
        bridge = f"{self._prefix}b"
        _ip("link", "add", bridge, "type", "bridge")
        _ip("addr", "add", f"{self._subnet}.{TEST_HOST}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for name, number in self._hosts.items():
            namespace, end = self._namespace(name), f"{self._prefix}v{number}"
            _ip("netns", "add", namespace)
            _ip("link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", namespace)
            _ip("link", "set", end, "master", bridge, "up")
            _ip("-n", namespace, "link", "set", "lo", "up")
            _ip("-n", namespace, "addr", "add", f"{self.address(name)}/24", "dev", "eth0")
            _ip("-n", namespace, "link", "set", "eth0", "up")


@contextmanager
def between(names: Sequence[str]) -> Generator[Links, None, None]:
    """Skips the test where there can be none."""
    try:
        links = Links(names)
    except NotPermitted as why:
        pytest.skip(str(why))
    try:
        yield links
    finally:
        links.close()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def _try(*words: str) -> None:
    subprocess.run(["ip", *words], check=False, capture_output=True)
