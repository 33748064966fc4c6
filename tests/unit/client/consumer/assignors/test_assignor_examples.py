"""The client's assignors: worked examples."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from barnabas.client.cluster import Cluster, Node, PartitionInfo
from barnabas.client.consumer.assignors import (
    AbstractPartitionAssignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RebalanceProtocol,
    RoundRobinAssignor,
    StickyAssignor,
    Subscription,
    common_protocol,
    make_assignors,
)
from barnabas.client.consumer.assignors.assignor import Assignment, ConsumerPartitionAssignor, TopicRacks
from barnabas.client.consumer.assignors.sticky_assignor import read_user_data, write_user_data
from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
from barnabas.client.consumer.membership.classic_leader import check_cooperative
from barnabas.client.errors import IllegalArgument, IllegalState, KafkaError
from barnabas.topic_partition import TopicPartition

Owned = dict[str, str]  # by member, partitions like "t0p0 t1p2"


def assign(
    assignor: AbstractPartitionAssignor, counts: dict[str, int], wants: dict[str, str], owned: Owned | None = None, generation: int = 1
) -> Owned:
    """Partitions by member, written as in the examples: `{"C0": "t0p0 t0p1"}`."""
    topics = {topic: [frozenset[str]()] * count for topic, count in counts.items()}
    subscriptions = {
        member: subscription(assignor, names, (owned or {}).get(member, ""), generation if owned else -1) for member, names in wants.items()
    }
    return {member: show(given) for member, given in assignor.assign_partitions(topics, subscriptions).items()}


def subscription(assignor: AbstractPartitionAssignor, names: str, owned: str, generation: int) -> Subscription:
    partitions = read(owned)
    data = write_user_data(partitions, generation) if isinstance(assignor, StickyAssignor) and generation >= 0 else None
    return Subscription(tuple(names.split()), data, partitions, generation)


def read(text: str) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(one.split("p")[0], int(one.split("p")[1])) for one in text.split())


def show(partitions: list[TopicPartition]) -> str:
    return " ".join(f"{topic}p{number}" for topic, number in sorted(partitions))


def counts_of(given: Owned) -> list[int]:
    return [len(partitions.split()) for partitions in given.values()]


# One topic


@pytest.mark.parametrize(
    ("partitions", "members", "shares"),
    [
        (4, 4, [1, 1, 1, 1]),
        (4, 2, [2, 2]),
        (7, 1, [7]),
        (7, 2, [4, 3]),
        (7, 3, [3, 2, 2]),
        (7, 8, [1, 1, 1, 1, 1, 1, 1, 0]),
    ],
)
@pytest.mark.parametrize("assignor", [RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor])
def test_partitions_are_shared_out_and_the_last_members_may_be_idle(
    assignor: type[AbstractPartitionAssignor], partitions: int, members: int, shares: list[int]
) -> None:
    assert counts_of(assign(assignor(), {"t": partitions}, {f"C{number}": "t" for number in range(members)})) == shares


# Range


def test_range_divides_each_topic_by_itself() -> None:
    both = {"C0": "t0 t1", "C1": "t0 t1"}
    assert assign(RangeAssignor(), {"t0": 4, "t1": 4}, both) == {"C0": "t0p0 t0p1 t1p0 t1p1", "C1": "t0p2 t0p3 t1p2 t1p3"}


def test_range_gives_the_first_member_more_of_every_topic() -> None:
    both = {"C0": "t0 t1", "C1": "t0 t1"}
    assert assign(RangeAssignor(), {"t0": 3, "t1": 3}, both) == {"C0": "t0p0 t0p1 t1p0 t1p1", "C1": "t0p2 t1p2"}


def test_range_counts_only_those_that_subscribe_to_a_topic() -> None:
    got = assign(RangeAssignor(), {"t0": 3, "t1": 3, "t2": 2}, {"A": "t0 t1", "B": "t2", "C": "t1 t2"})
    assert got == {"A": "t0p0 t0p1 t0p2 t1p0 t1p1", "B": "t2p0", "C": "t1p2 t2p1"}


def test_static_members_come_first_in_the_order_of_their_instance_ids() -> None:
    subscriptions = {
        "m1": Subscription(("t",)),
        "m2": Subscription(("t",), group_instance_id="b"),
        "m3": Subscription(("t",), group_instance_id="a"),
    }
    got = RangeAssignor().assign_partitions({"t": [frozenset()] * 3}, subscriptions)
    assert {member: show(given) for member, given in got.items()} == {"m3": "tp0", "m2": "tp1", "m1": "tp2"}


def test_range_prefers_partitions_that_have_a_replica_in_the_members_rack() -> None:
    subscriptions = {"C0": Subscription(("t",), rack_id="a"), "C1": Subscription(("t",), rack_id="b")}
    got = RangeAssignor().assign_partitions({"t": [frozenset("b"), frozenset("a"), frozenset("b"), frozenset("a")]}, subscriptions)
    assert {member: show(given) for member, given in got.items()} == {"C0": "tp1 tp3", "C1": "tp0 tp2"}


def test_range_keeps_the_same_partitions_of_alike_topics_together_by_rack_too() -> None:
    subscriptions = {"C0": Subscription(("s", "t"), rack_id="a"), "C1": Subscription(("s", "t"), rack_id="b")}
    racks = [frozenset("b"), frozenset("a")]
    got = RangeAssignor().assign_partitions({"s": racks, "t": racks}, subscriptions)
    assert {member: show(given) for member, given in got.items()} == {"C0": "sp1 tp1", "C1": "sp0 tp0"}


# Round robin


def test_round_robin_deals_all_partitions_in_turn() -> None:
    both = {"C0": "t0 t1", "C1": "t0 t1"}
    assert assign(RoundRobinAssignor(), {"t0": 3, "t1": 3}, both) == {"C0": "t0p0 t0p2 t1p1", "C1": "t0p1 t1p0 t1p2"}


def test_round_robin_passes_over_those_that_do_not_subscribe() -> None:
    got = assign(RoundRobinAssignor(), {"t0": 1, "t1": 2, "t2": 3}, {"C0": "t0", "C1": "t0 t1", "C2": "t0 t1 t2"})
    assert got == {"C0": "t0p0", "C1": "t1p0", "C2": "t1p1 t2p0 t2p1 t2p2"}


# Sticky


FOUR_BY_TWO = {"t0": 2, "t1": 2, "t2": 2, "t3": 2}
ALL_FOUR = "t0 t1 t2 t3"
THREE_SHARES = {"C0": "t0p0 t1p1 t3p0", "C1": "t0p1 t2p0 t3p1", "C2": "t1p0 t2p1"}


def test_sticky_begins_as_round_robin_does() -> None:
    assert assign(StickyAssignor(), FOUR_BY_TWO, dict.fromkeys(("C0", "C1", "C2"), ALL_FOUR)) == THREE_SHARES


def test_sticky_lets_those_that_stay_keep_everything_when_one_leaves() -> None:
    owned = {member: had for member, had in THREE_SHARES.items() if member != "C1"}
    got = assign(StickyAssignor(), FOUR_BY_TWO, dict.fromkeys(("C0", "C2"), ALL_FOUR), owned)
    assert counts_of(got) == [4, 4]
    assert all(set(owned[member].split()) <= set(got[member].split()) for member in owned)


def test_round_robin_deals_anew_when_one_leaves() -> None:
    got = assign(RoundRobinAssignor(), FOUR_BY_TWO, dict.fromkeys(("C0", "C2"), ALL_FOUR))
    assert got == {"C0": "t0p0 t1p0 t2p0 t3p0", "C2": "t0p1 t1p1 t2p1 t3p1"}


UNEVEN = {"t0": 1, "t1": 2, "t2": 3}
UNEVEN_WANTS = {"C0": "t0", "C1": "t0 t1", "C2": "t0 t1 t2"}


def test_sticky_is_more_even_than_round_robin_where_subscriptions_differ() -> None:
    assert assign(StickyAssignor(), UNEVEN, UNEVEN_WANTS) == {"C0": "t0p0", "C1": "t1p0 t1p1", "C2": "t2p0 t2p1 t2p2"}


def test_sticky_moves_only_what_is_free_where_subscriptions_differ() -> None:
    wants = {member: topics for member, topics in UNEVEN_WANTS.items() if member != "C0"}
    got = assign(StickyAssignor(), UNEVEN, wants, {"C1": "t1p0 t1p1", "C2": "t2p0 t2p1 t2p2"})
    assert got == {"C1": "t0p0 t1p0 t1p1", "C2": "t2p0 t2p1 t2p2"}


def test_round_robin_keeps_only_three_in_that_case() -> None:
    before = assign(RoundRobinAssignor(), UNEVEN, UNEVEN_WANTS)
    after = assign(RoundRobinAssignor(), UNEVEN, {member: topics for member, topics in UNEVEN_WANTS.items() if member != "C0"})
    assert sum(len(set(before[member].split()) & set(after[member].split())) for member in after) == 3


def test_sticky_believes_the_newer_of_two_claims() -> None:
    subscriptions = {
        "old": Subscription(("t",), write_user_data(read("tp0 tp1"), 1), generation_id=1),
        "new": Subscription(("t",), write_user_data(read("tp0 tp1"), 2), generation_id=2),
    }
    got = StickyAssignor().assign_partitions({"t": [frozenset()] * 2}, subscriptions)
    assert sorted(map(show, got.values())) == ["tp0", "tp1"]
    assert show(got["new"]) == "tp0"


def test_sticky_remembers_what_it_was_given() -> None:
    assignor = StickyAssignor()
    assert assignor.subscription_user_data(()) is None
    assignor.on_assignment(Assignment(read("tp0 tp2")), ConsumerGroupMetadata("g", 7))
    data = assignor.subscription_user_data(())
    assert data is not None
    assert (read_user_data(data).partitions, read_user_data(data).generation) == (read("tp0 tp2"), 7)


def test_user_data_of_the_first_version_has_no_generation() -> None:
    data = write_user_data(read("tp0"), 7)[:-4]
    assert (read_user_data(data).partitions, read_user_data(data).generation) == (read("tp0"), None)


def test_user_data_that_cannot_be_read_counts_as_nothing() -> None:
    assert read_user_data(b"\xff\xff\x00").partitions == ()


# Cooperative


def test_a_cooperative_assignor_takes_first_and_gives_in_the_next_round() -> None:
    wants = dict.fromkeys(("C0", "C1"), "t")
    first = assign(CooperativeStickyAssignor(), {"t": 4}, wants, {"C0": "tp0 tp1 tp2 tp3", "C1": ""})
    second = assign(CooperativeStickyAssignor(), {"t": 4}, wants, first)
    assert (first, second) == ({"C0": "tp0 tp1", "C1": ""}, {"C0": "tp0 tp1", "C1": "tp2 tp3"})


def test_the_protocol_is_the_best_that_all_assignors_have() -> None:
    assert common_protocol(make_assignors(["cooperative-sticky"], {})) is RebalanceProtocol.COOPERATIVE
    assert common_protocol(make_assignors(["range", "cooperative-sticky"], {})) is RebalanceProtocol.EAGER
    assert common_protocol([]) is None


class OnlyCooperative(CooperativeStickyAssignor):
    name = "only-cooperative"
    supported_protocols = (RebalanceProtocol.COOPERATIVE,)


def test_assignors_without_a_common_protocol_are_refused() -> None:
    with pytest.raises(IllegalArgument, match="do not have commonly supported rebalance protocol"):
        common_protocol(make_assignors(["range", OnlyCooperative], {}))


def test_a_cooperative_assignor_may_not_give_away_what_is_still_owned() -> None:
    subscriptions = {"a": Subscription(("t",), owned_partitions=read("tp0")), "b": Subscription(("t",))}
    with pytest.raises(IllegalState, match="violates its requirements"):
        check_cooperative(subscriptions, {"a": Assignment(()), "b": Assignment(read("tp0"))})


# Which assignors


@pytest.mark.parametrize("name", ["range", "org.apache.kafka.clients.consumer.RangeAssignor", RangeAssignor, RangeAssignor()])
def test_an_assignor_is_named_in_several_ways(name: object) -> None:
    assert isinstance(make_assignors([name], {})[0], RangeAssignor)


def test_an_assignor_is_found_by_its_python_name() -> None:
    name = "barnabas.client.consumer.assignors.range_assignor.RangeAssignor"
    assert isinstance(make_assignors([name], {})[0], RangeAssignor)


@pytest.mark.parametrize("name", ["nonsense", "no.such.Thing", "barnabas.client.errors.KafkaError", 7])
def test_what_is_no_assignor_is_refused(name: object) -> None:
    with pytest.raises(KafkaError):
        make_assignors([name], {})


def test_two_assignors_of_one_name_are_refused() -> None:
    with pytest.raises(KafkaError, match="used in more than one assignor"):
        make_assignors([RangeAssignor, "range"], {})


def test_an_assignor_may_be_configured() -> None:
    class Configured(RangeAssignor):
        settings: object = None

        def configure(self, settings: object) -> None:
            self.settings = settings

    (assignor,) = make_assignors([Configured], {"my.setting": 1})
    assert isinstance(assignor, Configured)
    assert assignor.settings == {"my.setting": 1}


# Custom ones, with a cluster to look at


def cluster(count: int) -> Cluster:
    nodes = [Node(number, "h", 1, rack=f"r{number}") for number in range(count)]
    return Cluster(nodes, [PartitionInfo("t", number, nodes[number], (nodes[number],)) for number in range(count)])


def test_topics_that_do_not_exist_are_left_out() -> None:
    got = RangeAssignor().assign(cluster(2), {"a": Subscription(("t", "missing"))})
    assert got == {"a": Assignment(read("tp0 tp1"))}


class Broadcast(ConsumerPartitionAssignor):
    """Every member gets every partition of its topics."""

    name = "broadcast"

    def assign(self, cluster: Cluster, subscriptions: dict[str, Subscription]) -> dict[str, Assignment]:  # type: ignore[override]
        return {
            member: Assignment(tuple(info.topic_partition for topic in one.topics for info in cluster.partitions_for_topic(topic)))
            for member, one in subscriptions.items()
        }


def test_an_assignor_may_give_everything_to_everybody() -> None:
    got = Broadcast().assign(cluster(2), {"a": Subscription(("t",)), "b": Subscription(("t",))})
    assert [show(list(given.partitions)) for given in got.values()] == ["tp0 tp1", "tp0 tp1"]


class ByLeadersRack(ConsumerPartitionAssignor):
    """A partition goes to the member in its leader's rack, which the member told in its user data."""

    name = "by-leaders-rack"

    def assign(self, cluster: Cluster, subscriptions: dict[str, Subscription]) -> dict[str, Assignment]:  # type: ignore[override]
        by_rack = {one.user_data: member for member, one in subscriptions.items()}
        given: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
        for info in cluster.partitions_for_topic("t"):
            assert info.leader is not None and info.leader.rack is not None
            given[by_rack[info.leader.rack.encode()]].append(info.topic_partition)
        return {member: Assignment(tuple(partitions)) for member, partitions in given.items()}


