"""Suggests a known tool, command, option or setting for a misspelt one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from barnabas.near_names import near_name
from barnabas.tools.command_line.grammar import Grammar

_OPTION: Final = re.compile("--?[a-zA-Z]")
_SETTING: Final = re.compile(r"\s*([a-zA-Z][a-zA-Z0-9._-]*)\s*(?:=.*)?")
_REFUSES_MISSPELT: Final = "--override"  # and suggests a setting itself
_NOT_IN_BRACKETS: Final = r",(?=[^\]]*(?:\[|$))"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Like near_name, for names with hyphens or capitals."""
    plain = {candidate.lower().replace("-", "."): candidate for candidate in known}
    near = near_name(name, plain)
    return None if near is None else plain[near]


def suggestions(grammar: Grammar, words: Sequence[str]) -> Iterator[str]:
    """One line for each unknown word of a failed command line that is close to a known word."""
    yield from _commands(grammar, words)
    yield from _options(grammar, words)
    yield from _settings(grammar, words)


def _commands(grammar: Grammar, words: Sequence[str]) -> Iterator[str]:
    innermost = grammar.path(words)[-1]
    for word in words:
        near = nearest(word, innermost.commands) if not word.startswith("-") else None
        if near is not None and word not in innermost.commands:
            yield f"did you mean {near}? There is no command {word}"


def _options(grammar: Grammar, words: Sequence[str]) -> Iterator[str]:
    known = grammar.known(words)
    is_value = False
    for word in words:
        name = word.partition("=")[0]
        option = known.get(name) or known.get(f"-{name}")
        if option is None and not is_value and _OPTION.match(name):
            near = nearest(name.lstrip("-"), [candidate.lstrip("-") for candidate in known if candidate.startswith("--")])
            if near is not None:
                yield f"did you mean --{near}? There is no option {name}"
        is_value = option is not None and option.value != "none" and "=" not in word


def _settings(grammar: Grammar, words: Sequence[str]) -> Iterator[str]:
    known = grammar.known(words)
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        option = known.get(name)
        if option is None or option.value != "setting" or option.name == _REFUSES_MISSPELT:
            continue
        listed = value if equals else words[index + 1] if index + 1 < len(words) else ""
        for setting in _names(listed):
            near = nearest(setting, setting_names()) if setting not in setting_names() else None
            if near is not None:
                yield f"did you mean {near}? There is no setting {setting}"


def _names(listed: str) -> list[str]:
    """The names in `a=1,b=[2,3]`, or in `a,b`."""
    matches = (_SETTING.fullmatch(part) for part in re.split(_NOT_IN_BRACKETS, listed))
    return [match[1] for match in matches if match is not None]


def setting_names() -> Collection[str]:
    """The names of all settings that tools can change: of topics, brokers, groups and quotas."""
    from barnabas.broker.config.definitions import BROKER_CONFIGS
    from barnabas.broker.config.groups import GROUP_CONFIGS
    from barnabas.storage.topic_configs import TOPIC_CONFIGS
    from barnabas.tools.administration.quota_configs import IP_QUOTAS, QUOTAS, SCRAM

    return {*TOPIC_CONFIGS, *BROKER_CONFIGS, *GROUP_CONFIGS, *QUOTAS, *IP_QUOTAS, *SCRAM}
