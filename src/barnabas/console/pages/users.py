"""Users with SCRAM credentials, and delegation tokens. Passwords are hashed here and never leave the process."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from barnabas.client.admin.access.scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from barnabas.console.failures import failure_of, sentence
from barnabas.console.pages.access import TABS
from barnabas.console.web.routes import get, post
from barnabas.console.web.visit import Visit
from barnabas.errors import KafkaError

ITERATIONS_DEFAULT: Final = 8192
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384  # Kafka's bound
ROWS_MAX: Final = 1_000
MECHANISMS: Final = (ScramMechanism.SCRAM_SHA_512, ScramMechanism.SCRAM_SHA_256)
NAME_MAX: Final = 1_000


async def users(visit: Visit, error: str | None = None, entered: str = "", status: int = 200) -> Response:
    unknown, rows, total = None, [], 0
    search = visit.argument("q")
    try:
        described = (await visit.cluster.admin.describe_user_scram_credentials()).successes
        matching = sorted(name for name in described if search.lower() in name.lower())
        total = len(matching)
        rows = [described[name] for name in matching[:ROWS_MAX]]
    except KafkaError as refusal:
        unknown = f"{sentence(refusal)} Listing users needs Describe on the cluster."
    return visit.page(
        "access_users.html",
        status=status,
        tabs=TABS,
        rows=rows,
        total=total,
        search=search,
        unknown=unknown,
        error=error,
        entered=entered,
        choices=[(one.mechanism_name, one.mechanism_name) for one in MECHANISMS],
        iterations=ITERATIONS_DEFAULT,
        bounds=(ITERATIONS_MIN, ITERATIONS_MAX),
    )


async def set_password(visit: Visit) -> Response:
    """Creates a user, or changes a password."""
    form = await visit.form()
    name, password = form.get("name", "").strip(), form.get("password", "")
    mechanism = ScramMechanism.from_mechanism_name(form.get("mechanism", ""))
    text = form.get("iterations", "")
    iterations = int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0
    wrong = None
    if not name or len(name) > NAME_MAX:
        wrong = "Enter the name of the user."
    elif not password:
        wrong = "Enter a password."
    elif password != form.get("again", password):
        wrong = "The two passwords differ. Enter the same one twice."
    elif mechanism not in MECHANISMS:
        wrong = "Choose a mechanism."
    elif not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        wrong = f"Iterations must be a number from {ITERATIONS_MIN} to {ITERATIONS_MAX}."
    if wrong is not None:
        return await users(visit, wrong, name, 422)
    try:
        credential = UserScramCredentialUpsertion(
            name, ScramCredentialInfo(mechanism, iterations), password.encode("utf-8", "surrogateescape")
        )
        (await visit.cluster.admin.alter_user_scram_credentials([credential])).all()
    except KafkaError as refusal:
        return await users(visit, sentence(refusal), name, failure_of(refusal).status)
    return visit.changed(f"The user {name} has a new password for {mechanism.mechanism_name}.", "/access/users")


async def delete(visit: Visit) -> Response:
    form = await visit.form()
    name, mechanism = form.get("name", ""), ScramMechanism.from_mechanism_name(form.get("mechanism", ""))
    if not name or mechanism not in MECHANISMS:
        return await users(visit, "Choose a user and one of its mechanisms.", "", 422)
    try:
        (await visit.cluster.admin.alter_user_scram_credentials([UserScramCredentialDeletion(name, mechanism)])).all()
    except KafkaError as refusal:
        return await users(visit, sentence(refusal), "", failure_of(refusal).status)
    return visit.changed(f"The user {name} can no longer log in with {mechanism.mechanism_name}.", "/access/users")


async def tokens(visit: Visit) -> Response:
    unknown, rows = None, []
    try:
        rows = sorted(await visit.cluster.admin.describe_delegation_token(), key=lambda token: token.token_info.expiry_timestamp)
    except KafkaError as refusal:
        unknown = sentence(refusal)
    return visit.page(
        "access_tokens.html", tabs=TABS, rows=[token.token_info for token in rows[:ROWS_MAX]], total=len(rows), unknown=unknown
    )


ROUTES: Final = (
    get("/access/users", users),
    post("/access/users", set_password),
    post("/access/users/delete", delete),
    get("/access/tokens", tokens),
)
