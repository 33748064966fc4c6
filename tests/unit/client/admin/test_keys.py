from __future__ import annotations

from barnabas.client.admin.keys import distinct


def test_each_key_stands_once_in_its_order() -> None:
    assert distinct(["b", "a", "b"]) == ["b", "a"]


def test_a_text_alone_is_one_name() -> None:
    assert distinct("orders") == ["orders"]
