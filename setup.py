"""What setuptools cannot read from pyproject.toml: how the modules of src/compiled.toml are compiled.

`BARNABAS_PURE=1` installs without compiling; a machine without a C compiler or Python's headers gets there by itself.
A build needs what pyproject.toml requires for it and no run-time dependency: mypy takes a package that is not there for Any.
"""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HOT: dict[str, list[str]] = tomllib.loads(Path("src/compiled.toml").read_text())

COMPILER_FLAGS = [
    "-fno-semantic-interposition",  # or calls through the shared library are not inlined
    "-Wno-error",  # mypyc adds -Werror: a warning that another compiler has would leave everything plain Python
]
LINKER_FLAGS = ["-Wl,-s"] if sys.platform == "linux" else []  # no symbols of C: half of a library, and Python's tracebacks need none
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
    groups = [([f"src/{module.replace('.', '/')}.py" for module in modules], f"barnabas_{name}") for name, modules in HOT.items()]
    compiled = mypycify(
        ["--strict", "--explicit-package-bases", *(path for paths, _ in groups for path in paths)],
        opt_level="3",
        debug_level="0",
        separate=groups,
        target_dir="build/mypyc",
    )
    for extension in compiled:
        extension.optional = True  # a failure is a warning; AllOrNone sees to the rest
        extension.extra_link_args = [*extension.extra_link_args, *LINKER_FLAGS]
        extension.extra_compile_args = [*extension.extra_compile_args, *COMPILER_FLAGS]  # a list of its own: mypyc gives all the same one
    return compiled


setup(ext_modules=extensions(), cmdclass={"build_ext": AllOrNone}, options={"build_ext": {"parallel": os.cpu_count() or 1}})
