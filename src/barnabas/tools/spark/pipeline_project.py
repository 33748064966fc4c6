"""The output of `barnabas pipeline new`: a directory that `barnabas pipeline run` and Spark's `spark-pipelines run` can run."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Final

SPEC: Final = "spark-pipeline.yml"
DEFINITIONS: Final = "transformations"
SERVERS_KEY: Final = "spark.barnabas.servers"
GROUP_KEY: Final = "spark.barnabas.group"
_LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_SPEC_TEXT: Final = """\
# What to run, and with which settings. Definitions ask for those under `configuration` with spark.conf.get.
name: {name}
storage: {directory}/storage  # how far each flow is: keep it, or everything is read again
configuration:
  {servers_key}: "{servers}"
  {group_key}: "{name}"
libraries:
  - glob:
      include: {definitions}/**
"""
_README_TEXT: Final = """\
# {name}

{about}

- `{spec}`: the brokers and other settings
- `{definitions}/{template}.py`: the pipeline; add more files beside it

Run it as often as you like: each run takes what is new and ends.

    barnabas pipeline run              # here, with progress
    barnabas pipeline run --dry-run    # only check the definitions

The topics it reads must be there. {where}

{trial}
"""
_ON_THIS_MACHINE: Final = "To try it with a broker on this machine:"
_ELSEWHERE: Final = "To try it with the brokers at {servers}:"
# Sample input for each template: topics, each with a record as KEY|VALUE.
_ORDER: Final = ("orders", 'apples|{"product": "apples", "quantity": 3}')
_RECORDS: Final = {
    "changes": [("customers", '7|{"id": "7", "name": "Ann", "city": "Ulm"}')],
    "enrich": [("products", 'apples|{"price": 0.3, "unit": "kg"}'), _ORDER],
}
_TRIAL_TEXT: Final = """\
    barnabas topics --bootstrap-server {servers} --create --topic {topic}
    echo '{record}' | barnabas console-producer --bootstrap-server {servers} --topic {topic} \\
        --reader-property parse.key=true --reader-property 'key.separator=|'"""


class ProjectRefused(Exception):
    """The project cannot be created; the text is printed for the user."""


def template_names() -> dict[str, str]:
    """The templates, with the sentence each opens with."""
    return {path.stem: path.read_text().partition("\n")[0].strip('"') for path in sorted(_templates().glob("[a-z]*.py"))}


def make_project(parent: Path, name: str, template: str, servers: str) -> Path:
    """Writes a project and returns its directory. Never overwrites a file."""
    if _NAME.fullmatch(name) is None:
        raise ProjectRefused(f"{name}: a name begins with a letter and has letters, digits, - and _ only")
    templates = template_names()
    if template not in templates:
        raise ProjectRefused(f"--template {template}: there are {', '.join(templates)}")
    directory = parent / name
    if directory.exists():
        raise ProjectRefused(f"{directory} is there already; choose another name, or remove it")
    names = {
        "name": name,
        "directory": directory.resolve().as_uri(),
        "servers": servers,
        "servers_key": SERVERS_KEY,
        "group_key": GROUP_KEY,
        "definitions": DEFINITIONS,
        "spec": SPEC,
        "template": template,
        "about": templates[template],
        "where": _ELSEWHERE.format(servers=servers) if (port := local_port(servers)) is None else _ON_THIS_MACHINE,
        "trial": "\n".join(
            [
                *([] if port is None else [f"    barnabas up --port {port} &"]),
                *(_TRIAL_TEXT.format(servers=servers, topic=topic, record=record) for topic, record in _RECORDS.get(template, [_ORDER])),
            ]
        ),
    }
    (directory / DEFINITIONS).mkdir(parents=True)
    (directory / SPEC).write_text(_SPEC_TEXT.format(**names))
    (directory / "README.md").write_text(_README_TEXT.format(**names))
    (directory / DEFINITIONS / f"{template}.py").write_text((_templates() / f"{template}.py").read_text())
    return directory


def local_port(servers: str) -> int | None:
    """The port of the first broker if it is on this machine, so that `barnabas up` can be that broker; None for another machine."""
    host, _, port = servers.partition(",")[0].strip().rpartition(":")
    return int(port) if host.strip("[]") in _LOCAL_HOSTS and port.isdecimal() else None


def find_spec_file(start: Path) -> Path:
    """The spec in a directory or in one above it, as spark-pipelines looks for it."""
    for directory in (start, *start.parents):
        for name in (SPEC, "spark-pipeline.yaml"):
            if (directory / name).is_file():
                return directory / name
    raise ProjectRefused(f"there is no {SPEC} in {start} or above; name it with --spec, or make a project: barnabas pipeline new NAME")


def _templates() -> Path:
    """The directory of the templates, found without importing the package, which would need Spark."""
    spec = find_spec("pyspark_barnabas")
    places = [] if spec is None or spec.submodule_search_locations is None else list(spec.submodule_search_locations)
    if not places:
        raise ProjectRefused("the package pyspark_barnabas, which comes with barnabas, is not installed")
    return Path(places[0], "pipelines", "templates")
