"""Describes groups of one type by the request of that type, at their coordinators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from barnabas.client.admin.call import ApiResult, Call
from barnabas.client.admin.calls import Calls
from barnabas.client.admin.locators import coordinators, settle
from barnabas.client.admin.outcomes import Outcomes
from barnabas.client.cluster import Node
from barnabas.protocol.message import Message

D = TypeVar("D")


class DescribedGroup(Protocol):
    """A group in the response to ShareGroupDescribe or StreamsGroupDescribe."""

    group_id: str
    error_code: int
    error_message: str | None


G = TypeVar("G", bound=DescribedGroup)


async def describe_groups(
    calls: Calls,
    call: Call,
    group_ids: Iterable[str],
    request_for: Callable[[list[str]], Message],
    description_of: Callable[[G, Node], D],
) -> Outcomes[str, D]:
    """`request_for` builds the request for the groups of one coordinator, `description_of` reads a group of its response."""

    async def request_from_node(call: Call, node_id: int, groups: Sequence[str]) -> ApiResult[str, D]:
        response: Any = await calls.send(call, node_id, request_for(list(groups)))
        coordinator = calls.directory.node(node_id)
        result: ApiResult[str, D] = ApiResult()
        for group in response.groups:
            if group.error_code:
                settle(result, group.group_id, group.error_code, group.error_message)
            else:
                result.done[group.group_id] = description_of(group, coordinator)
        return result

    return await calls.request_by_node(call, group_ids, coordinators(calls), request_from_node)
