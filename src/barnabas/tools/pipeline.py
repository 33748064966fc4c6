"""Make a pipeline on Spark, run it, and pack what a cluster needs for it. (Not in Kafka.)

A project is one of Spark Declarative Pipelines; `run` is Spark's own `spark-pipelines run` with what it needs set, and with progress.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from barnabas.tools.spark.pipeline_package import PackageRefused, write_package
from barnabas.tools.spark.pipeline_project import ProjectRefused, find_spec_file, make_project, template_names
from barnabas.tools.spark.spark import or_missing, require_spark

_SERVERS: Final = "localhost:9092"
_TEMPLATE: Final = "windows"
_USES: Final = {
    ".zip": "  spark-submit --py-files {name} …    (executors need the run-time dependencies: see docs/spark/README.md)",
    ".tar.gz": "  spark-submit --archives {name}#barnabas --conf spark.executorEnv.PYTHONPATH=./barnabas …",
}


def main(arguments: Sequence[str]) -> int:
    given = build_parser().parse_args(arguments)
    commands = {"new": _new, "run": lambda options: or_missing(lambda: _run(options)), "package": _package}
    try:
        return commands[given.command](given)
    except (ProjectRefused, PackageRefused) as refused:
        print(f"barnabas: {refused}", file=sys.stderr)
        return 1


def build_parser() -> ArgumentParser:
    parser = ArgumentParser("barnabas pipeline", description=__doc__.partition("\n")[0], allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    templates = "\n".join(f"  {name:10}{about}" for name, about in template_names().items())
    new = commands.add_parser(
        "new",
        help="write a project that runs",
        description="Writes a project into a new directory.",
        epilog=f"templates:\n{templates}",
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    new.add_argument("name", metavar="NAME", help="of the project, of its directory, and of the group that shows its progress")
    new.add_argument("--template", default=_TEMPLATE, help="what it does; default: %(default)s")
    new.add_argument("--bootstrap-server", default=_SERVERS, metavar="SERVERS", help="default: %(default)s")
    run = commands.add_parser("run", help="run a project: take what is new, and end", allow_abbrev=False)
    run.add_argument("--spec", metavar="FILE", help="default: spark-pipeline.yml here or in a directory above")
    run.add_argument("--dry-run", action="store_true", help="only check the definitions")
    run.add_argument("--full-refresh", metavar="TABLES", default="", help="compute these tables anew, with commas between them")
    run.add_argument("--full-refresh-all", action="store_true", help="compute everything anew")
    run.add_argument("--refresh", metavar="TABLES", default="", help="update only these tables")
    run.add_argument("--master", metavar="URL", help="the Spark cluster to run on; default: all cores of this machine")
    run.add_argument("--remote", metavar="URL", help="a Spark Connect server to run on: sc://host:port")
    run.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark; may be repeated")
    run.add_argument("--verbose", action="store_true", help="show everything that Spark prints")
    package = commands.add_parser("package", help="write Barnabas into a file for executors that have none", allow_abbrev=False)
    package.add_argument(
        "file", metavar="FILE", help="a .zip for spark-submit --py-files; a .tar.gz, with compiled modules, for --archives"
    )
    return parser


def _new(given: Namespace) -> int:
    directory = make_project(Path.cwd(), given.name, given.template, given.bootstrap_server)
    print(f"{directory.name}/ is a pipeline: {template_names()[given.template]}\n\n  cd {directory.name}\n  barnabas pipeline run")
    return 0


def _package(given: Namespace) -> int:
    target = Path(given.file)
    count = write_package(target)
    print(f"{target}: {count} files\n\n{_USES['.zip' if target.name.endswith('.zip') else '.tar.gz'].format(name=target.name)}")
    return 0


def _run(given: Namespace) -> int:
    spec = Path(given.spec).absolute() if given.spec else find_spec_file(Path.cwd())
    if not spec.is_file():
        raise ProjectRefused(f"--spec {given.spec}: there is no such file")
    require_spark(pipelines=True)
    from barnabas.tools.spark.pipeline_run import run_pipeline

    return run_pipeline(given, spec)
