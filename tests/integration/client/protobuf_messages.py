"""Protobuf messages for tests, as protoc would have made them: built from descriptors, since there is no protoc here."""

from __future__ import annotations

from typing import Any

from google.protobuf import timestamp_pb2  # the file that ours import
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

STRING, INT64, MESSAGE = FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_INT64, FieldDescriptorProto.TYPE_MESSAGE


def _field(number: int, name: str, kind: int, of: str = "") -> Any:
    field = FieldDescriptorProto(name=name, number=number, type=kind, label=FieldDescriptorProto.LABEL_OPTIONAL)
    if of:
        field.type_name = of
    return field


def _files() -> list[Any]:
    place = DescriptorProto(name="Place", field=[_field(1, "city", STRING)])
    places = FileDescriptorProto(name="shop/places.proto", package="shop", syntax="proto3", message_type=[place])
    line = DescriptorProto(name="Line", field=[_field(1, "article", STRING), _field(2, "pieces", INT64)])
    order = DescriptorProto(
        name="Order",
        nested_type=[DescriptorProto(name="Note", field=[_field(1, "text", STRING)]), line],
        field=[
            _field(1, "id", INT64),
            _field(2, "to", MESSAGE, ".shop.Place"),
            _field(3, "at", MESSAGE, ".google.protobuf.Timestamp"),
            _field(4, "line", MESSAGE, ".shop.Order.Line"),
        ],
    )
    orders = FileDescriptorProto(
        name="shop/orders.proto",
        package="shop",
        syntax="proto3",
        dependency=["shop/places.proto", "google/protobuf/timestamp.proto"],
        message_type=[order, DescriptorProto(name="Refund", field=[_field(1, "id", INT64)])],
    )
    return [places, orders]


_pool = DescriptorPool()
_pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
for _file in _files():
    _pool.AddSerializedFile(_file.SerializeToString())

Place: Any = GetMessageClass(_pool.FindMessageTypeByName("shop.Place"))
Order: Any = GetMessageClass(_pool.FindMessageTypeByName("shop.Order"))
Line: Any = GetMessageClass(_pool.FindMessageTypeByName("shop.Order.Line"))
Refund: Any = GetMessageClass(_pool.FindMessageTypeByName("shop.Refund"))
