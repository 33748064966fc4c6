"""Splits a record batch that a broker rejected as too large into halves: same records, same order, same sequence numbers."""

from __future__ import annotations

from typing import Final

from barnabas.records.batch import NO_PRODUCER_ID, NO_SEQUENCE, increment_sequence, read_batch
from barnabas.records.columns.columns import decode, encode
from pyspark_barnabas.write.encode import Encoded

_SIZE_MAX: Final = 2**31 - 1


def split(batch: Encoded) -> list[Encoded]:
    """The halves of a batch of two records or more."""
    header = read_batch(batch.data, 0, len(batch.data))
    records = decode(batch.data, headers=True, check_crc=False).records
    middle = records.num_rows // 2
    halves: list[Encoded] = []
    for start, end in ((0, middle), (middle, records.num_rows)):
        part = records.slice(start, end - start)
        sequence = NO_SEQUENCE if header.producer_id == NO_PRODUCER_ID else increment_sequence(header.base_sequence, start)
        (data,) = encode(
            part.column("key"),
            part.column("value"),
            part.column("timestamp"),
            part.column("headers"),
            codec=header.codec,
            batch_size=_SIZE_MAX,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=sequence,
            transactional=header.is_transactional,
        )
        halves.append(Encoded(batch.partition, data, end - start))
    return halves
