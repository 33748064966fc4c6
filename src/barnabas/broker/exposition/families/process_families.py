"""The metrics of the process, under the names that Prometheus' client libraries use, and the state of the broker."""

from __future__ import annotations

import os
import resource
from typing import Final

from barnabas.broker.exposition.observed import Observed
from barnabas.metrics.registry import Family, Kind, single

_PAGE: Final = resource.getpagesize()
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_READ: Final = "Bytes that this process had read from disks, since its start. Linux only, else 0."
_WRITTEN: Final = "Bytes that this process had written to disks, since its start. Linux only, else 0."


def process_families(observed: Observed) -> list[Family]:
    gauge, meter = Kind.GAUGE, Kind.METER
    return [
        Family(
            "kafka.server",
            "KafkaServer",
            "BrokerState",
            gauge,
            "0 not running, 1 starting, 2 recovering logs, 3 running, 6 pending controlled shutdown, 7 shutting down.",
            single(lambda: int(observed.state)),
        ),
        Family("kafka.server", "KafkaServer", "linux-disk-read-bytes", gauge, _READ, single(lambda: _disk_bytes("read_bytes:"))),
        Family("kafka.server", "KafkaServer", "linux-disk-write-bytes", gauge, _WRITTEN, single(lambda: _disk_bytes("write_bytes:"))),
        Family("", "", "process_cpu_seconds_total", meter, "CPU time of this process, of user and system.", single(_cpu_seconds)),
        Family("", "", "process_resident_memory_bytes", gauge, "Memory of this process that is in RAM.", single(lambda: _statm(1) * _PAGE)),
        Family("", "", "process_virtual_memory_bytes", gauge, "Address space of this process.", single(lambda: _statm(0) * _PAGE)),
        Family("", "", "process_open_fds", gauge, "Open file descriptors of this process.", single(_open_descriptors)),
        Family("", "", "process_max_fds", gauge, "The limit of open file descriptors.", single(_descriptor_limit)),
        Family("", "", "process_start_time_seconds", gauge, "When this process started, in seconds since 1970.", single(_start_time)),
    ]


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _statm(column: int) -> int:
    """A column of /proc/self/statm, in pages; 0 on a system without it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[column])
    except OSError:
        return 0


def _disk_bytes(field: str) -> int:
    """A field of /proc/self/io; 0 on a system without it."""
    try:
        with open("/proc/self/io", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(field))
    except (OSError, StopIteration):
        return 0


def _open_descriptors() -> float:
    for path in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(path)) - 1  # without the one that reads the directory
        except OSError:
            continue
    return 0


def _descriptor_limit() -> float:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _start_time() -> float:
    """From /proc: the ticks between the boot of the machine and the start of the process; 0 on a system without it."""
    try:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        with open("/proc/stat", encoding="ascii") as file:
            boot = next(int(line.split()[1]) for line in file if line.startswith("btime "))
    except (OSError, StopIteration):
        return 0
    return boot + ticks / _TICKS
