"""authorizer.class.name: Kafka's names and dotted paths of Python classes. A broker without a usable authorizer does not start."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.security.authorizer.acl_authorizer import AclAuthorizer
from barnabas.broker.security.authorizer.authorizer import Action, Authorizer
from barnabas.broker.security.authorizer.loading import load_authorizer
from barnabas.config_def import InvalidConfig
from barnabas.metadata.client import TreeClient
from barnabas.metadata.local import LocalTree
from barnabas.security.acl import AclBindingFilter, ResourceType
from barnabas.security.errors import SecurityDisabled
from barnabas.security.operations import AclOperation
from tests.unit.broker.security.authorizer.acls import acl, session
from tests.unit.broker.security.authorizer.authorizer_examples import OnlyFrom

EXAMPLES = "tests.unit.broker.security.authorizer.authorizer_examples"


def load(name: str) -> Authorizer | None:
    tree = TreeClient(LocalTree(lambda: 0), lambda: None)
    return load_authorizer({"authorizer.class.name": name, "only.from": "10.0.0.1"}, tree, lambda: 0)


def test_without_the_setting_there_is_no_authorizer() -> None:
    assert load("") is None


@pytest.mark.parametrize(
    "name",
    [
        "kafka.security.authorizer.AclAuthorizer",
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "kafka.security.auth.SimpleAclAuthorizer",
    ],
)
def test_kafkas_classes_are_all_one_here(name: str) -> None:
    assert isinstance(load(name), AclAuthorizer)


def test_a_python_class_decides_with_the_properties_of_the_broker() -> None:
    authorizer = load(f"{EXAMPLES}.OnlyFrom")
    assert isinstance(authorizer, OnlyFrom)
    action = Action(AclOperation.READ, ResourceType.TOPIC, "orders")
    assert authorizer.authorize(session(host="10.0.0.1"), action)
    assert not authorizer.authorize(session(host="10.0.0.2"), action)
    assert authorizer.authorize_by_resource_type(session(host="10.0.0.1"), AclOperation.WRITE, ResourceType.TOPIC)
    assert not authorizer.authorize_by_resource_type(session(host="10.0.0.2"), AclOperation.WRITE, ResourceType.TOPIC)


def test_an_authorizer_without_acls_says_so() -> None:
    authorizer = load(f"{EXAMPLES}.OnlyFrom")
    assert authorizer is not None
    assert list(authorizer.acls(AclBindingFilter())) == []
    (error,) = asyncio.run(authorizer.create_acls(session(), [acl("orders")]))
    (deletion,) = asyncio.run(authorizer.delete_acls(session(), [AclBindingFilter()]))
    assert isinstance(error, SecurityDisabled)
    assert isinstance(deletion.error, SecurityDisabled)


@pytest.mark.parametrize(
    "name",
    ["com.example.Authorizer", "Authorizer", f"{EXAMPLES}.Nothing", f"{EXAMPLES}.NeedsArguments", ".", "a..b"],
)
def test_a_class_that_cannot_be_made_is_refused_with_the_setting_and_the_fix(name: str) -> None:
    with pytest.raises(InvalidConfig, match=r"authorizer\.class\.name: no Python class .* PYTHONPATH"):
        load(name)


@pytest.mark.parametrize("name", [f"{EXAMPLES}.NotAnAuthorizer", f"{EXAMPLES}.__doc__", "os.abort"])
def test_what_is_no_authorizer_is_refused_and_not_called(name: str) -> None:
    with pytest.raises(InvalidConfig, match="must derive from"):
        load(name)
