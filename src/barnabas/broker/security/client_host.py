# Compiled by mypyc: src/compiled.toml lists this module.
"""The address of a client in Java's notation, in which the hosts of ACLs are written."""

from __future__ import annotations

from ipaddress import AddressValueError, IPv6Address


def client_host(address: str) -> str:
    """As Java's InetAddress.getHostAddress: all eight groups of an IPv6 address, followed by its scope.

    An IPv4 client of a listener for both has an IPv6 address that contains its own; Java and ACLs know only the latter. An ACL that denies
    10.0.0.1 has to match it."""
    if ":" not in address:
        return address
    host, percent, scope = address.partition("%")
    try:
        parsed = IPv6Address(host)
    except AddressValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    groups = (f"{int.from_bytes(parsed.packed[at : at + 2], 'big'):x}" for at in range(0, 16, 2))
    return f"{':'.join(groups)}{percent}{scope}"
