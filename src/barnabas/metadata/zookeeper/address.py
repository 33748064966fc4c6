"""`zookeeper.connect`: the servers of an ensemble, and the chroot, the node below which a cluster keeps its own tree."""

from __future__ import annotations

import os
from typing import Final, NamedTuple

from barnabas.metadata import paths
from barnabas.metadata.errors import StoreUnusable

DEFAULT_PORT: Final = 2181


class Server(NamedTuple):
    """`host` is the path of a Unix socket if it begins with a slash."""

    host: str
    port: int

    @property
    def is_local(self) -> bool:
        return self.host.startswith("/")

    def __str__(self) -> str:
        if self.is_local:
            return self.host
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Ensemble(NamedTuple):
    servers: tuple[Server, ...]
    chroot: str  # empty, or a path without a trailing slash

    def __str__(self) -> str:
        return ",".join(map(str, self.servers)) + self.chroot


def of_socket(path: str) -> Ensemble:
    """The one server on a Unix socket: the parent of this process."""
    return Ensemble((Server(os.path.abspath(path), 0),), "")


def parse(text: str) -> Ensemble:
    """Parses `host:port,host:port/chroot`; IPv6 addresses are in brackets. Raises StoreUnusable with a text that names the fix."""
    hosts, slash, rest = text.strip().partition("/")
    chroot = slash + rest.strip().rstrip("/") if rest.strip().rstrip("/") else ""
    if chroot and (fault := paths.fault_in(chroot)):
        raise StoreUnusable(f"zookeeper.connect={text}: {chroot} is not a path ({fault}). Give it as host:port,host:port/path")
    servers = tuple(_server(address.strip(), text) for address in hosts.split(",") if address.strip())
    if not servers:
        raise StoreUnusable(f"zookeeper.connect={text} names no server. Give it as host:port,host:port/path")
    return Ensemble(servers, chroot)


def _server(text: str, whole: str) -> Server:
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = text.partition(":")
    if not host or (port and not (port.isdecimal() and 0 < int(port) < 65536)):
        raise StoreUnusable(f"zookeeper.connect={whole}: {text} is not an address. Give it as host:port")
    return Server(host, int(port) if port else DEFAULT_PORT)
