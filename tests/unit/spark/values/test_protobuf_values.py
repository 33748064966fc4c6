"""Protobuf values: messages come back as rows with the types of Spark's from_protobuf, by a descriptor file and by a registry."""

from __future__ import annotations

import pickle
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import duration_pb2, timestamp_pb2
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from barnabas.client.serialization.protobuf import ProtobufSerializer
from barnabas.client.serialization.registry import SchemaRegistryClient
from pyspark_barnabas import values
from pyspark_barnabas.errors import OptionError
from tests import schema_registry

F = FieldDescriptorProto
SCALARS = {
    "i": F.TYPE_INT32, "l": F.TYPE_INT64, "u": F.TYPE_UINT32, "ul": F.TYPE_UINT64, "f": F.TYPE_FLOAT, "d": F.TYPE_DOUBLE, "o": F.TYPE_BOOL,
    "s": F.TYPE_STRING, "b": F.TYPE_BYTES, "x": F.TYPE_SFIXED64,
}  # fmt: skip


def field(name: str, number: int, kind: Any, label: Any = F.LABEL_OPTIONAL, type_name: str = "", **more: Any) -> Any:
    return F(name=name, number=number, type=kind, label=label, type_name=type_name or None, **more)


def the_file() -> FileDescriptorProto:
    item = DescriptorProto(name="Item", field=[field("x", 1, F.TYPE_INT32)])
    entry = DescriptorProto(name="CountsEntry", field=[field("key", 1, F.TYPE_STRING), field("value", 2, F.TYPE_INT64)])
    entry.options.map_entry = True
    fields = [field(name, number, kind) for number, (name, kind) in enumerate(SCALARS.items(), 1)]
    fields += [
        field("state", 20, F.TYPE_ENUM, type_name=".shop.State"),
        field("best", 21, F.TYPE_MESSAGE, type_name=".shop.Item"),
        field("items", 22, F.TYPE_MESSAGE, F.LABEL_REPEATED, ".shop.Item"),
        field("tags", 23, F.TYPE_STRING, F.LABEL_REPEATED),
        field("counts", 24, F.TYPE_MESSAGE, F.LABEL_REPEATED, ".shop.Order.CountsEntry"),
        field("at", 25, F.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp"),
        field("took", 26, F.TYPE_MESSAGE, type_name=".google.protobuf.Duration"),
        field("maybe", 27, F.TYPE_INT32, proto3_optional=True, oneof_index=0),
    ]
    order = DescriptorProto(name="Order", field=fields, nested_type=[entry])
    order.oneof_decl.add(name="_maybe")
    node = DescriptorProto(name="Node", field=[field("next", 1, F.TYPE_MESSAGE, type_name=".shop.Node")])
    state = EnumDescriptorProto(name="State")
    state.value.add(name="NEW", number=0)
    state.value.add(name="SENT", number=1)
    return FileDescriptorProto(
        name="shop.proto",
        package="shop",
        syntax="proto3",
        dependency=["google/protobuf/timestamp.proto", "google/protobuf/duration.proto"],
        message_type=[order, item, node],
        enum_type=[state],
    )


def _pool() -> DescriptorPool:
    pool = DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(duration_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(the_file())
    return pool


POOL = _pool()
Order, Item, Node = (GetMessageClass(POOL.FindMessageTypeByName(f"shop.{name}")) for name in ("Order", "Item", "Node"))


def full() -> Any:
    order = Order(i=-1, l=2**40, u=2**32 - 1, ul=2**64 - 1, f=0.5, d=1.25, o=True, s="é", b=b"\0\1", x=-7, state=1, tags=["a"], maybe=0)
    order.best.x = 3
    order.items.add(x=1)
    order.items.add()
    order.counts["k"] = 5
    order.at.FromDatetime(datetime(2020, 1, 2, 3, 4, 5, 678901))
    order.took.FromTimedelta(timedelta(days=1, microseconds=5))
    return order


FULL = {
    "i": -1, "l": 2**40, "u": -1, "ul": -1, "f": 0.5, "d": 1.25, "o": True, "s": "é", "b": b"\0\1", "x": -7, "state": "SENT",
    "best": {"x": 3},
    "items": [{"x": 1}, {"x": None}], "tags": ["a"], "counts": [("k", 5)], "at": datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    "took": timedelta(days=1, microseconds=5), "maybe": 0,
}  # fmt: skip


@pytest.fixture
def descriptors(tmp_path: Path) -> str:
    path = tmp_path / "shop.desc"
    path.write_bytes(FileDescriptorSet(file=[the_file()]).SerializeToString())
    return str(path)


def decode(options: dict[str, str], *rows: bytes | None) -> list[dict[str, Any]]:
    decoder = values.decoder({"value.format": "protobuf", "subscribe": "orders", **options})
    assert decoder is not None
    decoder = pickle.loads(pickle.dumps(decoder))
    result: list[dict[str, Any]] = decoder.decode(pa.record_batch({"value": pa.array(rows, pa.binary())})).to_pylist()
    return result


def test_every_type_comes_back(descriptors: str) -> None:
    (row,) = decode({"value.descFilePath": descriptors, "value.messageName": "shop.Order"}, full().SerializeToString())
    assert row == {"value": FULL, "_corrupt": None}


def test_the_columns_have_the_types_of_from_protobuf(descriptors: str) -> None:
    decoder = values.decoder({"value.format": "protobuf", "value.descFilePath": descriptors, "value.messageName": "Order"})
    assert decoder is not None
    assert decoder.schema()["value"].dataType.simpleString() == (
        "struct<i:int,l:bigint,u:int,ul:bigint,f:float,d:double,o:boolean,s:string,b:binary,x:bigint,state:string,best:struct<x:int>,"
        "items:array<struct<x:int>>,tags:array<string>,counts:map<string,bigint>,at:timestamp,took:interval day to second,maybe:int>"
    )


def test_what_is_not_set_is_null_or_with_an_option_its_default(descriptors: str) -> None:
    options = {"value.descFilePath": descriptors, "value.messageName": "shop.Order"}
    (row,) = decode(options, b"")
    assert {name: value for name, value in row["value"].items() if value is not None} == {"items": [], "tags": [], "counts": []}
    (row,) = decode({**options, "value.emitDefaultValues": "true", "value.enumsAsInts": "true"}, b"")
    assert (row["value"]["i"], row["value"]["s"], row["value"]["state"], row["value"]["maybe"], row["value"]["best"]) == (
        0,
        "",
        0,
        None,
        None,
    )


def test_an_enum_value_that_the_schema_lacks_is_its_number(descriptors: str) -> None:
    (row,) = decode({"value.descFilePath": descriptors, "value.messageName": "shop.Order"}, Order(state=9).SerializeToString())
    assert row["value"]["state"] == "9"


def test_bytes_that_are_no_message_are_malformed(descriptors: str) -> None:
    result = decode(
        {"value.descFilePath": descriptors, "value.messageName": "shop.Order"}, full().SerializeToString()[:-1], b"\xff\xff", None
    )
    assert [row["_corrupt"] is not None for row in result] == [True, True, False]
    assert result[2]["value"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"value.messageName": "shop.Missing"}, "value.messageName.*no message 'shop.Missing'"),
        ({"value.messageName": "shop.Node"}, "contains itself"),
        ({}, "value.messageName.*must be set"),
        ({"value.messageName": "shop.Order", "value.descFilePath": "/nowhere"}, "value.descFilePath.*cannot be read"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_option(descriptors: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        values.decoder({"value.format": "protobuf", "value.descFilePath": descriptors, **options})


@pytest.fixture
def registry() -> Generator[schema_registry.Registry, None, None]:
    with schema_registry.running() as registry:
        yield registry


def test_framed_messages_are_read_by_the_registrys_schema(registry: schema_registry.Registry) -> None:
    serializer = ProtobufSerializer(registry=SchemaRegistryClient({"schema.registry.url": registry.url}))
    good = serializer.serialize("orders", full())
    other = serializer.serialize("orders", Item(x=5))
    result = decode({"value.schema.registry.url": registry.url}, good, other, b"\7", good[:-1] if good else None)
    assert result[0] == {"value": FULL, "_corrupt": None}
    assert [row["_corrupt"] is not None for row in result] == [False, True, True, True]
    assert result[1]["_corrupt"]["reason"] == "it is a shop.Item, not a shop.Order"


def test_another_message_of_the_file_may_be_chosen(registry: schema_registry.Registry) -> None:
    serializer = ProtobufSerializer(registry=SchemaRegistryClient({"schema.registry.url": registry.url}))
    value = serializer.serialize("orders", Item(x=5))
    assert decode({"value.schema.registry.url": registry.url, "value.messageName": "shop.Item"}, value)[0]["value"] == {"x": 5}
