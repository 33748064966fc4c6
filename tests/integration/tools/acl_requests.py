"""CreateAcls, DescribeAcls and DeleteAcls by hand, with what no tool sends: codes of the future, of filters, and of nothing."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.describe_acls_request import DescribeAclsRequest
from barnabas.security.acl import PatternType, ResourceType
from tests.integration.transactions.wire import Connection

VERSIONS = (1, 3)  # the lowest and the highest of Apache Kafka 4.2
TOPIC, GROUP, CLUSTER = int(ResourceType.TOPIC), int(ResourceType.GROUP), int(ResourceType.CLUSTER)
LITERAL, PREFIXED, MATCH = int(PatternType.LITERAL), int(PatternType.PREFIXED), int(PatternType.MATCH)
ANY, UNKNOWN, FUTURE = 1, 0, 99
READ, ALTER, CREATE_TOKENS, ALLOW = 3, 7, 13, 3


def _creation(
    name: str,
    kind: int = TOPIC,
    pattern: int = LITERAL,
    principal: str = "User:x",
    host: str = "*",
    operation: int = READ,
    allow: int = ALLOW,
) -> AclCreation:
    return AclCreation(kind, name, pattern, principal, host, operation, allow)


def _created() -> dict[str, list[AclCreation]]:
    return {
        "as it should": [_creation("a"), _creation("pre", pattern=PREFIXED)],
        "an operation of the future": [_creation("a", operation=FUTURE), _creation("b")],
        "any operation": [_creation("a", operation=ANY), _creation("c")],
        "any permission": [_creation("a", allow=ANY)],
        "a permission of the future": [_creation("a", allow=FUTURE)],
        "a pattern that matches": [_creation("a", pattern=MATCH)],
        "any pattern": [_creation("a", pattern=ANY)],
        "a pattern of the future": [_creation("a", pattern=FUTURE)],
        "any type": [_creation("a", kind=ANY)],
        "a type of the future": [_creation("a", kind=FUTURE)],
        "no name": [_creation("")],
        "another cluster": [_creation("another", CLUSTER, operation=ALTER)],
        "every cluster": [_creation("*", CLUSTER, operation=ALTER)],
        "a prefix of the cluster": [_creation("kafka-cluster", CLUSTER, PREFIXED, operation=ALTER)],
        "a principal without a type": [_creation("a", principal="x")],
        "a principal of an empty type": [_creation("a", principal=":x")],
        "no principal": [_creation("a", principal="")],
        "no host": [_creation("h", host="")],
        "the name of a host": [_creation("h", host="host.example")],
        "an operation that the resource has not": [_creation("g", GROUP, operation=CREATE_TOKENS)],
        "nothing": [],
        "an unknown operation": [_creation("a", operation=UNKNOWN)],
    }


def _requests() -> dict[str, Message]:
    everybody = (None, None)
    return {
        **{f"create: {name}": CreateAclsRequest(creations) for name, creations in _created().items()},
        "describe: a topic": DescribeAclsRequest(TOPIC, "a", LITERAL, *everybody, ANY, ANY),
        "describe: by match": DescribeAclsRequest(TOPIC, "prefix", MATCH, *everybody, ANY, ANY),
        "describe: an operation of the future": DescribeAclsRequest(TOPIC, "a", LITERAL, *everybody, FUTURE, ANY),
        "describe: a type of the future": DescribeAclsRequest(FUTURE, "a", LITERAL, *everybody, ANY, ANY),
        "describe: a pattern of the future": DescribeAclsRequest(TOPIC, "a", FUTURE, *everybody, ANY, ANY),
        "describe: an unknown operation": DescribeAclsRequest(TOPIC, "a", LITERAL, *everybody, UNKNOWN, ANY),
        "describe: nothing there": DescribeAclsRequest(TOPIC, "nowhere", LITERAL, *everybody, ANY, ANY),
        "delete: codes of the future": DeleteAclsRequest(
            [DeleteAclsFilter(FUTURE, "a", LITERAL, *everybody, ANY, ANY), DeleteAclsFilter(TOPIC, "a", LITERAL, *everybody, FUTURE, ANY)]
        ),
        "delete: an unknown pattern": DeleteAclsRequest([DeleteAclsFilter(TOPIC, "a", UNKNOWN, *everybody, ANY, ANY)]),
        "delete: by two filters that match the same": DeleteAclsRequest(
            [DeleteAclsFilter(TOPIC, "a", LITERAL, *everybody, ANY, ANY), DeleteAclsFilter(TOPIC, "a", ANY, "User:x", None, ANY, ANY)]
        ),
        "delete: nothing": DeleteAclsRequest([]),
        "delete: all": DeleteAclsRequest([DeleteAclsFilter(ANY, None, ANY, *everybody, ANY, ANY)]),
    }


REQUESTS = {f"acls: {name}, v{version}": (request, version) for name, request in _requests().items() for version in VERSIONS}


def ask(name: str, bootstrap: str) -> str:
    """The answer, with ACLs in one order, or that the connection was closed."""
    connection = Connection(bootstrap)
    try:
        return _text(connection.ask(*REQUESTS[name]))
    except ConnectionError:
        return "closed"
    finally:
        connection.close()


def _text(value: object) -> str:
    if isinstance(value, list):
        texts = [_text(element) for element in value]
        is_set = any(text.startswith(("AclDescription", "DescribeAclsResource", "DeleteAclsMatchingAcl")) for text in texts)
        return f"[{', '.join(sorted(texts) if is_set else texts)}]"
    if isinstance(value, Message):
        return f"{type(value).__name__}({', '.join(f'{name}={_text(getattr(value, name))}' for name in value.field_names())})"
    return repr(value)
