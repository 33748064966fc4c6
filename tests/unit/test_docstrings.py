"""Every public class, method and setting has a docstring, and the names that users import are shown in an example.

The sources are read: compiled modules do not keep their docstrings.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any

import pytest

from barnabas.broker.config import BROKER_CONFIGS, DYNAMIC_ONLY_CONFIGS
from barnabas.client.admin.config import KEYS as ADMIN
from barnabas.client.consumer.config import KEYS as CONSUMER
from barnabas.client.producer.config import KEYS as PRODUCER
from barnabas.config_def import ConfigKey
from barnabas.storage.topic_configs import TOPIC_CONFIGS
from tests.documentation import PAGES, ROOT, python_blocks

PACKAGES = ("barnabas", "pyspark_barnabas")
PUBLIC = (
    "barnabas.client",
    "barnabas.client.producer",
    "barnabas.client.consumer",
    "barnabas.client.admin",
    "barnabas.client.serialization",
    "barnabas.client.errors",
    "barnabas.testing",
    "pyspark_barnabas",
)
TABLES = {
    "producer": PRODUCER,
    "consumer": CONSUMER,
    "admin": ADMIN,
    "topic": TOPIC_CONFIGS,
    "broker": BROKER_CONFIGS | DYNAMIC_ONLY_CONFIGS,
}
WORD = re.compile(r"\w+")
Definition = ast.FunctionDef | ast.AsyncFunctionDef


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_class_method_and_function_has_a_docstring(module: str) -> None:
    exported = import_module(module)
    missing = [name for public in exported.__all__ for name in undocumented(getattr(exported, public))]
    assert sorted(set(missing)) == []


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_setting_says_what_it_does(table: Mapping[str, ConfigKey]) -> None:
    assert [key.name for key in table.values() if not key.doc.strip()] == []


@pytest.mark.parametrize("module", ["barnabas.client", "barnabas.testing"])
def test_every_public_name_is_shown_in_an_example(module: str) -> None:
    """In a block of Python of docs/, which tests run, or in the example of a docstring."""
    assert [name for name in import_module(module).__all__ if name not in words_of_examples()] == []


def undocumented(public: Any) -> Iterator[str]:
    """The class or function, and the methods of the class and of its bases in this project, that have no docstring."""
    if inspect.isclass(public):
        if ast.get_docstring(class_of(public)) is None:
            yield f"{public.__module__}.{public.__qualname__}"
        for owner in ours(public):
            yield from (
                f"{owner.__module__}.{owner.__qualname__}.{method.name}"
                for method in methods(owner)
                if not is_documented(public, method.name)
            )
    elif inspect.isroutine(public) and ast.get_docstring(definitions(public.__module__)[public.__name__]) is None:
        yield f"{public.__module__}.{public.__name__}"


def is_documented(owner: type, name: str) -> bool:
    """A method that overrides another one may leave the docstring to it."""
    if any(method.name == name and ast.get_docstring(method) for base in ours(owner) for method in methods(base)):
        return True
    return any(getattr(base.__dict__.get(name), "__doc__", None) for base in owner.__mro__ if base not in ours(owner))


def ours(public: type) -> list[type]:
    return [base for base in public.__mro__ if base.__module__.partition(".")[0] in PACKAGES]


def methods(owner: type) -> list[Definition]:
    return [
        node
        for node in class_of(owner).body
        if isinstance(node, Definition) and not node.name.startswith("_") and not is_overload_or_setter(node)
    ]


def is_overload_or_setter(method: Definition) -> bool:
    return any(ast.unparse(decorator).endswith(("overload", ".setter")) for decorator in method.decorator_list)


def class_of(owner: type) -> ast.ClassDef:
    node = definitions(owner.__module__)[owner.__name__]
    assert isinstance(node, ast.ClassDef)
    return node


@cache
def definitions(module: str) -> dict[str, ast.ClassDef | Definition]:
    tree = ast.parse(source_of(module))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef | Definition)}


def source_of(module: str) -> str:
    path = ROOT / "src" / module.replace(".", "/")
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")


@cache
def words_of_examples() -> frozenset[str]:
    shown = [block.source for page in PAGES for block in python_blocks(page)]
    for module in PUBLIC:
        exported = import_module(module)
        for public in (getattr(exported, name) for name in exported.__all__):
            if inspect.isclass(public):
                shown += examples(ast.get_docstring(class_of(public)) or "")
                shown += examples(inspect.cleandoc(ast.get_docstring(ast.parse(source_of(public.__module__))) or ""))
    return frozenset(WORD.findall("\n".join(shown)))


def examples(docstring: str) -> Iterator[str]:
    """The indented lines, and calls between backticks."""
    yield from (line for line in docstring.splitlines() if line.startswith("    "))
    yield from re.findall(r"`([^`]+\([^`]+)`", docstring)
