"""What setuptools cannot read from pyproject.toml: the lists of hot modules, and how they are compiled.

HOT are the modules that mypyc compiles to C. All are ordinary typed Python: where they are not compiled, the same source runs as it is.
`BARNABAS_PURE=1` installs without compiling; a machine without a C compiler or Python's headers gets there by itself.
A build needs what pyproject.toml requires for it and no run-time dependency: mypy takes a package that is not there for Any.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

STORAGE = [
    "barnabas/records/batch.py",
    "barnabas/records/builder.py",
    "barnabas/records/column_encode.py",
    "barnabas/records/column_walk.py",
    "barnabas/records/compression.py",
    "barnabas/records/control.py",
    "barnabas/records/conversion.py",
    "barnabas/records/crc.py",
    "barnabas/records/entry_validator.py",
    "barnabas/records/legacy.py",
    "barnabas/records/long_validation.py",
    "barnabas/records/lz4_frame.py",
    "barnabas/records/reader.py",
    "barnabas/records/record.py",
    "barnabas/records/record_walk.py",
    "barnabas/records/seek.py",
    "barnabas/records/validation.py",
    "barnabas/records/validator.py",
    "barnabas/records/varint.py",
    "barnabas/records/xerial.py",
    "barnabas/storage/append.py",
    "barnabas/storage/durability.py",
    "barnabas/storage/compaction/cleaned_transactions.py",
    "barnabas/storage/compaction/offset_map.py",
    "barnabas/storage/compaction/offset_map_builder.py",
    "barnabas/storage/compaction/record_cursor.py",
    "barnabas/storage/compaction/record_filter.py",
    "barnabas/storage/fetch.py",
    "barnabas/storage/file_pool.py",
    "barnabas/storage/files.py",
    "barnabas/storage/indexes/index.py",
    "barnabas/storage/indexes/offset_index.py",
    "barnabas/storage/indexes/pages.py",
    "barnabas/storage/indexes/time_index.py",
    "barnabas/storage/indexes/txn_index.py",
    "barnabas/storage/log.py",
    "barnabas/storage/log_offset.py",
    "barnabas/storage/producers/append.py",
    "barnabas/storage/producers/entry.py",
    "barnabas/storage/producers/replay.py",
    "barnabas/storage/producers/snapshot.py",
    "barnabas/storage/producers/state.py",
    "barnabas/storage/producers/verification.py",
    "barnabas/storage/scan.py",
    "barnabas/storage/segment.py",
    "barnabas/storage/segments.py",
]
PROTOCOL = [
    "barnabas/protocol/coordinator_log.py",
    "barnabas/protocol/coordinator_records/group_metadata_key.py",
    "barnabas/protocol/coordinator_records/group_metadata_value.py",
    "barnabas/protocol/coordinator_records/offset_commit_key.py",
    "barnabas/protocol/coordinator_records/offset_commit_value.py",
    "barnabas/protocol/coordinator_records/transaction_log_key.py",
    "barnabas/protocol/coordinator_records/transaction_log_value.py",
    "barnabas/protocol/framing.py",
    "barnabas/protocol/message.py",
    "barnabas/protocol/messages/add_offsets_to_txn_request.py",
    "barnabas/protocol/messages/add_offsets_to_txn_response.py",
    "barnabas/protocol/messages/add_partitions_to_txn_request.py",
    "barnabas/protocol/messages/add_partitions_to_txn_response.py",
    "barnabas/protocol/messages/api_versions_request.py",
    "barnabas/protocol/messages/api_versions_response.py",
    "barnabas/protocol/messages/consumer_group_heartbeat_request.py",
    "barnabas/protocol/messages/consumer_group_heartbeat_response.py",
    "barnabas/protocol/messages/end_txn_request.py",
    "barnabas/protocol/messages/end_txn_response.py",
    "barnabas/protocol/messages/fetch_request.py",
    "barnabas/protocol/messages/fetch_response.py",
    "barnabas/protocol/messages/find_coordinator_request.py",
    "barnabas/protocol/messages/find_coordinator_response.py",
    "barnabas/protocol/messages/heartbeat_request.py",
    "barnabas/protocol/messages/heartbeat_response.py",
    "barnabas/protocol/messages/init_producer_id_request.py",
    "barnabas/protocol/messages/init_producer_id_response.py",
    "barnabas/protocol/messages/join_group_request.py",
    "barnabas/protocol/messages/join_group_response.py",
    "barnabas/protocol/messages/list_offsets_request.py",
    "barnabas/protocol/messages/list_offsets_response.py",
    "barnabas/protocol/messages/metadata_request.py",
    "barnabas/protocol/messages/metadata_response.py",
    "barnabas/protocol/messages/offset_commit_request.py",
    "barnabas/protocol/messages/offset_commit_response.py",
    "barnabas/protocol/messages/offset_fetch_request.py",
    "barnabas/protocol/messages/offset_fetch_response.py",
    "barnabas/protocol/messages/offset_for_leader_epoch_request.py",
    "barnabas/protocol/messages/produce_request.py",
    "barnabas/protocol/messages/produce_response.py",
    "barnabas/protocol/messages/request_header.py",
    "barnabas/protocol/messages/response_header.py",
    "barnabas/protocol/messages/sync_group_request.py",
    "barnabas/protocol/messages/sync_group_response.py",
    "barnabas/protocol/messages/txn_offset_commit_request.py",
    "barnabas/protocol/messages/txn_offset_commit_response.py",
    "barnabas/protocol/messages/write_txn_markers_request.py",
    "barnabas/protocol/reader.py",
    "barnabas/protocol/registry.py",
    "barnabas/protocol/slices.py",
    "barnabas/protocol/writer.py",
]
BROKER = [
    "barnabas/broker/answer.py",
    "barnabas/broker/append_call.py",
    "barnabas/broker/clock.py",
    "barnabas/broker/coordinator_log.py",
    "barnabas/broker/coordinator_partitions.py",
    "barnabas/broker/delayed_delete_records.py",
    "barnabas/broker/delayed_fetch.py",
    "barnabas/broker/delayed_operation.py",
    "barnabas/broker/delayed_produce.py",
    "barnabas/broker/dispatcher.py",
    "barnabas/broker/fetch_params.py",
    "barnabas/broker/fetch_session.py",
    "barnabas/broker/fetch_session_cache.py",
    "barnabas/broker/follower_fetch.py",
    "barnabas/broker/follower_session.py",
    "barnabas/broker/gather.py",
    "barnabas/broker/group_caller.py",
    "barnabas/broker/group_surroundings.py",
    "barnabas/broker/handlers/add_partitions_to_txn.py",
    "barnabas/broker/handlers/end_txn.py",
    "barnabas/broker/handlers/fetch.py",
    "barnabas/broker/handlers/heartbeat.py",
    "barnabas/broker/handlers/join_group.py",
    "barnabas/broker/handlers/offset_commit.py",
    "barnabas/broker/handlers/offset_fetch.py",
    "barnabas/broker/handlers/produce.py",
    "barnabas/broker/handlers/sync_group.py",
    "barnabas/broker/handlers/txn_offset_commit.py",
    "barnabas/broker/isr.py",
    "barnabas/broker/metadata_cache.py",
    "barnabas/broker/partition.py",
    "barnabas/broker/partition_append.py",
    "barnabas/broker/partition_read.py",
    "barnabas/broker/purgatory.py",
    "barnabas/broker/replica.py",
    "barnabas/broker/replica_fetchers.py",
    "barnabas/broker/replica_logs.py",
    "barnabas/broker/replica_manager.py",
    "barnabas/broker/request.py",
    "barnabas/broker/timing_wheel.py",
    "barnabas/broker/transaction_markers.py",
    "barnabas/broker/transaction_verification.py",
    "barnabas/broker/transactional_produce.py",
    "barnabas/network/connection.py",
    "barnabas/network/direct_socket.py",
    "barnabas/network/exchange.py",
    "barnabas/network/frames.py",
    "barnabas/network/idle_connections.py",
    "barnabas/network/metrics.py",
    "barnabas/network/request_gate.py",
    "barnabas/network/streamed.py",
]
COORDINATOR = [
    "barnabas/coordinator/faults.py",
    "barnabas/coordinator/group/classic_group.py",
    "barnabas/coordinator/group/classic_groups.py",
    "barnabas/coordinator/group/consumer_group.py",
    "barnabas/coordinator/group/coordinator.py",
    "barnabas/coordinator/group/group.py",
    "barnabas/coordinator/group/offsets.py",
    "barnabas/coordinator/group/shard.py",
    "barnabas/coordinator/result.py",
    "barnabas/coordinator/runtime.py",
    "barnabas/coordinator/transaction/coordinator.py",
    "barnabas/coordinator/transaction/decisions.py",
    "barnabas/coordinator/transaction/markers.py",
    "barnabas/coordinator/transaction/shard.py",
]

# A group is one C file: calls inside it are plain C calls that the compiler may inline, and the groups are compiled side by side.
CLIENT = [
    "barnabas/client/broker_versions.py",
    "barnabas/client/clock.py",
    "barnabas/client/consumer/completed_fetch.py",
    "barnabas/client/consumer/fetch_buffer.py",
    "barnabas/client/consumer/fetch_collector.py",
    "barnabas/client/consumer/fetch_session.py",
    "barnabas/client/consumer/group_metrics.py",
    "barnabas/client/consumer/partition_state.py",
    "barnabas/client/consumer/record.py",
    "barnabas/client/consumer/subscription_state.py",
    "barnabas/client/metrics.py",
    "barnabas/client/network_metrics.py",
    "barnabas/client/node_states.py",
    "barnabas/client/producer/accumulator.py",
    "barnabas/client/producer/batch.py",
    "barnabas/client/producer/buffer_pool.py",
    "barnabas/client/producer/identity.py",
    "barnabas/client/producer/partitioners.py",
    "barnabas/client/producer/producer.py",
    "barnabas/client/producer/send_path.py",
    "barnabas/client/producer/sequences.py",
    "barnabas/client/producer/transaction_manager.py",
]

HOT = {"storage": STORAGE, "protocol": PROTOCOL, "broker": BROKER, "coordinator": COORDINATOR, "client": CLIENT}

COMPILER_FLAGS = [
    "-fno-semantic-interposition",  # or calls through the shared library are not inlined
    "-Wno-error",  # mypyc adds -Werror: a warning that another compiler has would leave everything plain Python
]
NOT_COMPILING = {"egg_info", "dist_info", "sdist"}  # metadata, and the sources alone, without the C that is made of them


class AllOrNone(build_ext):
    """Compiles every extension, or leaves every module plain Python.

    A compiled module is a shim around the library of its group. Where one of the two is missing, importing the module fails.
    """

    def build_extensions(self) -> None:
        self.built: set[str] = set()
        super().build_extensions()
        failed = [extension.name for extension in self.extensions if extension.name not in self.built]
        if failed:
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.warn(
                f"{len(failed)} of {len(self.extensions)} extensions were not compiled ({failed[0]} first): Barnabas is installed as "
                "plain Python and needs more CPU. To compile it, first install a C compiler and Python's headers (Debian: gcc python3-dev)"
            )
            self.extensions = []

    def build_extension(self, ext: Extension) -> None:
        super().build_extension(ext)
        self.built.add(ext.name)


def extensions() -> list[Extension]:
    if os.environ.get("BARNABAS_PURE") == "1" or NOT_COMPILING & set(sys.argv):
        return []
    from mypyc.build import mypycify

    os.environ.setdefault("MYPYPATH", "src")
    groups = [([str(Path("src", module)) for module in modules], f"barnabas_{name}") for name, modules in HOT.items()]
    compiled = mypycify(
        ["--strict", "--explicit-package-bases", *(path for paths, _ in groups for path in paths)],
        opt_level="3",
        separate=groups,
        target_dir="build/mypyc",
    )
    for extension in compiled:
        extension.optional = True  # a failure is a warning; AllOrNone sees to the rest
        extension.extra_compile_args = [*extension.extra_compile_args, *COMPILER_FLAGS]  # a list of its own: mypyc gives all the same one
    return compiled


setup(ext_modules=extensions(), cmdclass={"build_ext": AllOrNone}, options={"build_ext": {"parallel": os.cpu_count() or 1}})
