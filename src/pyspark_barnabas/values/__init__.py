"""Values decoded in the source: `value.format` = json | avro | protobuf | csv | string replaces the bytes by typed columns.

A decoder is created on the driver, which resolves the schema (given, from a registry, or inferred from a sample), and pickled to the
executors, where it converts the column `value` of each Arrow batch to the types of the schema. It never drops a record silently:
`value.mode` and `value.deadLetterTopic` define the handling of a malformed record.

    decoder = values.decoder(options)          # None if values stay bytes
    decoder.schema()                           # the columns that replace `value`
    decoder.decode(batch)                      # an Arrow batch with these columns instead
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark_barnabas.values.settings import OPTIONS, PREFIX, ValueSettings

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from pyspark_barnabas.values.value_decoder import ValueDecoder

__all__ = ["OPTIONS", "PREFIX", "decoder"]


def decoder(options: Mapping[str, str], schema: StructType | None = None) -> ValueDecoder | None:
    """The decoder of the options, or None.

    `schema` is the schema of the whole source, if it is known already: Spark asks for it once and passes it to every reader, so that it is
    not inferred a second time, perhaps with another result.
    """
    settings = ValueSettings.of(options)
    if settings is None:
        return None
    from pyspark_barnabas.values.formats import format_of
    from pyspark_barnabas.values.value_decoder import ValueDecoder

    return ValueDecoder(settings, format_of(settings, options, schema))
