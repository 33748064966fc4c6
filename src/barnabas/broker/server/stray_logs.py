"""Which logs of this broker are stray when it starts."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.metadata.admin_tree import AdminTree
from barnabas.storage.log.log import Log


async def strays(admin_tree: AdminTree) -> Callable[[Log], bool]:
    """Whether a log is stray: its topic was deleted, or deleted and created again, while this broker was down. A stray log is not
    served. It keeps its directory name until the first LeaderAndIsr of the controller: see LogManager.clear_away."""
    assignments = await admin_tree.topic_assignments(await admin_tree.all_topics())

    def is_stray(log: Log) -> bool:
        topic = assignments.get(log.partition.topic)
        if topic is None:
            return True
        return log.topic_id is not None and topic.topic_id is not None and log.topic_id != topic.topic_id

    return is_stray
