"""Loads the class of authorizer.class.name: one of Kafka's, for which AclAuthorizer stands, or the dotted path of a Python class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from barnabas.broker.security.authorizer.authorizer import Authorizer
from barnabas.broker.security.python_class import instance_of
from barnabas.metadata.client import TreeClient

AUTHORIZER_CLASS: Final = "authorizer.class.name"
KAFKA_CLASSES: Final = (
    "kafka.security.authorizer.AclAuthorizer",
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.auth.SimpleAclAuthorizer",
)


def load_authorizer(properties: Mapping[str, str], tree: TreeClient, monotonic_ms: Callable[[], int]) -> Authorizer | None:
    """The configured authorizer; None if the setting is empty. Raises InvalidConfig: a broker whose authorizer cannot be made must not
    start."""
    name = properties.get(AUTHORIZER_CLASS, "").strip()
    if not name:
        return None
    authorizer = _acl_authorizer(tree, monotonic_ms) if name in KAFKA_CLASSES else instance_of(name, AUTHORIZER_CLASS, Authorizer)
    authorizer.configure(dict(properties))
    return authorizer


def _acl_authorizer(tree: TreeClient, monotonic_ms: Callable[[], int]) -> Authorizer:
    from barnabas.broker.security.authorizer.acl_authorizer import AclAuthorizer  # most brokers start without it

    return AclAuthorizer(tree, monotonic_ms)
