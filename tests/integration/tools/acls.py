"""kafka-acls: ACLs added, listed and removed. Both brokers have an authorizer to which everybody is a super user.

Kafka prints sets in any order, so the lines are compared sorted.
"""

from __future__ import annotations

from dataclasses import replace

from tests.integration.tools.commands import TOOLS, Command, command

SETTINGS = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users": "User:ANONYMOUS"}
_BOB = "--add --allow-principal User:bob"


def _acls(name: str, arguments: str) -> Command:
    return replace(command(f"acls: {name}", f"{TOOLS}.AclCommand", arguments), any_order=True)


def _added() -> list[Command]:
    return [
        _acls("none listed", "--list"),
        _acls("added", f"{_BOB} --topic plain"),
        _acls("added twice", f"{_BOB} --topic plain"),
        _acls("a prefix added", f"{_BOB} --topic pre --resource-pattern-type prefixed --operation Read --operation Write"),
        _acls("a wildcard added", "--add --allow-principal User:* --topic * --operation Describe"),
        _acls("a prefix of a star added", f"{_BOB} --topic * --resource-pattern-type prefixed --operation Read"),
        _acls("hosts added", f"{_BOB} --group hosts --operation Read --allow-host 10.0.0.1 --allow-host 10.0.0.2"),
        _acls("a denial added", "--add --deny-principal User:eve --deny-host 10.0.0.3 --topic plain --operation All"),
        _acls("added for a certificate", "--add --allow-principal User:CN=eve,OU=a:b --topic plain --operation Read"),
        _acls("added for the cluster", f"{_BOB} --cluster --operation Alter"),
        _acls("added for a token", f"{_BOB} --delegation-token token --operation Describe"),
        _acls("added for a user", f"{_BOB} --user-principal User:carol --operation CreateTokens"),
        _acls("added for a producer", f"{_BOB} --producer --topic out --transactional-id txn"),
        _acls("added for a consumer", f"{_BOB} --consumer --topic in --group readers"),
        _acls("added with an operation that is none", f"{_BOB} --topic plain --operation Fly"),
        _acls("added with an operation of another resource", f"{_BOB} --group g --operation Write"),
        _acls("added with a pattern for filters", f"{_BOB} --topic plain --resource-pattern-type match"),
        _acls("added with a principal that is none", "--add --allow-principal bob --topic plain"),
        _acls("added without a principal", "--add --topic plain"),
    ]


def _listed() -> list[Command]:
    return [
        _acls("all listed", "--list"),
        _acls("listed by topic", "--list --topic plain"),
        _acls("listed by topic and pattern", "--list --topic pre --resource-pattern-type prefixed"),
        _acls("listed by what matches", "--list --topic prefix --resource-pattern-type match"),
        _acls("listed by any pattern", "--list --topic * --resource-pattern-type any"),
        _acls("listed by principal", "--list --principal User:eve"),
        _acls("listed where there is none", "--list --topic nowhere"),
    ]


def _removed() -> list[Command]:
    return [
        _acls("one removed", "--remove --force --allow-principal User:bob --topic pre --resource-pattern-type prefixed --operation Read"),
        _acls("listed once one is removed", "--list --topic pre --resource-pattern-type prefixed"),
        _acls("one that is not there removed", "--remove --force --allow-principal User:bob --topic plain --operation Create"),
        _acls("those that match removed", "--remove --force --topic prefix --resource-pattern-type match"),
        _acls("those of a topic removed", "--remove --force --topic plain"),
        _acls("listed once some are removed", "--list"),
        _acls("those of a consumer removed", "--remove --force --allow-principal User:bob --consumer --topic in --group readers"),
        _acls("the others removed", "--remove --force --cluster --delegation-token token --user-principal User:carol --group hosts"),
        _acls("listed at the end", "--list"),
    ]


ACLS = _added() + _listed() + _removed()
