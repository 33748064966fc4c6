"""Closes the logs of one log directory when the broker stops, so that the next start need not recover them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.log.log import Log
from barnabas.storage.management.log_registry import LogRegistry


def close_dir(log_dir: LogDir, logs: LogRegistry, *, has_roles: bool, threads: int, monotonic_ms: int, broker_epoch: int) -> None:
    """Flushes and closes the logs, then writes the checkpoints, and last the clean shutdown file."""
    checkpointed = logs.checkpointed_in(log_dir.path)
    _close_all([*checkpointed, *(stray for stray in logs.stray.values() if stray.log_dir == log_dir.path)], threads, monotonic_ms)
    log_dir.checkpoint_recovery_points(checkpointed)
    log_dir.checkpoint_log_start_offsets(checkpointed)
    if has_roles:
        log_dir.checkpoint_high_watermarks([*logs.unclaimed_in(log_dir.path), *checkpointed])
    if log_dir.is_recovered:
        log_dir.clean_shutdown.write(broker_epoch)


def _close_all(logs: list[Log], threads: int, monotonic_ms: int) -> None:
    """Closes several at once: each waits for the device a few times, and the device serves many requests as fast as one."""
    if threads <= 1 or len(logs) <= 1:
        for log in logs:
            log.close(monotonic_ms)
        return
    with ThreadPoolExecutor(threads, "log-closing") as pool:
        for closing in [pool.submit(log.close, monotonic_ms) for log in logs]:
            closing.result()
