"""Mistakes can be put into plain Python only: where the broker is compiled, `make test` has looked for them before, uncompiled."""

from __future__ import annotations

import barnabas.broker.partition

IS_COMPILED = not str(barnabas.broker.partition.__file__).endswith(".py")

collect_ignore = ["test_known_mistakes.py"] if IS_COMPILED else []
