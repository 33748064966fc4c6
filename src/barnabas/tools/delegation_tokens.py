"""Create, renew, expire or describe delegation tokens, as kafka-delegation-tokens does.

Options, messages, output and exit codes are those of Apache Kafka 4.2, with one difference: --describe without an owner shows the tokens of
the current user, as Kafka's help says; Kafka's tool asks for the tokens of nobody and shows none.
"""

from __future__ import annotations

import binascii
import re
import time
from base64 import b64decode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.tools.command_line.failures import BadArgument, execution, failed_with_message, finish
from barnabas.tools.command_line.options import Option, Options
from barnabas.tools.command_line.text import JSON, heading, print_json
from barnabas.tools.connecting.connect import open_admin

if TYPE_CHECKING:
    from barnabas.client.admin.access.tokens import DelegationToken
    from barnabas.client.admin.admin import Admin

ABOUT: Final = "This tool helps to create, renew, expire, or describe delegation tokens."
OPTIONS: Final = (
    Option("bootstrap-server", "REQUIRED: the brokers to connect to.", "required"),
    Option(
        "command-config",
        "REQUIRED: a properties file for the admin client. Tokens are given only to those who have logged in: it says how.",
        "required",
    ),
    Option("create", "Create a token; --renewer-principal names who may renew it."),
    Option("renew", "Prolong a token by --renew-time-period."),
    Option("expire", "End a token after --expiry-time-period."),
    Option("describe", "Show the tokens of --owner-principal; without it, all that the user owns or may see."),
    Option("owner-principal", "Whose token, as type:name; may be repeated with --describe.", "optional"),
    Option("renewer-principal", "Who may renew the token, as type:name; may be repeated.", "optional"),
    Option(
        "max-life-time-period",
        "How long the token lives at most, in ms; -1 for what the broker allows (delegation.token.max.lifetime.ms).",
        "optional",
        "Long",
    ),
    Option(
        "renew-time-period", "By how much it is prolonged, in ms; -1 for delegation.token.expiry.time.ms of the broker.", "optional", "Long"
    ),
    Option("expiry-time-period", "After how long it ends, in ms; -1 for at once.", "optional", "Long"),
    Option("hmac", "The HMAC of the token.", "optional"),
    JSON,
)
_COLUMNS: Final = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")
_WIDTHS: Final = (15, 30, 15, 15, 25, 15, 15, 15)
_NOT_BASE64: Final = re.compile(r"[^A-Za-z0-9+/=]")


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> None:
    options = Options(OPTIONS, arguments)
    options.maybe_help_or_version(ABOUT)
    actions = [action for action in _ACTIONS if options.has(action)]
    if len(actions) != 1:
        options.usage("Command must include exactly one action: --create, --renew, --expire or --describe")
    _check(options)
    with open_admin(options.text("bootstrap-server"), options.text("command-config")) as admin:
        _ACTIONS[actions[0]](admin, options)


def _check(options: Options) -> None:
    options.require("bootstrap-server", "command-config")
    needed = {
        "create": ("max-life-time-period",),
        "renew": ("hmac", "renew-time-period"),
        "expire": ("hmac", "expiry-time-period"),
    }
    for action, names in needed.items():
        if options.has(action):
            options.require(*names)
    options.refuse_with("create", ("hmac", "renew-time-period", "expiry-time-period"))
    options.refuse_with("renew", ("renewer-principal", "max-life-time-period", "expiry-time-period", "owner-principal"))
    options.refuse_with("expire", ("renew", "max-life-time-period", "renew-time-period", "owner-principal"))
    options.refuse_with("describe", ("renew-time-period", "max-life-time-period", "hmac", "expiry-time-period"))


def _create(admin: Admin, options: Options) -> None:
    renewers = _principals(options, "renewer-principal")
    life_ms = options.integer("max-life-time-period")
    owners = _principals(options, "owner-principal")
    if not options.has("json"):
        print(f"Calling create token operation with renewers :{_listed(renewers)} , max-life-time-period :{life_ms}")
    with execution():
        token = admin.create_delegation_token(renewers=renewers, owner=owners[0] if owners else None, max_lifetime_ms=life_ms)
    if options.has("json"):
        print_json(_as_json(token))
        return
    print(f"Created delegation token with tokenId : {token.token_info.token_id}")
    _print([token])


def _renew(admin: Admin, options: Options) -> None:
    period_ms = options.integer("renew-time-period")
    print(f"Calling renew token operation with hmac :{options.text('hmac')} , renew-time-period :{period_ms}")
    hmac = decode_hmac(options.text("hmac"))
    with execution():
        expires = admin.renew_delegation_token(hmac, renew_time_period_ms=period_ms)
    print(f"Completed renew operation. New expiry date : {_date(expires)}", end="")


def _expire(admin: Admin, options: Options) -> None:
    period_ms = options.integer("expiry-time-period")
    print(f"Calling expire token operation with hmac :{options.text('hmac')} , expire-time-period :{period_ms}")
    hmac = decode_hmac(options.text("hmac"))
    with execution():
        expires = admin.expire_delegation_token(hmac, expiry_time_period_ms=period_ms)
    print(f"Completed expire operation. New expiry date : {_date(expires)}", end="")


def _describe(admin: Admin, options: Options) -> None:
    owners = _principals(options, "owner-principal")
    if not options.has("json"):
        whose = f"for owners: {_listed(owners)}" if owners else "for current user."
        print(f"Calling describe token operation {whose}")
    with execution():
        tokens = admin.describe_delegation_token(owners=owners or None)
    if options.has("json"):
        print_json([_as_json(token) for token in tokens])
        return
    print(f"Total number of tokens : {len(tokens)}", end="")
    _print(tokens)


def _print(tokens: Sequence[DelegationToken]) -> None:
    print(f"\n{heading(_row(_COLUMNS))}")
    for token in tokens:
        info = token.token_info
        dates = (_date(timestamp_ms) for timestamp_ms in (info.issue_timestamp, info.expiry_timestamp, info.max_timestamp))
        cells = (info.token_id, token.hmac_as_base64_string, str(info.owner), str(info.token_requester), _listed(info.renewers), *dates)
        print(f"\n{_row(cells)}")


def _row(cells: Sequence[str]) -> str:
    return " ".join(f"{cell:{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))


def _as_json(token: DelegationToken) -> dict[str, Any]:
    info = token.token_info
    return {
        "tokenId": info.token_id,
        "hmac": token.hmac_as_base64_string,
        "owner": str(info.owner),
        "requester": str(info.token_requester),
        "renewers": [str(renewer) for renewer in info.renewers],
        "issueTimestamp": info.issue_timestamp,
        "expiryTimestamp": info.expiry_timestamp,
        "maxTimestamp": info.max_timestamp,
    }


def _date(timestamp_ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M", time.localtime(timestamp_ms / 1000))


def _principals(options: Options, name: str) -> list[Any]:
    from barnabas.security.principal import KafkaPrincipal

    return [KafkaPrincipal.parse(text.strip()) for text in options.texts(name)]


def _listed(values: Sequence[object]) -> str:
    return f"[{', '.join(map(str, values))}]"


def decode_hmac(text: str) -> bytes:
    """Refuses what is not base64 in the words of Java's decoder."""
    wrong = _NOT_BASE64.search(text)
    if wrong is not None:
        raise BadArgument(f"Illegal base64 character {ord(wrong[0]):x}")
    try:
        return b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        raise BadArgument("Input byte array has wrong 4-byte ending unit") from None


_ACTIONS: Final = {"create": _create, "renew": _renew, "expire": _expire, "describe": _describe}
