"""Every name in the tables of docs/clients.md exists: ours in our clients, theirs in the version of theirs that is installed.

Code in a cell is parsed. `producer.send(…, timestamp=…)` must be a method of the producer with that parameter, `Timeout` a class, and
`linger_ms` a setting; with asyncio a coroutine must be awaited, and nothing else may be. What stands for a value of the reader's is not
looked at.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiokafka.abc
import aiokafka.admin
import confluent_kafka.admin
import pytest

from barnabas import client
from barnabas.client import admin, consumer, errors, producer, serialization
from barnabas.client.admin.config import KEYS as ADMIN_KEYS
from barnabas.client.consumer.config import KEYS as CONSUMER_KEYS
from barnabas.client.producer.config import KEYS as PRODUCER_KEYS
from tests.documentation import Block, Row, python_blocks, remarks, text, translations

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of how kafka-python reads its schemas
    import kafka.admin
    import kafka.consumer.fetcher
    import kafka.errors
    import kafka.producer.future

PAGE = "docs/clients.md"
ROWS = list(translations(PAGE))
OUR_SETTINGS = {name.replace("_", ".") for name in (*PRODUCER_KEYS, *CONSUMER_KEYS, *ADMIN_KEYS)}
OUR_MODULES = (client, producer, consumer, admin, serialization, errors)


@dataclass(frozen=True)
class Scope:
    """Where the names of one client are found: variables by the class they are of, classes by their modules, and settings."""

    variables: Mapping[str, Any]
    modules: tuple[Any, ...]
    settings: frozenset[str]
    checks_await: bool = False

    def found(self, name: str) -> Any:
        for module in self.modules:
            if hasattr(module, name):
                return getattr(module, name)
        return getattr(builtins, name, None)


def _ours(**clients: Any) -> Scope:
    values = {
        "delivery": client.Delivery,
        "record": client.ConsumerRecord,
        "records": client.ConsumerRecords,
        "listener": client.ConsumerRebalanceListener,
        "outcomes": admin.Outcomes,
        "error": errors.KafkaError,
    }
    return Scope(clients | values, OUR_MODULES, frozenset(OUR_SETTINGS), clients["producer"] is client.AsyncProducer)


BLOCKING = _ours(producer=client.Producer, consumer=client.Consumer, admin=client.Admin)
ASYNCIO = _ours(producer=client.AsyncProducer, consumer=client.AsyncConsumer, admin=client.AsyncAdmin)


def _parameters(*classes: Any) -> frozenset[str]:
    return frozenset(name.replace("_", ".") for kind in classes for name in inspect.signature(kind).parameters)


THEIRS = {
    "kafka-python": Scope(
        {
            "producer": kafka.KafkaProducer,
            "consumer": kafka.KafkaConsumer,
            "admin": kafka.KafkaAdminClient,
            "future": kafka.producer.future.FutureRecordMetadata(kafka.producer.future.FutureProduceResult(None), 0, 0, None, 0, 0, 0),
            "record": kafka.consumer.fetcher.ConsumerRecord,
        },
        (kafka, kafka.admin, kafka.errors),
        frozenset(
            name.replace("_", ".")
            for kind in (kafka.KafkaProducer, kafka.KafkaConsumer, kafka.KafkaAdminClient)
            for name in kind.DEFAULT_CONFIG
        ),
    ),
    "aiokafka": Scope(
        {
            "producer": aiokafka.AIOKafkaProducer,
            "consumer": aiokafka.AIOKafkaConsumer,
            "admin": aiokafka.admin.AIOKafkaAdminClient,
        },
        (aiokafka, aiokafka.admin, aiokafka.errors, aiokafka.abc),
        _parameters(aiokafka.AIOKafkaProducer, aiokafka.AIOKafkaConsumer, aiokafka.admin.AIOKafkaAdminClient),
        checks_await=True,
    ),
    "confluent-kafka": Scope(
        {
            "producer": confluent_kafka.Producer,
            "consumer": confluent_kafka.Consumer,
            "admin": confluent_kafka.admin.AdminClient,
            "message": confluent_kafka.Message,
        },
        (confluent_kafka, confluent_kafka.admin),
        frozenset(),
    ),
}


def _label(row: Row) -> str:
    return f"{row.subject}: {(row.theirs or row.ours)[0]}"


@pytest.mark.parametrize("row", ROWS, ids=_label)
def test_our_names_in_the_row_exist(row: Row) -> None:
    scope = ASYNCIO if row.subject.startswith("aiokafka") else BLOCKING
    for code in row.ours:
        _check(code, scope)


@pytest.mark.parametrize("row", ROWS, ids=_label)
def test_their_names_in_the_row_exist(row: Row) -> None:
    name, _, about = row.subject.partition(": ")
    for code in row.theirs:
        if name == "confluent-kafka" and about == "settings":
            _check_librdkafka(code.partition("=")[0])
        else:
            _check(code, THEIRS[name])


def test_our_names_in_the_text_exist() -> None:
    """What is said of a variable that has the name of one of ours; the rest may be anybody's."""
    ours = [code for code in remarks(PAGE) if "." in code and code.partition(".")[0] in BLOCKING.variables]
    assert ours
    for code in ours:
        _check(code, BLOCKING)


