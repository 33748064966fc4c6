from __future__ import annotations

from barnabas.client.admin.keys import each_of


def test_each_key_stands_once_in_its_order() -> None:
    assert each_of(["b", "a", "b"]) == ["b", "a"]


def test_a_text_alone_is_one_name() -> None:
    assert each_of("orders") == ["orders"]