def test_an_assignor_may_use_user_data_and_leaders() -> None:
    got = ByLeadersRack().assign(cluster(2), {"a": Subscription(("t",), b"r1"), "b": Subscription(("t",), b"r0")})
    assert {member: show(list(given.partitions)) for member, given in got.items()} == {"a": "tp1", "b": "tp0"}


class AtRandom(AbstractPartitionAssignor):
    """Every partition goes to any member that wants its topic."""

    name = "random"

    def __init__(self) -> None:
        self.random = Random(1)

    def assign_partitions(self, topics: TopicRacks, subscriptions: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
        given: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
        for topic, partitions in topics.items():
            wanting = [member for member, one in subscriptions.items() if topic in one.topics]
            for number in range(len(partitions)):
                given[self.random.choice(wanting)].append(TopicPartition(topic, number))
        return given


def test_an_assignor_may_leave_it_to_chance() -> None:
    subscriptions = {"a": Subscription(("t",)), "b": Subscription(("t",)), "c": Subscription(("other",))}
    got = AtRandom().assign(cluster(40), subscriptions)
    assert sorted(partition for given in got.values() for partition in given.partitions) == sorted(
        read(" ".join(f"tp{n}" for n in range(40)))
    )
    assert got["a"].partitions and got["b"].partitions and not got["c"].partitions
