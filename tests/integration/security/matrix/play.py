"""Plays the matrix against a broker: every cell on a connection of its own, so that no request sees the state of another's connection."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.uuid import Uuid
from tests.integration.security.matrix import world as worlds
from tests.integration.security.matrix.answer import Answers
from tests.integration.security.matrix.case import UNLISTED, Case, Cell, World
from tests.integration.security.matrix.connection import connected
from tests.integration.security.matrix.names import RESOURCES, USERS
from tests.integration.security.matrix.peers import Peer

# By case and version, then by column.
Matrix = dict[str, dict[str, Any]]


def users_of(cases: Iterable[Case], kafka: str) -> set[str]:
    """All users that the broker has to know."""
    cells = (cell for case in cases for cell in case.cells(kafka, World({})))
    return {UNLISTED, *USERS, *(cell.user for cell in cells if cell.user is not None)}


def played(peer: Peer, cases: Sequence[Case], kafka: str) -> Matrix:
    """The answers to the requests that this version of Apache Kafka answers."""

    def cells(world: World) -> list[Cell]:
        return [cell for case in cases for cell in case.cells(kafka, world)]

    world = worlds.made(peer, cells)
    names = {topic_id: name for name, topic_id in world.topic_ids.items()}
    matrix: Matrix = {}
    for cell in cells(world):
        matrix.setdefault(f"{cell.case.name} v{cell.version}", {})[cell.column] = _answer(peer, cell, names)
    return matrix


def _answer(peer: Peer, cell: Cell, topics: dict[Uuid, str]) -> Any:
    names = {cell.own: "OWN", **({cell.user: "USER"} if cell.user else {})}
    answers = Answers(topics, names, RESOURCES if cell.case.lists_everything else frozenset())
    connection = connected(peer.address(cell.user), cell.user)
    try:
        if cell.case.is_answered:
            return answers.plain(connection.ask(cell.request(), cell.version))
        connection.send(cell.request(), cell.version)
        return answers.plain(connection.ask(ApiVersionsRequest(), 0))
    except ConnectionError:
        return answers.plain(None)
    finally:
        connection.close()


def grouped(matrix: Matrix) -> dict[str, list[dict[str, Any]]]:
    """Columns with the same answer together, as the record has them."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row, answers in matrix.items():
        columns: dict[str, list[str]] = {}
        for column, answer in answers.items():
            columns.setdefault(json.dumps(answer), []).append(column)
        groups[row] = [{"columns": names, "answer": json.loads(answer)} for answer, names in columns.items()]
    return groups


def ungrouped(groups: dict[str, list[dict[str, Any]]]) -> Matrix:
    return {row: {column: group["answer"] for group in answers for column in group["columns"]} for row, answers in groups.items()}
