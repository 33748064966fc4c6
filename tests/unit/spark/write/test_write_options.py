"""Options and columns of writing: refusals name what is wrong and what to do."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from pyspark_barnabas.errors import OptionError, SchemaError
from pyspark_barnabas.write.rows import check_schema
from pyspark_barnabas.write.write_options import BATCH_SIZE_DEFAULT, WriteOptions

BASE = {"kafka.bootstrap.servers": "localhost:9092"}
ONCE = BASE | {"exactlyOnce": "true", "transactionalIdPrefix": "orders"}


def test_settings_of_the_producer_are_passed_on_without_their_prefix() -> None:
    options = WriteOptions.of(BASE | {"topic": "t", "kafka.linger.ms": "7"}, streaming=False)
    assert (options.topic, options.settings["linger.ms"], options.batch_size) == ("t", "7", BATCH_SIZE_DEFAULT)


def test_a_given_batch_size_holds() -> None:
    assert WriteOptions.of(BASE | {"kafka.batch.size": "1000"}, streaming=False).batch_size == 1000


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, "kafka.bootstrap.servers"),
        (BASE | {"topc": "t"}, "topc"),
        (BASE | {"topic": ""}, "topic"),
        (BASE | {"kafka.key.serializer": "x"}, "kafka.key.serializer"),
        (BASE | {"kafka.acks": "two"}, "kafka.acks"),
        (BASE | {"kafka.transactional.id": "x"}, "kafka.transactional.id"),
        (BASE | {"transactionalIdPrefix": "x"}, "transactionalIdPrefix"),
        (BASE | {"exactlyOnce": "yes"}, "exactlyOnce"),
        (BASE | {"exactlyOnce": "true"}, "transactionalIdPrefix"),
        (ONCE | {"kafka.acks": "1"}, "kafka.acks"),
        (ONCE | {"kafka.transactional.id": "x"}, "kafka.transactional.id"),
        (ONCE | {"kafka.enable.idempotence": "false"}, "kafka.enable.idempotence"),
        (ONCE | {"verifyReplays": "maybe"}, "verifyReplays"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, str], named: str) -> None:
    with pytest.raises(OptionError) as raised:
        WriteOptions.of(options, streaming=True)
    assert raised.value.option == named


def test_exactly_once_is_for_streams() -> None:
    with pytest.raises(OptionError, match="is for streams"):
        WriteOptions.of(ONCE, streaming=False)


@pytest.mark.parametrize(
    ("schema", "topic", "message"),
    [
        ("key string", "t", "Required attribute 'value' not found"),
        ("value string", None, "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic."),
        ("value int", "t", "value attribute unsupported type int. value must be a"),
        ("value string, key long", "t", "key attribute unsupported type bigint. key must be a"),
        ("value string, topic int", None, "topic attribute unsupported type int. topic must be a"),
        ("value string, partition string", "t", "partition attribute unsupported type string. partition must be a"),
        ("value string, headers string", "t", "headers attribute unsupported type string. headers must be a"),
        ("value string, timestamp long", "t", "timestamp attribute unsupported type bigint. timestamp must be a"),
    ],
)
def test_columns_that_do_not_fit_are_refused(schema: str, topic: str | None, message: str) -> None:
    with pytest.raises(SchemaError) as raised:
        check_schema(_schema(schema), topic)
    assert message in str(raised.value)


def test_the_topic_of_the_option_goes_before_a_column_of_any_type() -> None:
    check_schema(_schema("value binary, topic int, extra double"), "t")


def _schema(text: str) -> StructType:
    from pyspark.sql.types import (
        BinaryType,
        DataType,
        DoubleType,
        IntegerType,
        LongType,
        StringType,
    )

    kinds: dict[str, DataType] = {
        "string": StringType(),
        "binary": BinaryType(),
        "int": IntegerType(),
        "long": LongType(),
        "double": DoubleType(),
    }
    schema = StructType()
    for field in text.split(", "):
        name, kind = field.split(" ")
        schema.add(name, kinds[kind])
    return schema
