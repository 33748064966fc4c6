"""What the reference of the site needs to know about the sources besides what stands there: an extension of griffe, named in mkdocs.yml.

- `Admin.create_topics = _blocking(AsyncAdmin.create_topics)` is a method, with signature and docstring of the coroutine.
- `Producer[str, bytes](…)` in a docstring is code, not a link of Markdown.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Attribute, Class, Extension, Function, Module, Object

ADMIN, ASYNC_ADMIN = "client.admin.admin.Admin", "client.admin.async_admin.AsyncAdmin"
_BLOCKING = re.compile(r"_blocking\(AsyncAdmin\.(\w+)\)")
_CALL_OF_TYPE = re.compile(r"(?<![`\w])(\w+\[[\w, ]+\]\(…\))")


class Docstrings(Extension):
    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = _CALL_OF_TYPE.sub(r"`\1`", obj.docstring.value)

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        if pkg.name == "barnabas":
            blocking, coroutines = pkg[ADMIN], pkg[ASYNC_ADMIN]
            for name, member in list(blocking.members.items()):
                if isinstance(member, Attribute) and (called := _BLOCKING.fullmatch(str(member.value))):
                    blocking.set_member(name, _method(coroutines.all_members[called[1]], blocking, member))


def _method(coroutine: Any, owner: Class, attribute: Attribute) -> Function:
    """The blocking method: as the coroutine, at the place of the attribute."""
    function = coroutine.final_target if coroutine.is_alias else coroutine
    return Function(
        attribute.name,
        lineno=attribute.lineno,
        endlineno=attribute.endlineno,
        parameters=function.parameters,
        returns=function.returns,
        docstring=function.docstring,
        parent=owner,
    )
