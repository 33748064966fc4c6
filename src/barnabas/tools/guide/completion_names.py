"""Completes the names of topics, groups and settings on a command line, from the broker that the command would use.

Completion runs while the user types: it waits for the broker at most a second and a half, and without an answer it offers nothing and
prints nothing. Names of settings are known without a broker.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

from barnabas.tools.command_line.grammar import Grammar, grammar_of
from barnabas.tools.connecting.connect import open_admin
from barnabas.tools.connecting.default_cluster import BOOTSTRAP_OPTION, CLIENT_FILES, with_default_cluster
from barnabas.tools.connecting.reachable import giving_up_after

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

_PATIENCE: Final = {"default.api.timeout.ms": 1500, "request.timeout.ms": 1000, "socket.connection.setup.timeout.ms": 1000}
_TOPICS: Final = "topics"
_BROKERS: Final = "brokers"
_GROUPS: Final = "groups"


def print_names(kind: str, words: Sequence[str]) -> None:
    """`words` is the command line so far, starting with the name of the tool."""
    logging.disable(logging.CRITICAL)
    try:
        names = _asked(kind, words)
    except Exception:  # completion must not print errors while the user types
        names = []
    if not names and kind == "settings":
        names = _known_settings(_resource(words)[0])
    for name in sorted(names):
        print(name)


def _asked(kind: str, words: Sequence[str]) -> list[str]:
    grammar = _grammar(words)
    complete, _ = with_default_cluster(grammar, words[1:], os.environ, runs_alone=True)
    given = grammar.given(complete)
    file = next((given[name] for name in CLIENT_FILES if name in given), None)
    settings = {name.replace(".", "_"): value for name, value in _PATIENCE.items()}
    with giving_up_after(None), open_admin(given[BOOTSTRAP_OPTION], file, **settings) as admin:
        return list(_ASK[kind](admin, words))


def _grammar(words: Sequence[str]) -> Grammar:
    return grammar_of(import_module(f"barnabas.tools.{words[0].replace('-', '_')}"))


def _topics(admin: Admin, _: Sequence[str]) -> Iterable[str]:
    return admin.list_topics(list_internal=True)


def _groups(admin: Admin, _: Sequence[str]) -> Iterable[str]:
    return (group.group_id for group in admin.list_groups().valid)


def _entities(admin: Admin, words: Sequence[str]) -> Iterable[str]:
    """The entities of the type on the command line whose names the cluster lists."""
    kind = _resource(words)[0]
    if kind == _BROKERS:
        return (str(node.id) for node in admin.describe_cluster().nodes)
    return _topics(admin, words) if kind == _TOPICS else _groups(admin, words) if kind == _GROUPS else ()


def _settings(admin: Admin, words: Sequence[str]) -> Iterable[str]:
    """The settings of the entity on the command line, or of any other of its type: all have the same settings."""
    from barnabas.client.admin.cluster.config_entries import ConfigResource, ConfigResourceType

    kind, name = _resource(words)
    if kind == _TOPICS:
        topics = admin.list_topics(list_internal=True)
        resource = ConfigResource(ConfigResourceType.TOPIC, name if name in topics else next(iter(topics)))
    elif kind == _BROKERS:
        resource = ConfigResource(ConfigResourceType.BROKER, name or str(admin.describe_cluster().nodes[0].id))
    elif kind == _GROUPS:
        resource = ConfigResource(ConfigResourceType.GROUP, name or "any")
    else:
        return ()
    return (entry.name for entry in admin.describe_configs([resource])[resource].entries)


def _resource(words: Sequence[str]) -> tuple[str, str]:
    """The entity type and name, as kafka-configs and kafka-topics take them; empty if they are not given."""
    values = _grammar(words).given(words[1:])
    for option, kind in (("--topic", _TOPICS), ("--broker", _BROKERS), ("--group", _GROUPS)):
        if option in values:
            return kind, values[option]
    if "--broker-defaults" in values:
        return _BROKERS, ""
    return values.get("--entity-type", _TOPICS if words[0] == "topics" else ""), values.get("--entity-name", "")


def _known_settings(kind: str) -> list[str]:
    from barnabas.broker.config.definitions import BROKER_CONFIGS
    from barnabas.broker.config.groups import GROUP_CONFIGS
    from barnabas.storage.topic_configs import TOPIC_CONFIGS
    from barnabas.tools.administration.quota_configs import IP_QUOTAS, QUOTAS

    quotas = {"clients": QUOTAS, "users": QUOTAS, "ips": IP_QUOTAS}
    return list({_TOPICS: TOPIC_CONFIGS, _GROUPS: GROUP_CONFIGS}.get(kind) or quotas.get(kind) or BROKER_CONFIGS)


_ASK: Final[dict[str, Callable[[Admin, Sequence[str]], Iterable[str]]]] = {
    "topics": _topics,
    "groups": _groups,
    "settings": _settings,
    "entities": _entities,
}
