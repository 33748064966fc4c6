"""The identity of a consumer in its group. `Producer.send_offsets_to_transaction` sends it to the coordinator, which fences members of
older generations."""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN_GENERATION = -1
UNKNOWN_MEMBER = ""


@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadata:
    """`generation_id` is the member epoch in the consumer protocol."""

    group_id: str
    generation_id: int = UNKNOWN_GENERATION
    member_id: str = UNKNOWN_MEMBER
    group_instance_id: str | None = None
