"""A key distribution center for all tests of this folder."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.kerberos import Kdc, running


@pytest.fixture(scope="session")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Generator[Kdc, None, None]:
    """Its settings are in the environment of this process, and so of all that it starts."""
    with running(tmp_path_factory.mktemp("kdc")) as made, pytest.MonkeyPatch.context() as patch:
        for name, value in made.environment.items():
            patch.setenv(name, value)
        yield made
