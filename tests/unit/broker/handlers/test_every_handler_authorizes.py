"""Every handler asks `broker.access`, unless it is listed here with the reason why everybody may use it."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from barnabas.broker.handlers import CONTROL, HANDLERS
from barnabas.protocol.registry import APIS

# No operation of Kafka's covers these APIs.
OPEN_TO_ALL: Final = {
    "api_versions": "the first request of a connection, before it is authenticated",
    "sasl_handshake": "a part of the authentication itself",
    "sasl_authenticate": "a part of the authentication itself",
    "get_telemetry_subscriptions": "each client may ask what the cluster asks it for",
    "push_telemetry": "a client pushes metrics of its own, which the cluster has asked it for",
    "renew_delegation_token": "only the owner and the renewers of a token renew it, whatever is granted",
    "expire_delegation_token": "only the owner and the renewers of a token expire it, whatever is granted",
}
PAGE: Final = Path(__file__).parents[4] / "docs" / "security.md"
ASKED_THROUGH: Final = {"config_access"}  # a module that asks `broker.access` for several handlers


def source(module: str) -> str:
    path = import_module(f"barnabas.broker.handlers.{module}").__file__
    assert path is not None
    return (Path(path).parent / f"{module}.py").read_text()


def asks(module: str) -> bool:
    nodes = list(ast.walk(ast.parse(source(module))))
    reads_access = any(isinstance(node, ast.Attribute) and node.attr == "access" for node in nodes)
    return reads_access or any(isinstance(node, ast.Name) and node.id in ASKED_THROUGH for node in nodes)


@pytest.mark.parametrize("module", sorted({*HANDLERS.values(), *CONTROL.values()}))
def test_a_handler_authorizes_its_requests(module: str) -> None:
    assert asks(module) != (module in OPEN_TO_ALL)


@pytest.mark.parametrize("module", sorted({*HANDLERS.values(), *CONTROL.values()} - OPEN_TO_ALL.keys()))
def test_a_handler_says_what_it_authorizes(module: str) -> None:
    assert "\nAuthorization" in (ast.get_docstring(ast.parse(source(module))) or "")


@pytest.mark.parametrize("module", sorted(ASKED_THROUGH))
def test_what_handlers_ask_through_asks_itself(module: str) -> None:
    assert asks(module)


def test_the_table_of_operations_has_every_api_once_in_order() -> None:
    _, _, table = PAGE.read_text().partition("\n## Operations per API\n")
    rows = [line.split("|")[1:5] for line in table.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    assert [row[0].strip() for row in rows[1:]] == [APIS[key].name for key in sorted(HANDLERS | CONTROL)]


def test_the_table_of_operations_says_what_each_handler_can_answer() -> None:
    """An error in a row is one that the docstring of the handler names."""
    _, _, table = PAGE.read_text().partition("\n## Operations per API\n")
    rows = {line.split("|")[1].strip(): line.split("|")[3] for line in table.splitlines() if line.startswith("| ")}
    modules = {APIS[key].name: module for key, module in {**HANDLERS, **CONTROL}.items()}
    for name, module in modules.items():
        documented = ast.get_docstring(ast.parse(source(module))) or ""
        errors = [word.strip(",.;:") for word in rows[name].split() if word.strip(",.;:").endswith(("_FAILED", "_MISMATCH"))]
        assert [error for error in errors if error not in documented] == [], name