@pytest.mark.parametrize(
    ("code", "scope"),
    [
        ("producer.produce(topic)", BLOCKING),
        ("producer.send(topic, value, timestamp_ms=now)", BLOCKING),
        ("consumer.seek_to_beginning()", BLOCKING),
        ("Producer(linger=5)", BLOCKING),
        ("Consumer({'linger.ms': 5, 'group': 'g'})", BLOCKING),
        ("KafkaTimeoutError", BLOCKING),
        ("ssl_cafile", BLOCKING),
        ("message.value()", BLOCKING),
        ("consumer.position(partition)", ASYNCIO),
        ("await consumer.seek(partition, 5)", ASYNCIO),
    ],
)
def test_a_name_that_does_not_exist_is_found_out(code: str, scope: Scope) -> None:
    with pytest.raises((AssertionError, TypeError)):
        _check(code, scope)


@pytest.mark.parametrize("client_name", list(THEIRS))
def test_every_part_of_a_client_has_its_table(client_name: str) -> None:
    subjects = {row.subject.partition(": ")[2] for row in ROWS if row.subject.startswith(client_name)}
    assert subjects == {"producer", "consumer", "admin", "settings", "exceptions"}


@pytest.mark.parametrize("kind", [client.Producer, client.Consumer], ids=lambda kind: kind.__name__)
def test_every_call_of_our_client_is_somewhere_on_the_page(kind: Any) -> None:
    """A newcomer who looks for a method finds it: in a table, or in a block."""
    shown = text(PAGE)
    methods = {name for name in vars(kind) if not name.startswith("_")} - {"client_id", "client_instance_id", "enforce_rebalance"}
    assert {name for name in methods if f".{name}" not in shown and f"{name}()" not in shown} == set()


@pytest.mark.parametrize("block", python_blocks(PAGE), ids=str)
def test_settings_in_the_block_exist(block: Block) -> None:
    """A client only warns of a name it does not know."""
    names = {"Producer", "Consumer", "Admin", "AsyncProducer", "AsyncConsumer", "AsyncAdmin"}
    for node in ast.walk(ast.parse(block.source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            _check_settings(node, BLOCKING)


def _check(code: str, scope: Scope) -> None:
    if _is_setting(code, scope):
        return
    source = f"async def shown():\n    {code}"
    tree = ast.parse(source)
    awaited = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Await)}
    awaited |= {id(item.context_expr) for node in ast.walk(tree) if isinstance(node, ast.AsyncWith) for item in node.items}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            _check_call(node, scope, id(node) in awaited)
        elif isinstance(node, ast.Attribute):
            _attribute(node, scope)
        elif isinstance(node, ast.Name) and node.id[0].isupper():
            assert scope.found(node.id) is not None, f"{node.id} does not exist"


def _is_setting(code: str, scope: Scope) -> bool:
    """`linger.ms`, `linger_ms` or one with a value: `linger_ms=0`."""
    name = code.partition("=")[0]
    if name.replace("_", ".") in scope.settings:
        return True
    if not name.replace("_", "").replace(".", "").isalnum() or name[0].isupper() or name.split(".")[0] in scope.variables:
        return False
    assert "=" in code and "(" in code, f"{name} is no setting"  # else it is an assignment
    return False


def _attribute(node: ast.Attribute, scope: Scope) -> Any:
    """The thing that `producer.send` or `OffsetSpec.latest` is; None if it is of a value that is not known here."""
    if not isinstance(node.value, ast.Name):
        return None
    root = node.value.id
    if root == "re":
        return None
    owner = scope.variables[root] if root in scope.variables else scope.found(root)
    assert owner is not None, f"{root} is not known"
    assert hasattr(owner, node.attr), f"{root} has no {node.attr}"
    return getattr(owner, node.attr)


def _check_call(node: ast.Call, scope: Scope, is_awaited: bool) -> None:
    if isinstance(node.func, ast.Attribute):
        called = _attribute(node.func, scope)
        if called is None:
            return
        _check_parameters(node, called, is_method=isinstance(node.func.value, ast.Name) and node.func.value.id in scope.variables)
        if scope.checks_await:
            waits = inspect.iscoroutinefunction(called) or node.func.attr == "transaction"
            assert waits == is_awaited, f"{node.func.attr} must {'' if waits else 'not '}be awaited"
    elif isinstance(node.func, ast.Name) and node.func.id[0].isupper():
        kind = scope.found(node.func.id)
        assert kind is not None, f"{node.func.id} does not exist"
        if _takes_settings(kind):
            _check_settings(node, scope)
        else:
            _check_parameters(node, kind, is_method=False)


def _takes_settings(kind: Any) -> bool:
    try:
        parameters = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


def _check_settings(node: ast.Call, scope: Scope) -> None:
    given = [keyword.arg for keyword in node.keywords if keyword.arg is not None]
    for argument in node.args:
        if isinstance(argument, ast.Dict):
            given += [key.value for key in argument.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    for name in given:
        assert not scope.settings or name.replace("_", ".") in scope.settings, f"{name} is no setting"


def _check_parameters(node: ast.Call, called: Any, *, is_method: bool) -> None:
    try:
        signature = inspect.signature(called)
    except (TypeError, ValueError):
        return  # of C, and says nothing of its parameters
    bound = is_method and (inspect.isfunction(called) or inspect.ismethoddescriptor(called))  # compiled methods are of the second kind
    signature.bind(*([None] if bound else []), *node.args, **{keyword.arg: None for keyword in _named(node)})


def _named(node: ast.Call) -> Iterator[Any]:
    return (keyword for keyword in node.keywords if keyword.arg is not None)


def _check_librdkafka(name: str) -> None:
    if name.endswith("_cb") or name == "logger":
        return  # of the Python layer above it
    for kind in (confluent_kafka.Producer, confluent_kafka.Consumer):
        try:
            kind({"group.id": "g", "log_level": 0, name: "no value of this setting"})
        except confluent_kafka.KafkaException as refused:
            assert "No such configuration property" not in str(refused)
