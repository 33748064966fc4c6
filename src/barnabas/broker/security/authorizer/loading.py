"""Loads the class of authorizer.class.name: one of Kafka's, for which AclAuthorizer stands, or the dotted path of a Python class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

from barnabas.broker.security.authorizer.authorizer import Authorizer
from barnabas.config_def import InvalidConfig
from barnabas.metadata.client import TreeClient

AUTHORIZER_CLASS: Final = "authorizer.class.name"
KAFKA_CLASSES: Final = (
    "kafka.security.authorizer.AclAuthorizer",
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.auth.SimpleAclAuthorizer",
)


def load_authorizer(properties: Mapping[str, str], tree: TreeClient, now_ms: Callable[[], int]) -> Authorizer | None:
    """The configured authorizer; None if the setting is empty. Raises InvalidConfig: a broker whose authorizer cannot be made must not
    start."""
    name = properties.get(AUTHORIZER_CLASS, "").strip()
    if not name:
        return None
    authorizer = _acl_authorizer(tree, now_ms) if name in KAFKA_CLASSES else _python_authorizer(name)
    authorizer.configure(dict(properties))
    return authorizer


def _acl_authorizer(tree: TreeClient, now_ms: Callable[[], int]) -> Authorizer:
    from barnabas.broker.security.authorizer.acl_authorizer import AclAuthorizer  # most brokers start without it

    return AclAuthorizer(tree, now_ms)


def _python_authorizer(name: str) -> Authorizer:
    module_name, _, class_name = name.rpartition(".")
    try:
        named = getattr(import_module(module_name), class_name)
        authorizer = named() if isinstance(named, type) and issubclass(named, Authorizer) else None  # calls nothing else
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise InvalidConfig(
            f"Invalid value {name} for configuration {AUTHORIZER_CLASS}: no Python class can be made of it ({error}); "
            f"use {KAFKA_CLASSES[0]}, or the dotted path of a class that is on PYTHONPATH"
        ) from error
    if authorizer is None:
        raise InvalidConfig(
            f"Invalid value {name} for configuration {AUTHORIZER_CLASS}: the class does not derive from "
            f"{Authorizer.__module__}.{Authorizer.__qualname__}"
        )
    return authorizer
