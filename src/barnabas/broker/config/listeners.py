"""Parses listeners, NAME://host:port, and the security protocols of listener names.

Only the config parses these strings; the rest of the broker uses EndPoint. The error messages are Kafka's, which show the whole list.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from barnabas.config_def import InvalidConfig
from barnabas.endpoint import EndPoint, SecurityProtocol

PORT_MAX: Final = 65_535

_LISTENER: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")


def normalised(listener_name: str) -> str:
    if not listener_name.strip():
        raise InvalidConfig("The provided listener name is null or empty string")
    return listener_name.upper()


def config_prefix(listener_name: str) -> str:
    """The prefix of a setting for one listener."""
    return f"listener.name.{listener_name.lower()}."


def parse_security_protocol(name: str, config: str) -> SecurityProtocol:
    try:
        return SecurityProtocol[name.upper()]
    except KeyError:
        raise InvalidConfig(f"Invalid security protocol `{name}` defined in {config}") from None


def parse_map(text: str, config: str) -> dict[str, str]:
    """Parses comma-separated `key:value` pairs. The value follows the last colon, because the key may be an IPv6 address."""
    pairs: dict[str, str] = {}
    for entry in filter(None, re.split(r"\s*,\s*", text.strip())):
        key, colon, value = entry.rpartition(":")
        if not colon:
            raise InvalidConfig(f"Error parsing configuration property '{config}': `{entry}` should be in the form key:value")
        pairs[key.strip()] = value.strip()
    return pairs


def parse_security_protocol_map(text: str, config: str) -> dict[str, SecurityProtocol]:
    protocols: dict[str, SecurityProtocol] = {}
    for name, protocol in parse_map(text, config).items():
        if normalised(name) in protocols:
            raise InvalidConfig(f"Error parsing configuration property '{config}': the listener {normalised(name)} is named twice")
        protocols[normalised(name)] = parse_security_protocol(protocol, config)
    return protocols


def parse_listeners(listeners: Sequence[str], protocols: Mapping[str, SecurityProtocol], distinct_ports: bool = True) -> list[EndPoint]:
    """The endpoints of a list of listeners. Only advertised listeners may share a port: a proxy may distinguish them."""
    shown = f"[{', '.join(listeners)}]"
    try:
        endpoints = [_parse_listener(listener, protocols) for listener in listeners]
    except InvalidConfig as error:
        raise InvalidConfig(f"Error creating broker listeners from '{shown}': {error}") from None
    if len({endpoint.listener_name for endpoint in endpoints}) != len(endpoints):
        raise InvalidConfig(f"Each listener must have a different name, listeners: {shown}")
    if distinct_ports:
        by_port: defaultdict[int, list[EndPoint]] = defaultdict(list)
        for endpoint in endpoints:
            by_port[endpoint.port].append(endpoint)
        for port, sharing in by_port.items():
            if port != 0 and len(sharing) > 1:
                _check_shared_port(port, sharing, shown)
    return endpoints


def _parse_listener(listener: str, protocols: Mapping[str, SecurityProtocol]) -> EndPoint:
    match = _LISTENER.fullmatch(listener)
    if match is None:
        raise InvalidConfig(f"Unable to parse {listener} to a broker endpoint")
    name = normalised(match[1])
    if name not in protocols:
        raise InvalidConfig(f"No security protocol defined for listener {name}")
    if len(match[3]) > 6 or not 0 <= int(match[3]) <= PORT_MAX:
        raise InvalidConfig(f"The port of {listener} must be between 0 and {PORT_MAX}")
    return EndPoint(name, match[2], int(match[3]), protocols[name])


def _check_shared_port(port: int, sharing: Sequence[EndPoint], shown: str) -> None:
    """Two listeners may have the same port if one is on an IPv4 address and the other on an IPv6 address."""
    addresses = [address for endpoint in sharing if (address := _address(endpoint.host)) is not None]
    if len(sharing) - len(addresses) > 1:
        raise InvalidConfig(f"Each listener must have a different port, listeners: {shown}")
    if len(addresses) > 2:
        raise InvalidConfig(
            "Each listener must have a different port unless exactly one listener has "
            f"an IPv4 address and the other IPv6 address, listeners: {shown}, port: {port}"
        )
    if {type(address) for address in addresses} != {IPv4Address, IPv6Address} or len(addresses) != len(sharing):
        raise InvalidConfig(
            f"If you have two listeners on the same port then one needs to be IPv4 and the other IPv6, listeners: {shown}, port: {port}"
        )


def _address(host: str | None) -> IPv4Address | IPv6Address | None:
    try:
        return None if host is None else ip_address(host)
    except ValueError:
        return None


def names(endpoints: Iterable[EndPoint]) -> list[str]:
    return [endpoint.listener_name for endpoint in endpoints]
