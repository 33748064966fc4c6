"""Options as Spark gives them: texts under names in any case."""

from __future__ import annotations

import pickle

import pytest

from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.options import (
    REFUSED_FOR_WRITING,
    boolean,
    choice,
    client_settings,
    duration_ms,
    integer,
    json_object,
    refuse_unknown,
)

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def test_settings_of_clients_lose_their_prefix() -> None:
    options = {**SERVERS, "subscribe": "t", "kafka.security.protocol": "SSL"}
    assert client_settings(options) == {"bootstrap.servers": "localhost:9092", "security.protocol": "SSL"}


@pytest.mark.parametrize("options", [{}, {"kafka.bootstrap.servers": "  "}])
def test_an_address_is_wanted(options: dict[str, str]) -> None:
    with pytest.raises(OptionError, match=r"Option 'kafka\.bootstrap\.servers': must be set"):
        client_settings(options)


@pytest.mark.parametrize(
    "name", ["auto.offset.reset", "key.deserializer", "value.deserializer", "enable.auto.commit", "interceptor.classes"]
)
def test_settings_that_would_break_reading_are_refused(name: str) -> None:
    with pytest.raises(OptionError, match=f"Option 'kafka.{name}': is not supported") as caught:
        client_settings({**SERVERS, f"kafka.{name}": "x"})
    assert caught.value.option == f"kafka.{name}"


def test_what_is_refused_for_writing_is_something_else() -> None:
    assert "auto.offset.reset" in client_settings({**SERVERS, "kafka.auto.offset.reset": "latest"}, REFUSED_FOR_WRITING)
    with pytest.raises(OptionError, match=r"kafka\.key\.serializer"):
        client_settings({**SERVERS, "kafka.key.serializer": "x"}, REFUSED_FOR_WRITING)


def test_an_unknown_option_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(OptionError, match=r"Option 'startingofsets': is not known in reading\. Did you mean 'startingOffsets'\?"):
        refuse_unknown({"startingofsets": "x"}, ["startingOffsets", "subscribe"], "reading")
    with pytest.raises(OptionError, match=r"begin with 'kafka\.'"):
        refuse_unknown({"zzz": "x"}, ["startingOffsets"], "reading")
    refuse_unknown({"STARTINGOFFSETS": "x", "kafka.anything": "y", "path": ""}, ["startingOffsets"], "reading")


@pytest.mark.parametrize(("text", "value"), [("true", True), (" False ", False), ("TRUE", True)])
def test_booleans_in_any_case(text: str, value: bool) -> None:
    assert boolean({"b": text}, "b", not value) is value


@pytest.mark.parametrize("text", ["yes", "1", ""])
def test_other_words_are_no_booleans(text: str) -> None:
    with pytest.raises(OptionError, match="must be 'true' or 'false'"):
        boolean({"b": text}, "b", True)


def test_integers_have_bounds() -> None:
    assert integer({"n": " 5 "}, "n") == 5
    assert integer({}, "n") is None
    assert integer({"n": "0"}, "n", least=0) == 0
    for text in ("0", "-1", "five", "1.5", "1e3", "9" * 30, ""):
        with pytest.raises(OptionError, match="must be a whole number from 1 on"):
            integer({"n": text}, "n")
    with pytest.raises(OptionError, match="from 1 to 10"):
        integer({"n": "11"}, "n", most=10)


@pytest.mark.parametrize(
    ("text", "ms"),
    [("15m", 900_000), ("30s", 30_000), ("30 seconds", 30_000), ("500ms", 500), ("500", 500), ("1h", 3_600_000), ("2 days", 172_800_000)],
)
def test_times_have_units(text: str, ms: int) -> None:
    assert duration_ms({"t": text}, "t", 1) == ms


@pytest.mark.parametrize("text", ["", "soon", "5 fortnights", "-5s"])
def test_other_texts_are_no_times(text: str) -> None:
    with pytest.raises(OptionError, match="must be a time such as"):
        duration_ms({"t": text}, "t", 1)


def test_a_choice_is_one_of_its_words() -> None:
    assert choice({"c": "Latest"}, "c", "error", ("error", "latest")) == "latest"
    with pytest.raises(OptionError, match="must be one of error, latest, but it is 'never'"):
        choice({"c": "never"}, "c", "error", ("error", "latest"))


@pytest.mark.parametrize("text", ["", "{", "[]", "5", '{"a":1,"a":2}'])
def test_json_is_an_object_without_twins(text: str) -> None:
    with pytest.raises(OptionError, match="must be"):
        json_object("j", text, '{"a":1}')


def test_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(OptionError("subscribe", "is wrong.")))
    assert (error.option, str(error)) == ("subscribe", "Option 'subscribe': is wrong.")
