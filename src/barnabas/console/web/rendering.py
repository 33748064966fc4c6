"""The Jinja environment of all pages. Everything is escaped; a template has no way around it but the Markup that `formats` makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from barnabas.console.web import formats
from barnabas.console.web.routes import segment

CONTENT_BLOCK: Final = "content"


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("barnabas.console", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "segment": segment,
        "number": formats.number,
        "count": formats.count,
        "size": formats.size,
        "rate": formats.rate,
        "percent": formats.percent,
        "duration": formats.duration,
        "meaning": formats.meaning,
        "iso": formats.iso,
        "utc": formats.utc,
        "visible": formats.visible,
        "visible_text": formats.visible_text,
    }
    return environment


ENVIRONMENT: Final = _environment()


def page(template: str, values: Mapping[str, object]) -> str:
    """A whole page."""
    return ENVIRONMENT.get_template(template).render(values)


def content(template: str, values: Mapping[str, object]) -> str:
    """Only the block `content` of a page, for a request of htmx. Its blocks may use what the page's imports define."""
    made = ENVIRONMENT.get_template(template)
    context = made.new_context(dict(values))
    for _ in made.root_render_func(context):  # runs the imports of the template, whose names the block needs
        break
    return "".join(made.blocks[CONTENT_BLOCK](context))
