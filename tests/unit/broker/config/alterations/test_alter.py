from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.config.alterations.alter import Operation, OpType, apply_to_broker, apply_to_others
from barnabas.broker.config.synonyms import config_key
from barnabas.storage.topic_configs import TOPIC_CONFIGS

ENTRIES = st.lists(st.sampled_from(["compact", "delete", "x", "y"]), min_size=1, max_size=5).map(",".join)


@given(st.none() | ENTRIES, ENTRIES)
def test_what_was_appended_is_there_once_and_behind_what_was_there(before: str | None, added: str) -> None:
    current = {} if before is None else {"cleanup.policy": before}
    changed = apply_to_others(current, [Operation("cleanup.policy", OpType.APPEND, added)], TOPIC_CONFIGS.get)["cleanup.policy"].split(",")
    old = (before or "delete").split(",")
    assert changed[: len(old)] == old
    assert set(changed) == {*old, *added.split(",")}
    assert len(set(changed[len(old) :])) == len(changed) - len(old)


@given(ENTRIES, ENTRIES)
def test_appending_and_subtracting_are_the_same_for_brokers(before: str, value: str) -> None:
    for kind in (OpType.APPEND, OpType.SUBTRACT):
        topic = apply_to_others({"cleanup.policy": before}, [Operation("cleanup.policy", kind, value)], TOPIC_CONFIGS.get)
        broker = apply_to_broker({"log.cleanup.policy": before}, [Operation("log.cleanup.policy", kind, value)], config_key)
        assert topic["cleanup.policy"] == broker["log.cleanup.policy"]


@given(ENTRIES)
def test_subtracting_what_was_appended_gives_what_was_there(added: str) -> None:
    new = ",".join(dict.fromkeys(entry for entry in added.split(",") if entry != "z"))
    appended = apply_to_others({"cleanup.policy": "z"}, [Operation("cleanup.policy", OpType.APPEND, new)], TOPIC_CONFIGS.get)
    subtracted = apply_to_others(appended, [Operation("cleanup.policy", OpType.SUBTRACT, new)], TOPIC_CONFIGS.get)
    assert subtracted == {"cleanup.policy": "z"}


def test_nothing_is_changed_in_place() -> None:
    current = {"retention.ms": "5"}
    assert apply_to_others(current, [Operation("retention.ms", OpType.DELETE, None)], TOPIC_CONFIGS.get) == {}
    assert current == {"retention.ms": "5"}
