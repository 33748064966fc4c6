"""Run a ZooKeeper server on this machine, from what is installed, for a cluster on a laptop and for tests.

It is the real ZooKeeper: Debian's package, a release unpacked at $ZOOKEEPER_HOME, or the jars that come inside PySpark. One server without
an ensemble; a production cluster needs three servers on other machines.
"""

from __future__ import annotations

import os
import shutil
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from barnabas.file_modes import keep_files_private
from barnabas.tools.running.data_home import data_home

DEBIAN_JAR: Final = "/usr/share/java/zookeeper.jar"
MAIN_CLASS: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
TICK_MS: Final = 500  # sessions may be as short as two ticks
HEAP: Final = "256m"
CANNOT_RUN: Final = 1


def main(arguments: Sequence[str]) -> int:
    given = build_parser().parse_args(arguments)
    class_path = next(_class_paths(), None)
    if class_path is None:
        return _cannot("No ZooKeeper was found. Install one: apt-get install zookeeper, or pip install pyspark, or set ZOOKEEPER_HOME")
    if shutil.which("java") is None:
        return _cannot("ZooKeeper needs Java, and there is no `java` here. Install it: apt-get install openjdk-17-jre-headless")
    data = Path(given.data or default_data()).expanduser().absolute()
    keep_files_private()
    try:
        config = _write_config(data, given.host, given.port, given.tick_ms)
    except OSError as error:
        return _cannot(f"{data} cannot be written: {error.strerror}. Choose another directory with --data")
    print(f"ZooKeeper on {given.host}:{given.port}, data in {data}\nstop it with Ctrl-C", flush=True)
    command = ["java", f"-Xmx{HEAP}", "-Dzookeeper.admin.enableServer=false", "-cp", class_path, MAIN_CLASS, str(config)]
    os.execvp(command[0], command)


def build_parser() -> ArgumentParser:
    parser = ArgumentParser("barnabas zookeeper", description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--port", type=int, default=2181, help="default: %(default)s")
    parser.add_argument("--host", default="localhost", help="the name or address to listen on; default: %(default)s")
    parser.add_argument("--data", metavar="DIR", default=None, help=f"default: {default_data()}")
    parser.add_argument("--tick-ms", type=int, default=TICK_MS, metavar="MS", help="sessions last at least two ticks; default: %(default)s")
    return parser


def _class_paths() -> Iterator[str]:
    """The class paths that can start a server, the best first."""
    home = os.environ.get("ZOOKEEPER_HOME")
    if home and list(Path(home, "lib").glob("zookeeper-[0-9]*.jar")):
        yield f"{home}/lib/*"
    if os.path.exists(DEBIAN_JAR):
        yield DEBIAN_JAR  # its manifest names the others
    spark = find_spec("pyspark")
    for directory in spark.submodule_search_locations or () if spark is not None else ():
        if list(Path(directory, "jars").glob("zookeeper-[0-9]*.jar")):
            yield f"{directory}/jars/*"


def _write_config(data: Path, host: str, port: int, tick_ms: int) -> Path:
    data.mkdir(parents=True, exist_ok=True)
    config = data / "zoo.cfg"
    config.write_text(
        f"dataDir={data}\nclientPort={port}\nclientPortAddress={host}\ntickTime={tick_ms}\nmaxClientCnxns=0\n"
        "autopurge.purgeInterval=1\nautopurge.snapRetainCount=3\n4lw.commands.whitelist=*\n"
    )
    return config


def default_data() -> str:
    """Beside the data of `barnabas up`, not inside it: there each directory is a partition. An existing data directory is kept."""
    earlier = os.path.join(data_home(), "zookeeper")
    own = f"{data_home()}-zookeeper"
    return earlier if os.path.isdir(os.path.join(earlier, "version-2")) and not os.path.exists(own) else own


def _cannot(message: str) -> int:
    print(f"barnabas zookeeper: {message}", file=sys.stderr)
    return CANNOT_RUN
