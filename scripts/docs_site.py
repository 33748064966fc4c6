"""What the documentation site has besides docs/: pages and files of the repository that docs/ links to, and tables made from the code.

mkdocs calls the `on_…` functions (mkdocs.yml names this file). A link such as `../ARCHITECTURE.md` leads out of docs/, and works on GitHub.
On the site the page is `project/ARCHITECTURE.md`; other files of the repository are copied to `repository/`. A link to a folder of the
repository becomes plain text. The rule is the same for each page: a link is resolved in the repository, then translated to the site.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = "docs"
PAGES = ("ARCHITECTURE.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")
PAGES_ON_SITE, FILES_ON_SITE = "project", "repository"

_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^]\[]*)\]\(([^)\s]+)\)")
SETTINGS = re.compile(r"^<!-- table: ([\w.]+):(\w+) -->$", re.MULTILINE)
OPTIONS = re.compile(r"^<!-- options: ([\w ]+) -->$", re.MULTILINE)
_UNITS = {".ms": "ms", ".seconds": "s", ".minutes": "min", ".hours": "h", ".bytes": "bytes"}
_SIZES = frozenset({"batch.size", "buffer.memory", "max.request.size"})


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    sys.path.insert(0, str(ROOT / "src"))  # tables are made from the sources, installed or not
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    from mkdocs.structure.files import File  # the tests of this module need no mkdocs

    for name in PAGES:
        files.append(File.generated(config, f"{PAGES_ON_SITE}/{name}", abs_src_path=str(ROOT / name)))
    for target in sorted(_files_linked_to(files)):
        files.append(File.generated(config, f"{FILES_ON_SITE}/{target}", abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    markdown = SETTINGS.sub(lambda match: settings_table(named(match[1], match[2])), markdown)
    markdown = OPTIONS.sub(lambda match: options_table(match[1]), markdown)
    return outside_of_code(markdown, lambda text: LINK.sub(lambda link: translated(link, page.file.src_uri), text))


# Links


def _files_linked_to(files: Files) -> set[str]:
    """Files of the repository, by their paths, that pages link to and that are not pages of the site."""
    found = set()
    for file in files.documentation_pages():
        for _, link in LINK.findall(_FENCE.sub("", file.content_string)):
            target = _in_repository(link, file.src_uri)
            if target is not None and not target.startswith(f"{DOCS}/") and target not in PAGES and (ROOT / target).is_file():
                found.add(target)
    return found


def translated(link: re.Match[str], page: str) -> str:
    target = _in_repository(link[2], page)
    if target is None or (page.partition("/")[0] != PAGES_ON_SITE and target.startswith(f"{DOCS}/")):
        return link[0]
    if (ROOT / target).is_dir():
        index = f"{target}/README.md"
        if not (target.startswith(f"{DOCS}/") and (ROOT / index).is_file()):
            return link[1]
        target = index
    _, hash_sign, section = link[2].partition("#")
    return f"[{link[1]}]({posixpath.relpath(_on_site(target), posixpath.dirname(page) or '.')}{hash_sign}{section})"


def _in_repository(link: str, page: str) -> str | None:
    """The path in the repository that a link of a page of the site leads to; None for another host and for the page itself."""
    name = link.partition("#")[0]
    if not name or "://" in link or link.startswith("mailto:"):
        return None
    folder = "" if page.startswith(f"{PAGES_ON_SITE}/") else posixpath.dirname(f"{DOCS}/{page}")
    return posixpath.normpath(posixpath.join(folder, name))


def _on_site(target: str) -> str:
    if target.startswith(f"{DOCS}/"):
        return target.removeprefix(f"{DOCS}/")
    return f"{PAGES_ON_SITE}/{target}" if target in PAGES else f"{FILES_ON_SITE}/{target}"


def outside_of_code(markdown: str, change: Callable[[str], str]) -> str:
    parts, end = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [change(markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(markdown[end:])])


# Tables


def named(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def settings_table(keys: Mapping[str, Any]) -> str:
    rows = (
        (
            f"`{key.name}`",
            key.type.name.lower(),
            _unit(key.name),
            _default(key),
            "" if key.validator is None else _code(str(key.validator)),
            key.importance.value,
            key.doc,
        )
        for key in sorted(keys.values(), key=lambda key: str(key.name))
        if not key.hidden
    )
    return _table(("setting", "type", "unit", "default", "allowed", "importance", "what it does"), rows)


def options_table(use: str) -> str:
    rows = (
        (f"`{option.name}`", option.type, option.unit, "" if option.default is None else _code(option.default), option.doc)
        for option in _option_table().options_for(use)
    )
    return _table(("option", "type", "unit", "default", "what it does"), rows)


def _option_table() -> Any:
    """The module, loaded by its path: its package imports pyspark, which the site does not need."""
    name = "option_table"
    if name not in sys.modules:
        spec = spec_from_file_location(name, ROOT / "src/pyspark_barnabas/option_table.py")
        assert spec is not None and spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def _unit(name: str) -> str:
    if name in _SIZES:
        return "bytes"
    return next((unit for suffix, unit in _UNITS.items() if name.endswith(suffix)), "")


def _default(key: Any) -> str:
    from barnabas.client.config.config import REQUIRED
    from barnabas.config_def import value_text

    if key.default is REQUIRED:
        return "required"
    text = value_text(key.default)
    return "" if text is None else _code(text)


def _code(text: str) -> str:
    return f"`{text}`" if text.strip() else "empty"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
