"""Values as JSON text without a schema: compact UTF-8, as Confluent's KafkaJsonSerializer writes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from barnabas.client.errors import SerializationError
from barnabas.client.serialization.api import BaseDeserializer, BaseSerializer, Headers


class JsonSerializer(BaseSerializer[Any]):
    """`default` converts values that JSON does not support, as in `json.dumps`. None is a tombstone, not `null`."""

    def __init__(self, default: Callable[[Any], Any] | None = None) -> None:
        self._encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=default).encode

    def serialize(self, topic: str, data: Any | None, headers: Headers | None = None) -> bytes | None:
        if data is None:
            return None
        try:
            return self._encode(data).encode()
        except (TypeError, ValueError, RecursionError) as fault:
            raise SerializationError(f"Error serializing JSON message: {fault}") from fault


class JsonDeserializer(BaseDeserializer[Any]):
    """`object_hook` is called with each object that was read, as in `json.loads`."""

    def __init__(self, object_hook: Callable[[dict[str, Any]], Any] | None = None) -> None:
        self._decode = json.JSONDecoder(object_hook=object_hook).decode

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> Any | None:
        if data is None:
            return None
        try:
            return self._decode(str(data, "utf-8"))
        except (ValueError, RecursionError) as fault:
            raise SerializationError(f"Error deserializing JSON message: {fault}") from fault
