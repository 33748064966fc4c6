"""What the controller watches in the tree. A handler turns a change into an event and does nothing else.

Registering is local; the watch itself is left by the next reading of the path, which whoever processes the event does first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from barnabas.controller.events import (
    BrokerChange,
    BrokerModifications,
    ControllerChange,
    ControllerEvent,
    IsrChangeNotification,
    LogDirEventNotification,
    PartitionModifications,
    PreferredElectionNodeChange,
    ReassignmentNodeChange,
    Reelect,
    TopicChange,
    TopicDeletion,
)
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient

_CHILDREN: Final[dict[str, ControllerEvent]] = {
    paths.BROKER_IDS: BrokerChange(),
    paths.TOPICS: TopicChange(),
    paths.DELETE_TOPICS: TopicDeletion(),
    paths.LOG_DIR_EVENT_NOTIFICATION: LogDirEventNotification(),
    paths.ISR_CHANGE_NOTIFICATION: IsrChangeNotification(),
}

# Nodes that are written to ask for something, and go when it is done.
_REQUESTS: Final[dict[str, ControllerEvent]] = {
    paths.REASSIGN_PARTITIONS: ReassignmentNodeChange(),
    paths.PREFERRED_REPLICA_ELECTION: PreferredElectionNodeChange(),
}


class ControllerWatches:
    def __init__(self, tree: TreeClient, put_event: Callable[[ControllerEvent], object]) -> None:
        self._tree = tree
        self._put_event = put_event
        self._nodes: set[str] = set()

    def watch_controller(self) -> None:
        """Every broker does, also one that is not the controller: it may have to become it."""
        handler = NodeHandler(paths.CONTROLLER, self._put_event, created=ControllerChange(), deleted=Reelect(), changed=ControllerChange())
        self._tree.register_change_handler(handler)

    def forget_controller(self) -> None:
        self._tree.unregister_change_handler(paths.CONTROLLER)

    def watch_cluster(self) -> None:
        for path, event in _CHILDREN.items():
            self._tree.register_child_change_handler(ChildrenHandler(path, self._put_event, event))
        for path, event in _REQUESTS.items():
            self._nodes.add(path)
            self._tree.register_change_handler(NodeHandler(path, self._put_event, created=event))

    def watch_broker(self, broker_id: int) -> None:
        self._watch_data(paths.broker_id(broker_id), BrokerModifications(broker_id))

    def watch_topics(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._watch_data(paths.topic(topic), PartitionModifications(topic))

    def forget_brokers(self, broker_ids: Iterable[int]) -> None:
        self._forget(paths.broker_id(broker_id) for broker_id in broker_ids)

    def forget_topics(self, topics: Iterable[str]) -> None:
        self._forget(paths.topic(topic) for topic in topics)

    def forget_cluster(self) -> None:
        for path in _CHILDREN:
            self._tree.unregister_child_change_handler(path)
        self._forget(list(self._nodes))

    def _watch_data(self, path: str, event: ControllerEvent) -> None:
        self._nodes.add(path)
        self._tree.register_change_handler(NodeHandler(path, self._put_event, changed=event))

    def _forget(self, node_paths: Iterable[str]) -> None:
        for path in node_paths:
            self._nodes.discard(path)
            self._tree.unregister_change_handler(path)


class ChildrenHandler:
    def __init__(self, path: str, put_event: Callable[[ControllerEvent], object], event: ControllerEvent) -> None:
        self.path = path
        self._put_event = put_event
        self._event = event

    def handle_child_change(self) -> None:
        self._put_event(self._event)


class NodeHandler:
    """What it was given no event for, it lets pass."""

    def __init__(
        self,
        path: str,
        put_event: Callable[[ControllerEvent], object],
        *,
        created: ControllerEvent | None = None,
        deleted: ControllerEvent | None = None,
        changed: ControllerEvent | None = None,
    ) -> None:
        self.path = path
        self._put_event = put_event
        self._created = created
        self._deleted = deleted
        self._changed = changed

    def handle_creation(self) -> None:
        self._put(self._created)

    def handle_deletion(self) -> None:
        self._put(self._deleted)

    def handle_data_change(self) -> None:
        self._put(self._changed)

    def _put(self, event: ControllerEvent | None) -> None:
        if event is not None:
            self._put_event(event)
