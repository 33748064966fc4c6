"""Where a call goes, how often it is tried, and when it gives up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.admin.call import ApiResult, Call, LookupResult, NotAssigned
from barnabas.client.admin.calls import Calls, CallSettings
from barnabas.client.errors import Disconnected, IllegalArgument, IllegalState, ThrottlingQuotaExceeded, Timeout, error_for
from barnabas.errors import CoordinatorLoadInProgress, InvalidRequest, NotController
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.message import Message
from barnabas.protocol.messages.describe_groups_request import DescribeGroupsRequest
from barnabas.protocol.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from barnabas.protocol.messages.list_groups_request import ListGroupsRequest
from barnabas.protocol.messages.list_groups_response import ListGroupsResponse
from tests.unit.client.admin.parts import BACKOFF_MS, ConstantBackoff, FakeCluster, run


def calls_of(cluster: FakeCluster, **settings: int) -> Calls:
    return Calls(cluster, cluster, CallSettings(**settings), cluster.clock, ConstantBackoff(), cluster.sleep)


def error_code(response: ListGroupsResponse) -> str:
    if response.error_code:
        raise error_for(response.error_code)
    return "listed"


def list_groups(cluster: FakeCluster, timeout_ms: int | None = None, **settings: int) -> str:
    calls = calls_of(cluster, **settings)
    return run(calls.request(calls.begin("list_groups", timeout_ms), calls.controller, lambda _: ListGroupsRequest(), error_code))


def test_a_call_that_is_answered_is_sent_once() -> None:
    cluster = FakeCluster()
    cluster.on(ListGroupsRequest, ListGroupsResponse())
    assert list_groups(cluster) == "listed"
    assert cluster.nodes_asked(ListGroupsRequest) == [1]


def test_a_retriable_error_is_tried_again_after_the_back_off() -> None:
    cluster = FakeCluster()
    cluster.on(ListGroupsRequest, ListGroupsResponse(error_code=14), Disconnected("gone"), ListGroupsResponse())
    before_ms = cluster.clock.ms
    assert list_groups(cluster) == "listed"
    assert cluster.clock.ms - before_ms == 2 * BACKOFF_MS


def test_an_error_that_is_not_retriable_is_raised_at_once() -> None:
    cluster = FakeCluster()
    cluster.on(ListGroupsRequest, ListGroupsResponse(error_code=42))
    with pytest.raises(InvalidRequest):
        list_groups(cluster)
    assert len(cluster.sent) == 1


def test_one_that_is_not_controller_any_more_sends_us_to_the_next() -> None:
    cluster = FakeCluster()
    cluster.controller_ids = [1, 3]
    cluster.on(ListGroupsRequest, ListGroupsResponse(error_code=NotController.code), ListGroupsResponse())
    assert list_groups(cluster) == "listed"
    assert cluster.nodes_asked(ListGroupsRequest) == [1, 3]
    assert cluster.updates_requested == 1


def test_no_more_than_retries_are_made() -> None:
    cluster = FakeCluster()
    cluster.on(ListGroupsRequest, ListGroupsResponse(error_code=14))
    with pytest.raises(Timeout):
        list_groups(cluster, retries=2)
    assert len(cluster.sent) == 3


def test_a_call_ends_at_its_deadline_in_kafkas_words() -> None:
    cluster = FakeCluster()
    cluster.on(ListGroupsRequest, ListGroupsResponse(error_code=14))
    with pytest.raises(Timeout) as raised:
        list_groups(cluster, timeout_ms=250)
    assert str(raised.value) == (
        "Call(callName=list_groups, deadlineMs=1000250, tries=3, nextAllowedTryMs=1000300) timed out at 1000250 after 3 attempt(s)"
    )
    assert raised.value.__cause__ is not None


def test_without_any_broker_it_is_a_node_that_was_waited_for() -> None:
    cluster = FakeCluster()
    cluster.known = False
    cluster.on(ListGroupsRequest, Disconnected("no connection"))
    with pytest.raises(Timeout, match=r"^Timed out waiting for a node assignment\. Call: list_groups$"):
        list_groups(cluster, timeout_ms=250)


def test_default_api_timeout_is_the_deadline_where_none_is_given() -> None:
    cluster = FakeCluster()
    cluster.on(ListGroupsRequest, ListGroupsResponse(error_code=14))
    before_ms = cluster.clock.ms
    with pytest.raises(Timeout):
        list_groups(cluster, default_api_timeout_ms=5000)
    assert cluster.clock.ms - before_ms == 5000


def test_a_negative_timeout_is_refused() -> None:
    with pytest.raises(IllegalArgument):
        calls_of(FakeCluster()).begin("x", -1)


def test_an_older_way_to_ask_is_used_where_the_newer_is_not_known() -> None:
    cluster = FakeCluster()
    cluster.limits[16] = 3  # before there were states and types to filter by
    cluster.on(ListGroupsRequest, ListGroupsResponse())
    calls = calls_of(cluster)

    def newer(_: int) -> Message:
        return ListGroupsRequest(["Stable"])

    def older(_: int) -> Message:
        return ListGroupsRequest()

    assert run(calls.request(calls.begin("list_groups", None), calls.any_node, newer, error_code, older)) == "listed"


def test_a_version_that_is_needed_and_not_there_is_an_error() -> None:
    cluster = FakeCluster()
    cluster.limits[16] = 3
    calls = calls_of(cluster)
    with pytest.raises(UnsupportedVersion):
        run(calls.send(calls.begin("list_groups", None), 1, ListGroupsRequest(), at_least=4))


# Keys that live on different nodes


async def spread(_: Call, keys: Sequence[str]) -> LookupResult[str]:
    return LookupResult({key: int(key[-1]) for key in keys})


def described(calls: Calls) -> object:
    async def request_from_node(call: Call, node_id: int, keys: Sequence[str]) -> ApiResult[str, int]:
        response: DescribeGroupsResponse = await calls.send(call, node_id, DescribeGroupsRequest(list(keys)))
        answer: ApiResult[str, int] = ApiResult()
        for group in response.groups:
            if group.error_code == 16:
                answer.moved.add(group.group_id)
            elif group.error_code == 30:
                answer.failed[group.group_id] = error_for(30)
            elif not group.error_code:
                answer.done[group.group_id] = node_id
        return answer

    return request_from_node


def answering(node_id: int, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[DescribedGroup(group_id=group) for group in request.groups])


def outcomes(cluster: FakeCluster, keys: list[str], locate: object = spread, timeout_ms: int = 1000) -> object:
    calls = calls_of(cluster)
    return run(calls.request_by_node(calls.begin("describe", timeout_ms), keys, locate, described(calls)))  # type: ignore[arg-type]


def test_each_node_is_asked_once_for_all_its_keys() -> None:
    cluster = FakeCluster()
    cluster.on(DescribeGroupsRequest, answering)
    assert dict(outcomes(cluster, ["a1", "b2", "c1"])) == {"a1": 1, "b2": 2, "c1": 1}  # type: ignore[call-overload]
    assert sorted(cluster.nodes_asked(DescribeGroupsRequest)) == [1, 2]


def test_a_key_that_has_moved_is_looked_up_anew() -> None:
    cluster = FakeCluster()
    places = iter([1, 2])

    async def moving(_: Call, keys: Sequence[str]) -> LookupResult[str]:
        place = next(places)
        return LookupResult(dict.fromkeys(keys, place))

    cluster.on(DescribeGroupsRequest, DescribeGroupsResponse(groups=[DescribedGroup(16, None, "a")]), answering)
    assert dict(outcomes(cluster, ["a"], moving)) == {"a": 2}  # type: ignore[call-overload]


def test_a_lost_connection_moves_all_keys_of_the_node() -> None:
    cluster = FakeCluster()
    cluster.on(DescribeGroupsRequest, Disconnected("gone"), answering)
    assert dict(outcomes(cluster, ["a1", "b1"])) == {"a1": 1, "b1": 1}  # type: ignore[call-overload]
    assert cluster.updates_requested >= 1


def test_only_the_keys_without_an_answer_are_asked_for_again() -> None:
    cluster = FakeCluster()
    loading = DescribeGroupsResponse(groups=[DescribedGroup(0, None, "a1"), DescribedGroup(14, None, "b1")])
    cluster.on(DescribeGroupsRequest, loading, answering)
    assert dict(outcomes(cluster, ["a1", "b1"])) == {"a1": 1, "b1": 1}  # type: ignore[call-overload]
    assert [request.groups for request in cluster.requests(DescribeGroupsRequest)] == [["a1", "b1"], ["b1"]]


def test_one_key_may_fail_and_the_others_not() -> None:
    cluster = FakeCluster()
    cluster.on(DescribeGroupsRequest, DescribeGroupsResponse(groups=[DescribedGroup(0, None, "a1"), DescribedGroup(30, None, "b1")]))
    result = outcomes(cluster, ["a1", "b1"])
    assert result["a1"] == 1  # type: ignore[index]
    assert [error.code for error in result.errors.values()] == [30]  # type: ignore[attr-defined]


def test_keys_that_cannot_be_located_fail_at_the_deadline_and_the_others_do_not() -> None:
    cluster = FakeCluster()
    cluster.on(DescribeGroupsRequest, answering)

    async def some(_: Call, keys: Sequence[str]) -> LookupResult[str]:
        return LookupResult({key: 1 for key in keys if key == "a"})

    result = outcomes(cluster, ["a", "b"], some)
    assert result["a"] == 1  # type: ignore[index]
    assert isinstance(result.errors["b"], Timeout)  # type: ignore[attr-defined]


def test_a_broker_that_is_not_there_is_waited_for() -> None:
    cluster = FakeCluster()
    calls = calls_of(cluster)
    with pytest.raises(NotAssigned):
        run(calls.locate_brokers(calls.begin("x", 100), [7]))


def test_a_quota_holds_keys_back_and_not_longer_than_it_says() -> None:
    cluster = FakeCluster()
    cluster.on(ListGroupsRequest, ListGroupsResponse(throttle_time_ms=700), ListGroupsResponse())
    calls = calls_of(cluster)
    requested: list[list[str]] = []

    def build(_: int, keys: Sequence[str]) -> Message:
        requested.append(list(keys))
        return ListGroupsRequest()

    def read(response: ListGroupsResponse) -> ApiResult[str, int]:
        if response.throttle_time_ms:
            return ApiResult({"a": 1}, throttled={"b": ThrottlingQuotaExceeded("slow down")}, throttle_time_ms=response.throttle_time_ms)
        return ApiResult({"b": 2})

    before_ms = cluster.clock.ms
    result = run(calls.request_keys(calls.begin("x", None), ["a", "b"], calls.any_node, build, read))
    assert result.all() == {"a": 1, "b": 2}
    assert requested == [["a", "b"], ["b"]]
    assert cluster.clock.ms - before_ms == 700


def test_what_a_quota_held_back_to_the_end_has_the_quotas_error() -> None:
    cluster = FakeCluster()
    cluster.on(ListGroupsRequest, ListGroupsResponse())
    calls = calls_of(cluster)
    held = ThrottlingQuotaExceeded("slow down")

    def read(_: ListGroupsResponse) -> ApiResult[str, None]:
        return ApiResult(throttled={"a": held})

    result = run(calls.request_keys(calls.begin("x", 300), ["a"], calls.any_node, lambda _, __: ListGroupsRequest(), read))
    assert result.errors == {"a": held}


def test_a_key_that_the_answer_leaves_out_has_an_error() -> None:
    cluster = FakeCluster()
    cluster.on(ListGroupsRequest, ListGroupsResponse())
    calls = calls_of(cluster)

    def read(_: ListGroupsResponse) -> ApiResult[str, None]:
        return ApiResult()

    result = run(calls.request_keys(calls.begin("x", 300), ["a"], calls.any_node, lambda _, __: ListGroupsRequest(), read))
    assert "did not contain a result for a" in str(result.errors["a"])


BEHAVIOURS = {"done": 0, "moved": 16, "failed": 30, "loading": 14, "left out": None, "disconnected": None}


@given(st.dictionaries(st.sampled_from(["a1", "b1", "c2", "d3"]), st.lists(st.sampled_from(sorted(BEHAVIOURS)), max_size=6)))
def test_every_key_has_one_outcome_whatever_the_nodes_do(scripts: dict[str, list[str]]) -> None:
    """Each key goes through its script, one step each time it is asked for, and then is done."""
    cluster = FakeCluster()
    left = {key: list(script) for key, script in scripts.items()}

    def reply(_: int, request: DescribeGroupsRequest) -> Message | Disconnected:
        steps = {key: left[key].pop(0) if left[key] else "done" for key in request.groups}
        if "disconnected" in steps.values():
            return Disconnected("gone")
        behaviours = {key: BEHAVIOURS[step] for key, step in steps.items()}
        return DescribeGroupsResponse(groups=[DescribedGroup(code, None, key) for key, code in behaviours.items() if code is not None])

    cluster.on(DescribeGroupsRequest, reply)
    result = outcomes(cluster, list(scripts), timeout_ms=60_000)
    assert set(result) == set(scripts)  # type: ignore[call-overload]
    errors = result.errors  # type: ignore[attr-defined]
    assert all(error.code == 30 for error in errors.values())
    assert all("failed" in scripts[key] for key in errors)
    assert not any(len(left[key]) for key in scripts if key not in errors and "done" not in scripts[key])
    assert cluster.clock.ms <= 1_000_000 + 60_000


# Closing


def test_a_closed_client_takes_no_calls() -> None:
    calls = calls_of(FakeCluster())
    run(calls.close(None))
    with pytest.raises(IllegalState):
        calls.begin("list_groups", None)


def test_nothing_is_tried_again_while_closing() -> None:
    cluster = FakeCluster()
    calls = calls_of(cluster)

    async def scenario() -> None:
        async def route(_: Call) -> int:
            await calls.close(0)
            return 1

        cluster.on(ListGroupsRequest, ListGroupsResponse(error_code=14))
        await calls.request(calls.begin("list_groups", None), route, lambda _: ListGroupsRequest(), error_code)

    with pytest.raises(CoordinatorLoadInProgress):
        run(scenario())
    assert len(cluster.sent) == 1


def test_a_call_that_outlives_the_client_is_told_so() -> None:
    cluster = FakeCluster()
    calls = calls_of(cluster)

    async def route(_: Call) -> int:
        await calls.close(0)
        raise IllegalState("Requested metadata update after close")

    with pytest.raises(Timeout, match=r"^The admin client was closed\. Call: list_groups$"):
        run(calls.request(calls.begin("list_groups", None), route, lambda _: ListGroupsRequest(), error_code))


def test_closing_waits_for_the_calls_that_are_under_way() -> None:
    async def scenario() -> list[str]:
        cluster = FakeCluster()
        calls = calls_of(cluster)
        events: list[str] = []
        answered = asyncio.Event()

        async def route(_: Call) -> int:
            await answered.wait()
            return 1

        async def request_from_node() -> None:
            await calls.request(calls.begin("list_groups", None), route, lambda _: ListGroupsRequest(), error_code)
            events.append("answered")

        async def close() -> None:
            await calls.close(None)
            events.append("closed")

        cluster.on(ListGroupsRequest, ListGroupsResponse())
        call = asyncio.create_task(request_from_node())
        await asyncio.sleep(0)
        closing = asyncio.create_task(close())
        await asyncio.sleep(0)
        answered.set()
        await asyncio.gather(call, closing)
        return events

    assert run(scenario()) == ["answered", "closed"]
