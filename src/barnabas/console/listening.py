"""The sockets of the console. This module is small, because a broker that starts a console imports it."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from barnabas.endpoint import host_and_port


class PortInUse(OSError):
    """The console cannot listen at its address."""


def listen(host: str, port: int) -> list[socket.socket]:
    """Sockets at an address: of `localhost` those of IPv4 and IPv6. Port 0 takes one that is free, the same for both. Raises PortInUse."""
    try:
        resolved = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise PortInUse(error.errno, f"{host_and_port(host, port)}: {error.strerror}") from None
    # IPv4 first: a machine may have no IPv6, although localhost has an address of it.
    addresses = sorted({(family, address) for family, _, _, _, address in resolved}, key=lambda one: one[0] == socket.AF_INET6)
    sockets: list[socket.socket] = []
    for family, address in addresses:
        try:
            sockets.append(_bound(family, (address[0], port, *address[2:])))
        except OSError as error:
            if family == socket.AF_INET6 and sockets:
                continue
            close_all(sockets)
            raise PortInUse(error.errno, f"{host_and_port(host, port)}: {error.strerror}") from None
        port = port or sockets[0].getsockname()[1]
    return sockets


def inherited(descriptors: Sequence[int]) -> list[socket.socket]:
    """The sockets that the parent process has opened."""
    return [socket.socket(fileno=descriptor) for descriptor in descriptors]


def close_all(sockets: Sequence[socket.socket]) -> None:
    for one in sockets:
        one.close()


def url_at(scheme: str, host: str, port: int) -> str:
    """The address for people; an address of every interface is that of this machine."""
    shown = "localhost" if host in ("", "0.0.0.0", "::", "127.0.0.1", "::1") else host
    return f"{scheme}://{host_and_port(shown, port)}"


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.bind(address)
        one.listen(128)
    except OSError:
        one.close()
        raise
    return one
