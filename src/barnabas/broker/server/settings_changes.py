"""Applies dynamic settings to the parts of a broker: those changed while it runs, and those that were stored before this start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from barnabas.broker.broker import Broker
from barnabas.broker.server.background_tasks import BackgroundTasks
from barnabas.broker.server.log_manager_config import cleaner_config
from barnabas.broker.server.network_config import network_config
from barnabas.broker.server.own_registration import OwnRegistration
from barnabas.network.server import SocketServer

if TYPE_CHECKING:
    from barnabas.broker.cluster.cluster_member import ClusterMember

UNCLEAN_LEADER_ELECTION: Final = "unclean.leader.election.enable"


class SettingsChanges:
    """The callbacks of ConfigManager that concern more than one part. `cluster` is None where the metadata store is not shared."""

    def __init__(self, broker: Broker, registration: OwnRegistration, background: BackgroundTasks, cluster: ClusterMember | None) -> None:
        self._broker = broker
        self._registration = registration
        self._background = background
        self._cluster = cluster

    def listen(self) -> None:
        """Called before ConfigManager.start, which reports the settings that are stored."""
        configs = self._broker.configs
        configs.on_broker_change.append(self._broker_changed)
        configs.on_topic_change.append(self._topic_changed)
        configs.on_user_change.append(self._broker.scram_users.user_changed)
        configs.on_client_metrics_change.append(self._broker.client_metrics.subscriptions.update)

    def listen_for(self, sockets: SocketServer) -> None:
        """Also applies the limits of connections. Called when the ports are bound."""

        def limits_changed(changed: frozenset[str]) -> None:
            if any("max.connection" in name for name in changed):
                sockets.reconfigure_quotas(network_config(self._broker.config.current))

        self._broker.configs.on_broker_change.append(limits_changed)

    def _broker_changed(self, changed: frozenset[str]) -> None:
        current = self._broker.config.current
        if any(name.startswith("log.cleaner.") for name in changed):
            self._broker.replica_manager.log_manager.cleaner.reconfigure(cleaner_config(current))
        if "cordoned.log.dirs" in changed:
            self._cordons_changed()
        log_manager = self._broker.replica_manager.log_manager
        threads = current.number("num.recovery.threads.per.data.dir")
        log_manager.config = replace(log_manager.config, num_recovery_threads_per_data_dir=threads)
        producers = log_manager.config.producers  # shared by all logs
        producers.producer_id_expiration_ms = current.number("producer.id.expiration.ms")
        producers.transaction_verification_enabled = current.flag("transaction.partition.verification.enable")
        if "num.replica.fetchers" in changed and self._cluster is not None:
            self._cluster.fetchers.resize()
        self._broker.replica_manager.quotas.rates_changed(self._broker.config.broker, self._broker.config.default)
        controller, is_unclean_enabled = self._broker.controller, current.flag(UNCLEAN_LEADER_ELECTION)
        controller.config.unclean_leader_election_enable = is_unclean_enabled
        if UNCLEAN_LEADER_ELECTION in changed and is_unclean_enabled and controller.is_active:
            controller.enable_unclean_leader_election()

    def _topic_changed(self, topic: str, properties: Mapping[str, str]) -> None:
        self._broker.replica_manager.quotas.topic_changed(topic, properties)
        if properties.get(UNCLEAN_LEADER_ELECTION, "").strip().lower() == "true" and self._broker.controller.is_active:
            self._broker.controller.enable_unclean_leader_election(topic)

    def _cordons_changed(self) -> None:
        """New replicas go to other directories from now on."""
        current = self._broker.config.current
        self._broker.replica_manager.log_manager.cordoned_dirs = current.cordoned_log_dirs
        change = self._registration.with_cordons(self._broker.broker_id, current.is_cordoned)
        if change is not None:
            self._background.start(self._broker.tree.handle([change]))
