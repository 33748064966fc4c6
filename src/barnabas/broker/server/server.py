"""The life cycle of a broker: builds its parts, starts them in order, and stops them in reverse.

The order is Kafka's. Ports are bound first and served last, so that no client is served before the broker knows which partitions it leads.
A shutdown first stops accepting connections, then completes the requests in process, and then closes the logs as cleanly shut down.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from barnabas.broker.broker import Broker
from barnabas.broker.cluster.controller_config import controller_config
from barnabas.broker.cluster.controller_requests import ControlRequests
from barnabas.broker.cluster.local_channel import LocalChannel
from barnabas.broker.config import BrokerConfig, DynamicBrokerConfig
from barnabas.broker.config.config_manager import ConfigManager
from barnabas.broker.config.log_levels import LogLevels
from barnabas.broker.descriptors import guard_of
from barnabas.broker.dispatcher import RequestDispatcher
from barnabas.broker.environment import CODEC_THREADS, Environment
from barnabas.broker.exposition.observed import BrokerState, Observed
from barnabas.broker.groups.group_coordinator_service import GroupCoordinatorService
from barnabas.broker.metrics.request_kinds import RequestKinds
from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.broker.replication.long_appends import LongAppends
from barnabas.broker.replication.long_reads import LongReads
from barnabas.broker.replication.replica_manager import ReplicaManager
from barnabas.broker.replication.replica_parts import ReplicaParts
from barnabas.broker.requests.fetch_session import FetchManager, FetchSessionCache
from barnabas.broker.requests.request_log import RequestLog, refresh_all
from barnabas.broker.scheduling.loop_lag import LoopLag
from barnabas.broker.scheduling.turns import Turns
from barnabas.broker.security.access import Access
from barnabas.broker.security.authentication import Authentication
from barnabas.broker.security.authorizer.loading import load_authorizer
from barnabas.broker.security.credentials import Credentials
from barnabas.broker.security.listener_authentications import listener_authentications
from barnabas.broker.security.sasl.listeners import SaslListeners
from barnabas.broker.security.scram_users import ScramUsers
from barnabas.broker.security.tls.listener_certificates import ListenerCertificates
from barnabas.broker.server import identity
from barnabas.broker.server.background_tasks import BackgroundTasks
from barnabas.broker.server.certificate_replacement import CertificateReplacement
from barnabas.broker.server.housekeeping import Housekeeping
from barnabas.broker.server.log_manager_config import log_manager_config
from barnabas.broker.server.metadata_session import MetadataSession
from barnabas.broker.server.metrics_outputs import MetricsOutputs
from barnabas.broker.server.network_config import network_config
from barnabas.broker.server.own_registration import OwnRegistration
from barnabas.broker.server.quota_changes import QuotaChanges, connection_rates, load_callback
from barnabas.broker.server.settings_changes import SettingsChanges
from barnabas.broker.server.stray_logs import strays
from barnabas.broker.server.token_config import delegation_tokens
from barnabas.broker.telemetry.client_metrics_manager import ClientMetricsManager
from barnabas.broker.telemetry.received_metrics import ReceivedMetrics
from barnabas.broker.topics.admin_manager import AdminManager
from barnabas.broker.topics.auto_topic_creation import AutoTopicCreation
from barnabas.broker.topics.features import FeatureLevels
from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.broker.transactions.producer_ids import ProducerIdManager
from barnabas.broker.transactions.transaction_coordinator_service import TransactionCoordinatorService
from barnabas.broker.waiting.expirations import Expirations
from barnabas.config_def import LONG_MAX, InvalidConfig
from barnabas.controller.controller import Controller
from barnabas.coordinator.group.config import GroupCoordinatorConfig
from barnabas.endpoint import EndPoint
from barnabas.errors import DuplicateBrokerRegistration
from barnabas.metadata import paths
from barnabas.metadata.admin_tree import AdminTree
from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import SessionExpired
from barnabas.metadata.tree import Create, CreateMode
from barnabas.metadata.znodes import admin as admin_znodes
from barnabas.network.server import SocketServer
from barnabas.security.new_user import NewUser
from barnabas.storage.directory.clean_shutdown import NO_BROKER_EPOCH
from barnabas.storage.log_manager import AllLogDirsFailed, LogManager
from barnabas.storage.management.log_manager_hooks import LogManagerHooks
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.broker.cluster.cluster_member import ClusterMember
    from barnabas.broker.cluster.remote_channel import RemoteChannel
    from barnabas.broker.exposition.metrics_listener import MetricsServer

SHUTDOWN_TIMEOUT_MS: Final = 10_000
START_ATTEMPTS: Final = 5

_log = logging.getLogger(__name__)


class BrokerServer:
    """Must be made on the event loop that it runs on. `tree_path` is the embedded metadata store, by default in the first log directory.
    `new_users` are created before the broker serves a connection, unless they exist."""

    broker: Broker
    observed: Observed
    groups: GroupCoordinatorService
    transactions: TransactionCoordinatorService
    sockets: SocketServer

    def __init__(
        self,
        config: BrokerConfig,
        *,
        tree_path: str | None = None,
        environment: Environment | None = None,
        new_users: Sequence[NewUser] = (),
    ) -> None:
        self.config = config
        self._environment = environment or Environment()
        self.clock = self._environment.clock
        self.failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()  # done when the broker cannot continue
        self._loop = asyncio.get_running_loop()
        self._random = self._environment.random
        self._new_users = new_users
        self._background = BackgroundTasks()
        self._session = MetadataSession(config, self._environment, tree_path, self._background, self._fail)
        self._cluster: ClusterMember | None = None  # None where the metadata store is not shared with other brokers
        self._is_clustered = self._session.is_shared
        self._broker_epoch = NO_BROKER_EPOCH  # until the broker is registered
        self._registration = OwnRegistration(config)
        self._dispatcher: RequestDispatcher | None = None  # None until the ports are bound
        self._cleanup = AsyncExitStack()  # stops the started parts in reverse order

    @property
    def endpoints(self) -> list[EndPoint]:
        """The listeners with the ports that they are bound to."""
        return [replace(listener, port=self.sockets.port(listener.listener_name)) for listener in self.config.broker_listeners]

    @property
    def metrics(self) -> MetricsServer | None:
        """None without metrics.listener, metric.reporters and metrics.otlp.endpoint."""
        return self._metrics_outputs.server

    async def start(self) -> None:
        """Returns when the broker serves requests. If it raises, the parts that were started are stopped again."""
        started_ms = self.clock.monotonic_ms()
        for line in self.config.without_effect():
            _log.warning("%s", line)
        limit_ms = self.config.number("server.max.startup.time.ms")
        try:
            async with asyncio.timeout(limit_ms / 1000 if limit_ms < LONG_MAX else None) as timeout:
                await self._attempt()
        except TimeoutError:
            if not timeout.expired():
                raise
            raise InvalidConfig(f"The broker did not start within server.max.startup.time.ms={limit_ms}: raise it, or remove it") from None
        self.observed.state = BrokerState.RUNNING
        self._metrics_outputs.broker_runs()
        _log.info("[BrokerServer id=%d] started in %d ms", self.broker.broker_id, self.clock.monotonic_ms() - started_ms)

    async def shutdown(self, timeout_ms: int = SHUTDOWN_TIMEOUT_MS, *, is_controlled: bool = True) -> None:
        """Completes the requests in process, for `timeout_ms` at most, then closes the logs cleanly. Only a controlled shutdown
        moves its leaders first."""
        _log.info("[BrokerServer id=%d] shutting down", self.broker.broker_id)
        self.observed.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
        if is_controlled and self._cluster is not None and self.config.flag("controlled.shutdown.enable"):
            from barnabas.broker.cluster.controlled_shutdown import controlled_shutdown

            await controlled_shutdown(self.broker, self._cluster, self.config)
        self.observed.state = BrokerState.SHUTTING_DOWN
        await self.sockets.stop_accepting()
        self._expirations.complete_all()  # so that the shutdown does not wait for a fetch that waits for records,
        self.transactions.shutdown()  # nor for an EndTxn that waits for replicas,
        self.groups.shutdown()  # nor for a member that waits for its group
        await self.sockets.shutdown(timeout_ms)
        await self._cleanup.aclose()
        _log.info("[BrokerServer id=%d] shut down completed", self.broker.broker_id)

    async def _attempt(self) -> None:
        attempts = START_ATTEMPTS
        while not await self._is_started(is_last=attempts == 1):
            attempts -= 1

    async def _is_started(self, is_last: bool) -> bool:
        """False where the metadata session expired, as on a busy machine: the broker is not registered yet and can start again."""
        try:
            await self._start()
        except SessionExpired:
            await self._cleanup.aclose()
            if is_last:
                raise
            _log.warning("The session with the metadata store ended during the start of the broker: starting again")
            return False
        except BaseException:
            await self._cleanup.aclose()
            raise
        return True

    async def _start(self) -> None:
        self._disk_threads = self._environment.disk_threads()
        self._cleanup.callback(self._disk_threads.shutdown)
        self._codec_threads = self._environment.codec_threads()
        self._cleanup.callback(self._codec_threads.shutdown)
        self._expirations = Expirations(self._loop, self.clock)
        self._cleanup.callback(self._expirations.stop)
        log_manager = self._open_log_dirs()
        tree = await self._open_tree()
        log_dirs = list(log_manager.dirs.values())
        cluster_id = await identity.cluster_id(tree, log_dirs, self._random)
        broker_id = await identity.broker_id(tree, log_dirs, self.config)
        for log_dir in log_dirs:
            log_dir.require_owner(cluster_id, broker_id)
        self.broker = self._build(cluster_id, broker_id, tree, log_manager)
        self.observed = Observed(
            self.broker,
            RequestKinds(),
            self._expirations,
            lambda: {**self.groups.metrics(), **self.transactions.metrics()},
            channel_queues=lambda: self._channel.queues,
        )
        self._cleanup.callback(self.broker.admin.shutdown)
        for part in (self.broker.topic_creation, self.broker.producer_ids, self.broker.features, self.broker.configs):
            self._cleanup.push_async_callback(part.close)
        self._changes = SettingsChanges(self.broker, self._registration, self._background, self._cluster)
        self._changes.listen()
        self._connection_rates = connection_rates(self.config)
        QuotaChanges(self.broker, self._connection_rates).listen()
        self._cleanup.callback(self.broker.quotas.close)
        await self.broker.scram_users.create(self._new_users)
        self._cleanup.push_async_callback(self.broker.tokens.close)
        await self.broker.tokens.start(lambda: self.broker.controller.is_active)
        await self.broker.configs.start()
        await self._start_authorizer()
        await self._start_sasl()
        await self._start_metrics()
        self.observed.state = BrokerState.RECOVERY
        for _ in log_manager.loading(self.clock.now_ms(), await strays(AdminTree(tree, self._random))):
            await asyncio.sleep(0)  # keeps the metadata session alive during the loading
        self.observed.state = BrokerState.STARTING
        self._cleanup.callback(self._close_logs, log_manager)
        if self._cluster is not None:
            self._cleanup.push_async_callback(self._cluster.close)  # no fetcher may append to a closed log
        for coordinator in (self.groups, self.transactions):
            coordinator.start()
            self._cleanup.callback(coordinator.shutdown)
        self._cleanup.push_async_callback(self.transactions.close)
        await self._open_sockets()
        await self.broker.features.start()
        await self._register()
        self._claim_log_dirs(log_manager)
        self._start_housekeeping(log_manager)
        await self._start_controller()
        if self._cluster is None:
            log_manager.clear_away()
        self.broker.loop_lag.start(self._loop)
        self._cleanup.callback(self.broker.loop_lag.stop)
        self.sockets.start_processing_requests()
        if self._cluster is not None:
            self._cluster.start()
            self._cleanup.callback(asyncio.ensure_future(self._clear_away(self._cluster, log_manager)).cancel)
            await self._cluster.initial_metadata.wait_a_while()

    async def _start_metrics(self) -> None:
        self._certificates = ListenerCertificates(self.broker.config.current, self._is_clustered)
        self._metrics_outputs = MetricsOutputs(self.observed, self.config, self._measure_requests)
        self._cleanup.push_async_callback(self._metrics_outputs.stop)
        await self._metrics_outputs.start(self._sasl, self._certificates, self._sasl_threads)

    def _measure_requests(self) -> None:
        if self._dispatcher is not None:
            self._dispatcher.measure_requests(self.observed.kinds)

    async def _start_authorizer(self) -> None:
        authorizer = self.broker.access.authorizer
        if authorizer is not None:
            self._cleanup.push_async_callback(authorizer.close)
            await authorizer.start()

    def _open_log_dirs(self) -> LogManager:
        """Locks the log directories, so that no other process writes what this one reads."""
        self._flush_requested = asyncio.Event()
        log_manager = LogManager(
            self._environment.files,
            self.config.log_dirs,
            self.config.log_config(),
            log_manager_config(self.config),
            hooks=LogManagerHooks(
                dir_failed=lambda path: self.broker.replica_manager.log_dir_failed(path),
                flush_requested=self._flush_requested.set,
                flushed=lambda log: self.broker.replica_manager.log_flushed(log),
            ),
            cordoned_dirs=self.config.cordoned_log_dirs,
        )
        self._release_dirs = self._cleanup.enter_context(ExitStack())
        for log_dir in log_manager.dirs.values():
            self._release_dirs.callback(log_dir.release)
            with suppress(OSError):  # a failed disk is detected when its logs are loaded
                log_dir.partition_dirs()  # rejects the log directory of another broker before anything in it is changed
        return log_manager

    def _claim_log_dirs(self, log_manager: LogManager) -> None:
        """Writes meta.properties. Called after the registration, so that a broker with a duplicate id writes nothing and can start again in
        the same directories with another id."""
        for path, log_dir in list(log_manager.dirs.items()):
            try:
                log_dir.claim(self.broker.cluster_id, self.broker.broker_id, Uuid.random(self._random), self.clock.now_ms())
            except OSError as error:
                log_manager.disk_failed(path, f"Error while writing meta.properties in dir {path}: {error}", error)

    def _close_logs(self, log_manager: LogManager) -> None:
        self._release_dirs.pop_all()  # LogManager.shutdown releases them
        log_manager.shutdown(self.clock.monotonic_ms(), self._broker_epoch)

    async def _open_tree(self) -> TreeClient:
        store = await self._session.open_store()
        self._cleanup.push_async_callback(store.close)
        tree = self._session.client(store)
        await tree.connect()
        self._cleanup.push_async_callback(tree.close)
        self._cleanup.push_async_callback(self._background.stop)
        await tree.ensure_all(paths.PERSISTENT_PATHS)
        return tree

    def _build(self, cluster_id: str, broker_id: int, tree: TreeClient, log_manager: LogManager) -> Broker:
        config, clock, purgatory = DynamicBrokerConfig(self.config), self.clock, self._expirations.new_purgatory
        turns = Turns()
        loop_lag = LoopLag(lambda: turns.last_taker)
        admin_tree = AdminTree(tree, self._random)
        metadata_cache = MetadataCache(broker_id)
        configs = ConfigManager(
            broker_id=broker_id,
            tree=tree,
            admin_tree=admin_tree,
            config=config,
            log_manager=log_manager,
            clock=clock,
            log_levels=LogLevels(on_change=refresh_all),
            turns=turns,
            loop_lag=loop_lag,
        )
        replica_manager = self._build_replica_manager(config, configs, tree, log_manager, metadata_cache, turns)
        controller = Controller(
            broker_id=broker_id,
            tree=tree,
            channel=self._channel,
            config=controller_config(self.config, self._is_clustered),
            clock=clock,
            random=self._random,
            register_broker=self._register_again,
        )
        group_config = GroupCoordinatorConfig.of(self.config)
        self.groups = GroupCoordinatorService(group_config, replica_manager, metadata_cache, configs, clock, self._random)
        producer_ids, features = ProducerIdManager(broker_id, tree), FeatureLevels(tree)
        groups = self.groups.coordinator
        self.transactions = TransactionCoordinatorService(
            config, replica_manager, metadata_cache, groups, producer_ids, features, clock, self._cluster
        )
        admin = AdminManager(tree, admin_tree, metadata_cache, controller, config, clock, purgatory("topic"), self._random, turns)
        credentials = Credentials()
        return Broker(
            cluster_id=cluster_id,
            broker_id=broker_id,
            config=config,
            clock=clock,
            random=self._random,
            tree=tree,
            disk_threads=self._disk_threads,
            metadata_cache=metadata_cache,
            replica_manager=replica_manager,
            controller=controller,
            configs=configs,
            admin=admin,
            fetch_sessions=FetchManager(
                FetchSessionCache(self.config.number("max.incremental.fetch.session.cache.slots"), random=self._random), clock
            ),
            producer_ids=producer_ids,
            topic_creation=AutoTopicCreation(
                config,
                admin if self._cluster is None else self._cluster.topic_creator(admin, controller),
                lambda: len(metadata_cache.topics()),
                clock.monotonic_ms,
            ),
            features=features,
            groups=groups,
            transactions=self.transactions.coordinator,
            markers=self.transactions.markers,
            verification=self.transactions.verification,
            turns=turns,
            loop_lag=loop_lag,
            credentials=credentials,
            scram_users=ScramUsers(admin_tree, credentials, configs.process_changes, turns.next),
            tokens=delegation_tokens(self.config, tree, credentials, clock, self._random),
            client_metrics=ClientMetricsManager(
                ReceivedMetrics(self.config.number("barnabas.telemetry.series.max")),
                self.config.number("telemetry.max.bytes"),
                self._random,
            ),
            quotas=ClientQuotas(self.config.number, load_callback(self.config)),
            access=Access(load_authorizer(self.config.properties, tree, clock.monotonic_ms)),
            cluster=self._cluster,
        )

    def _build_replica_manager(
        self,
        config: DynamicBrokerConfig,
        configs: ConfigManager,
        tree: TreeClient,
        log_manager: LogManager,
        metadata_cache: MetadataCache,
        turns: Turns,
    ) -> ReplicaManager:
        """Also makes the controller's channel and, in a cluster, the ClusterMember, whose fetchers are parts of the replica manager."""
        purgatory, broker_id = self._expirations.new_purgatory, metadata_cache.broker_id

        def make_parts(replicas: ReplicaManager) -> ReplicaParts:
            long_appends = LongAppends(replicas, turns, self._codec_threads, CODEC_THREADS)
            long_reads = LongReads(replicas, turns)
            self._cleanup.callback(long_appends.close)
            self._cleanup.callback(long_reads.close)
            controller_requests = ControlRequests(replicas, configs, self._disk_threads)
            if not self._is_clustered:
                self._channel: LocalChannel | RemoteChannel = LocalChannel({broker_id: controller_requests.handle})
                return ReplicaParts(long_appends, long_reads)
            from barnabas.broker.cluster.cluster_member import ClusterMember

            self._cluster = ClusterMember(config, replicas, controller_requests, tree, self.clock, self._random)
            self._channel = self._cluster.channel
            return ReplicaParts(long_appends, long_reads, self._cluster.isr_proposals, self._cluster.fetchers)

        return ReplicaManager(
            config,
            log_manager,
            metadata_cache,
            self.clock,
            produce_purgatory=purgatory("Produce", self.config.number("producer.purgatory.purge.interval.requests")),
            fetch_purgatory=purgatory("Fetch", self.config.number("fetch.purgatory.purge.interval.requests")),
            delete_records_purgatory=purgatory("DeleteRecords", self.config.number("delete.records.purgatory.purge.interval.requests")),
            on_log_dir_failure=self._log_dir_failed,
            later=self._loop.call_soon if self._is_clustered else None,
            make_parts=make_parts,
        )

    async def _start_sasl(self) -> None:
        """Before the logs are loaded: a wrong SASL setting stops the start at once."""
        threads = self._sasl_threads = self._environment.sasl_threads()
        self._cleanup.callback(threads.shutdown, wait=False, cancel_futures=True)  # a callback handler may wait for long
        self._sasl = SaslListeners(self.broker.config.current, self.broker.credentials, self.clock, self._random, threads)
        self._cleanup.push_async_callback(self._sasl.close)
        await self._sasl.start()
        self.observed.sasl = self._sasl.by_name

    def _make_request_log(self) -> RequestLog:
        config = self.broker.config
        return RequestLog(lambda: config.current.number("barnabas.request.log.slow.ms"))

    async def _open_sockets(self) -> None:
        """Binds the ports. Requests are not processed yet."""
        authentications = listener_authentications(self.config) | self._sasl.by_name
        self._dispatcher = RequestDispatcher(
            self.broker,
            self.config.listeners_of_brokers,
            Authentication(authentications),
            None if self.metrics is None else self.observed.kinds,
            self._make_request_log(),
        )
        self.sockets = SocketServer(
            network_config(self.broker.config.current),
            self._dispatcher,
            inter_broker_listener=self.config.inter_broker_listener_name,
            control_plane_listener=self.config.control_plane_listener_name,
            monotonic_ms=self.clock.monotonic_ms,
            descriptors=guard_of(self._environment.files),
            on_closed=self.broker.client_metrics.disconnected,
            address_rates=self._connection_rates,
        )
        self.observed.sockets = self.sockets
        await self.sockets.start(self.config.broker_listeners, self._certificates.contexts)
        self._cleanup.push_async_callback(self.sockets.shutdown, 0)
        self._changes.listen_for(self.sockets)
        self._replace_certificates()

    def _replace_certificates(self) -> None:
        config = self.broker.config
        replacement = CertificateReplacement(config, self._certificates, self.sockets, self._cluster, self._disk_threads)
        config.validators.append(replacement.validate)
        self.broker.configs.on_broker_change.append(replacement.settings_changed)
        replacement.start()
        self._cleanup.push_async_callback(replacement.stop)

    async def _register(self) -> None:
        self._broker_epoch = await self._registration.register(self.broker, self.advertised)
        if self._cluster is not None:
            self._cluster.broker_epoch = self._broker_epoch

    async def _register_again(self) -> None:
        """Registers in a new session. The broker fails if another broker has registered with the same id in the meantime."""
        try:
            await self._register()
        except DuplicateBrokerRegistration as error:
            self._fail(error)
            raise

    @property
    def advertised(self) -> list[EndPoint]:
        """The advertised listeners. Port 0 becomes the port that the listener is bound to, an empty host the name of this machine."""
        return [
            replace(listener, host=listener.host or socket.getfqdn(), port=listener.port or self.sockets.port(listener.listener_name))
            for listener in self.config.advertised_listeners
        ]

    def _start_housekeeping(self, log_manager: LogManager) -> None:
        housekeeping = Housekeeping(
            log_manager,
            self.clock,
            self._disk_threads,
            self._flush_requested,
            self.broker.replica_manager.advance_moves,
            self._fail,
            self.observed.flush_us,
        )
        self.observed.housekeeping = housekeeping
        housekeeping.start()
        self._cleanup.push_async_callback(housekeeping.stop)

    async def _start_controller(self) -> None:
        """Starts the controller, and waits until this broker has handled the control requests that follow from its election."""
        self._cleanup.push_async_callback(self.broker.controller.shutdown)
        await self.broker.controller.start()
        await self._channel.drained()

    async def _clear_away(self, cluster: ClusterMember, log_manager: LogManager) -> None:
        """Removes stray logs once the controller has sent this broker the states of all its replicas."""
        await cluster.wait_for_controller()
        try:
            log_manager.clear_away()
        except AllLogDirsFailed as error:
            self._fail(error)

    def _log_dir_failed(self, path: str) -> None:
        """Notifies the controller through a znode, so that it elects other leaders. The broker fails if no log directory is left."""
        if not self.broker.replica_manager.log_manager.dirs:
            self._fail(AllLogDirsFailed(f"All log directories have failed, the last was {path}: check the disks and start again"))
            return
        node = f"{paths.LOG_DIR_EVENT_NOTIFICATION}/{paths.LOG_DIR_EVENT_PREFIX}"
        event = Create(node, admin_znodes.encode_log_dir_event(self.broker.broker_id), CreateMode.PERSISTENT_SEQUENTIAL)
        self._background.start(self.broker.tree.handle([event]))

    def _fail(self, error: BaseException) -> None:
        """Completes `failed`: the broker cannot continue, and its owner shuts it down."""
        if not self.failed.done():
            _log.error("The broker cannot continue: %s", error)
            self.failed.set_result(error)
