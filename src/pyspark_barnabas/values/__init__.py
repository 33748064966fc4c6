"""Values decoded in the source: `value.format` = json | avro | protobuf | csv | string puts typed columns in the place of bytes.

A decoder is made on the driver, where the schema is found (given, from a registry, or inferred from a sample), and pickled to the
executors, where it turns the column `value` of each Arrow batch into what the schema says. It must never lose a record silently: one that
does not fit goes where `value.mode` and `value.deadLetterTopic` say.

    decoder = values.decoder(options)          # None where values stay bytes
    decoder.schema()                           # the columns that stand for `value`
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
    """The decoder that the options ask for, or None.

    `schema` is that of the whole source, where it is known already: Spark asks for it once and hands it to every reader, so that nothing
    is inferred twice, and the second time perhaps otherwise.
    """
    settings = ValueSettings.of(options)
    if settings is None:
        return None
    from pyspark_barnabas.values.formats import format_of
    from pyspark_barnabas.values.value_decoder import ValueDecoder

    return ValueDecoder(settings, format_of(settings, options, schema))
