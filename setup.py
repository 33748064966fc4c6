"""What setuptools cannot read from pyproject.toml: the list of hot modules, and how they are compiled.

HOT is the one list of modules that mypyc compiles to C. All are ordinary typed Python: where they are not compiled, the same source runs as
it is. `BARNABAS_PURE=1` installs without compiling; a machine without a C compiler gets there by itself, since each extension is optional.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

HOT = [
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

METADATA_ONLY = {"egg_info", "dist_info"}  # pip asks for these first, and they need no compiled module


def extensions() -> list[Extension]:
    if os.environ.get("BARNABAS_PURE") == "1" or METADATA_ONLY & set(sys.argv):
        return []
    from mypyc.build import mypycify

    os.environ.setdefault("MYPYPATH", "src")
    # One group, one C file: calls between the modules are plain C calls that the compiler may inline. The name is fixed, so that a build
    # after a change of HOT replaces the library of the build before.
    compiled = mypycify(
        ["--strict", "--explicit-package-bases", *(str(Path("src", module)) for module in HOT)],
        opt_level="3",
        group_name="barnabas",
        target_dir="build/mypyc",
    )
    for extension in compiled:
        extension.optional = True
        extension.extra_compile_args.append("-fno-semantic-interposition")  # or calls through the shared library are not inlined
    return compiled


setup(ext_modules=extensions())
