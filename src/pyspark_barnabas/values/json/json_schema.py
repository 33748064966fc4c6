"""Converts a JSON Schema of a registry to Spark types.

A part without a definite type becomes a string, which accepts any JSON. Records are not validated against the schema, which is the
serializer's task: only their types must fit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_barnabas.errors import SchemaError

_DEPTH_MAX: Final = 50
_FORMATS: Final[dict[str, DataType]] = {"date": DateType(), "date-time": TimestampType()}


def struct_of_json_schema(text: str, referred: Mapping[str, str] | None = None) -> StructType:
    """The columns of a schema. `referred` are other schemas by the URIs of its references. Raises SchemaError if it does not describe an
    object."""
    try:
        root = json.loads(text)
        others = {name: json.loads(other) for name, other in (referred or {}).items()}
    except ValueError as fault:
        raise SchemaError(f"The registry's JSON Schema is no JSON: {fault}") from None
    kind = _Reader(root, others).kind(root, root, 0)
    if not isinstance(kind, StructType) or not kind.fields:
        raise SchemaError("The registry's JSON Schema describes no object with properties. Set the option 'value.schema' to read it with.")
    return kind


class _Reader:
    def __init__(self, root: Any, others: Mapping[str, Any]) -> None:
        self._root = root
        self._others = others

    def kind(self, schema: Any, file: Any, depth: int) -> DataType:
        if depth > _DEPTH_MAX:
            raise SchemaError(
                "The registry's JSON Schema refers to itself, which a table cannot. Set the option 'value.schema' to read it with."
            )
        if not isinstance(schema, dict):
            return StringType()
        if "$ref" in schema:
            target, found_file = self._referred(str(schema["$ref"]), file)
            return self.kind(target, found_file, depth + 1)
        for word in ("anyOf", "oneOf"):
            choices = [choice for choice in schema.get(word, ()) if not (isinstance(choice, dict) and choice.get("type") == "null")]
            if choices:
                kinds = [self.kind(choice, file, depth + 1) for choice in choices]
                return kinds[0] if all(kind == kinds[0] for kind in kinds) else StringType()
        if schema.get("allOf"):
            return self._merged([self.kind(part, file, depth + 1) for part in schema["allOf"]])
        return self._of_type(schema, file, depth)

    def _of_type(self, schema: Mapping[str, Any], file: Any, depth: int) -> DataType:
        types = schema.get("type")
        names = {types} if isinstance(types, str) else set(types or ())
        names.discard("null")
        if not names:
            names = {"object"} if "properties" in schema else {"array"} if "items" in schema else set()
        if names == {"integer", "number"} or names == {"number"}:
            return DoubleType()
        if len(names) != 1:
            return StringType()
        (name,) = names
        if name == "object":
            return self._object(schema, file, depth)
        if name == "array":
            return ArrayType(self.kind(schema.get("items"), file, depth + 1))
        if name == "string":
            return _FORMATS.get(str(schema.get("format")), StringType())
        return {"integer": LongType(), "boolean": BooleanType()}.get(name, StringType())

    def _object(self, schema: Mapping[str, Any], file: Any, depth: int) -> DataType:
        properties = schema.get("properties") or {}
        if properties:
            return StructType([StructField(name, self.kind(part, file, depth + 1)) for name, part in properties.items()])
        rest = schema.get("additionalProperties")
        return MapType(StringType(), self.kind(rest, file, depth + 1)) if isinstance(rest, dict) else StringType()

    def _merged(self, kinds: list[DataType]) -> DataType:
        fields = {field.name: field for kind in kinds if isinstance(kind, StructType) for field in kind.fields}
        return StructType(list(fields.values())) if fields else kinds[0]

    def _referred(self, reference: str, file: Any) -> tuple[Any, Any]:
        name, _, path = reference.partition("#")
        if name:
            if name not in self._others:
                raise SchemaError(f"The registry's JSON Schema refers to {name}, which is not among its references")
            file = self._others[name]
        node = file
        for step in path.split("/")[1:]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and key.isdigit() and int(key) < len(node):
                node = node[int(key)]
            elif isinstance(node, dict) and key in node:
                node = node[key]
            else:
                raise SchemaError(f"The registry's JSON Schema refers to {reference}, which is not in it")
        return node, file
