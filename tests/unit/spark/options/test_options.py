"""Options are wrong before anything has started, and the error says how to put them right."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from sealane.security.envelopes import PrivateKey
from sealane.spark.errors import InvalidOption
from sealane.spark.options.names import check_names
from sealane.spark.options.options import read_options, write_options

URL = {"url": "sealane://127.0.0.1:7070"}


def refusal_of_reading(is_stream: bool | None = None, /, **options: str) -> str:
    with pytest.raises(InvalidOption) as refused:
        read_options({**URL, "topic": "orders", **options}, is_stream=is_stream)
    assert refused.value.option in str(refused.value)
    return str(refused.value)


def refusal_of_writing(**options: str) -> str:
    with pytest.raises(InvalidOption) as refused:
        write_options({**URL, **options})
    return str(refused.value)


def test_a_topic_is_all_that_reading_needs() -> None:
    options = read_options({**URL, "topic": "orders"})

    assert options.topics == ("orders",)
    assert (options.starting, options.ending) == ("earliest", "latest")
    assert options.fail_on_data_loss
    assert (options.messages_max, options.min_partitions, options.subscription) == (None, None, None)
    assert (options.keys, options.values()) == ((), None)
    assert options.access.profile.url == URL["url"]


def test_names_are_known_in_any_case_as_everywhere_in_spark() -> None:
    assert read_options({"URL": URL["url"], "TOPIC": "orders", "minpartitions": "4"}).min_partitions == 4


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("orders", ("orders",)),
        ("shop/orders, shop/returns", ("shop/orders", "shop/returns")),
        ("a,b,a", ("a", "b")),
        ("shop/*", ("shop/*",)),
        ("orders-*, shop/eu-*", ("orders-*", "shop/eu-*")),
    ],
)
def test_topics_are_names_lists_and_patterns(text: str, topics: tuple[str, ...]) -> None:
    assert read_options({**URL, "topic": text}).topics == topics


def test_what_load_names_is_the_topic() -> None:
    assert read_options({**URL, "path": "orders"}).topics == ("orders",)
    assert read_options({**URL, "paths": '["a", "b"]'}).topics == ("a", "b")
    assert write_options({**URL, "path": "orders"}).topic == "orders"
    assert "is 'a', and load, save or start name 'b'" in refusal_of_reading(topic="a", path="b")


@pytest.mark.parametrize("text", ["", "a,,b", "a b", "shop/eu/orders", "shop/", "/orders", "a/*/b", "ordérs"])
def test_what_is_no_topic_is_refused_with_what_one_is(text: str) -> None:
    problem = refusal_of_reading(topic=text)
    assert "option 'topic': " in problem
    assert "name" in problem


def test_a_missing_topic_is_said_with_what_it_could_be() -> None:
    with pytest.raises(InvalidOption, match=r"option 'topic': is missing; it is a topic's name, .* such as shop/\*"):
        read_options(URL)


def test_the_nearest_name_is_proposed_for_one_that_does_not_exist() -> None:
    with pytest.raises(InvalidOption, match=r"option 'startingOffset': .* did you mean 'startingOffsets'"):
        check_names({"startingOffset": "earliest"})
    with pytest.raises(InvalidOption, match=r"option 'shoes': there is no such option; there are .*topic, .*url"):
        check_names({"shoes": "brown"})


def test_a_value_that_may_be_secret_is_not_repeated_with_a_wrong_name() -> None:
    with pytest.raises(InvalidOption) as refused:
        check_names({"keys": "sk-1234"})
    assert "sk-1234" not in str(refused.value)


@pytest.mark.parametrize("option", ["columns", "transaction", "sealFor"])
def test_options_of_writing_are_refused_in_reading_and_say_so(option: str) -> None:
    assert f"option '{option}': is for writing" in refusal_of_reading(**{option: "x"})


@pytest.mark.parametrize("option", ["startingOffsets", "minPartitions", "valueSchema", "subscription", "endingOffsets"])
def test_options_of_reading_are_refused_in_writing_and_say_so(option: str) -> None:
    assert f"option '{option}': is for reading" in refusal_of_writing(**{option: "x"})


def test_a_stream_has_no_end_and_a_batch_no_triggers() -> None:
    assert "is for batches" in refusal_of_reading(True, endingOffsets="latest")
    assert "is for batches" in refusal_of_reading(True, endingTimestamp="0")
    assert "is for streams" in refusal_of_reading(False, subscription="etl")
    assert "is for streams" in refusal_of_reading(False, maxMessagesPerTrigger="5")
    assert "'latest' is for streams" in refusal_of_reading(False, startingOffsets="latest")
    # Until it is known what it will be, either may be meant.
    assert read_options({**URL, "topic": "a", "subscription": "etl", "endingOffsets": "latest"}).subscription == "etl"


# --- where to begin and to end ----------------------------------------------------------------------------------------


def test_offsets_are_words_or_json_of_one_topic_or_of_several() -> None:
    def starting(text: str, topic: str = "orders") -> object:
        return read_options({**URL, "topic": topic, "startingOffsets": text}).starting

    assert starting("Latest") == "latest"
    assert starting('{"0": 12, "1": 0}') == {"orders": {0: 12, 1: 0}}
    assert starting('{"a": {"0": 1}, "shop/b": {"3": 2}}', "a,shop/b") == {"a": {0: 1}, "shop/b": {3: 2}}
    assert starting('{"0": {"0": 1}}', "0") == {"0": {0: 1}}
    assert read_options({**URL, "topic": "a", "endingOffsets": '{"0": 9}'}).ending == {"a": {0: 9}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "first",
        "12",
        "[]",
        "{}",
        '{"0": -1}',
        '{"0": true}',
        '{"0": "1"}',
        '{"-1": 1}',
        '{"x": 1}',
        '{"0": 1.5}',
        "{",
    ],
)
def test_offsets_that_are_none_are_refused_with_what_is_allowed(text: str) -> None:
    problem = refusal_of_reading(startingOffsets=text)
    assert problem.startswith("option 'startingOffsets': ")
    assert "'earliest' or 'latest' or JSON" in problem
    assert "'earliest'" not in refusal_of_reading(endingOffsets=text)


@pytest.mark.parametrize("topic", ["a,b", "shop/*"])
def test_offsets_without_a_topic_need_one_topic_alone(topic: str) -> None:
    assert "does not say of which topic" in refusal_of_reading(topic=topic, startingOffsets='{"0": 1}')


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31 12:00:00.25+02:00", datetime(2026, 1, 31, 12, 0, 0, 250_000, timezone(timedelta(hours=2)))),
        ("0", datetime(1970, 1, 1, tzinfo=UTC)),
        (" 1769860800123 ", datetime(2026, 1, 31, 12, 0, 0, 123_000, tzinfo=UTC)),
    ],
)
def test_a_moment_is_iso_8601_with_a_zone_or_milliseconds(text: str, moment: datetime) -> None:
    options = read_options({**URL, "topic": "a", "startingTimestamp": text, "endingTimestamp": text})
    assert (options.starting, options.ending) == (moment, moment)


@pytest.mark.parametrize("text", ["yesterday", "", "-5", "2026-02-30T00:00:00Z", "9" * 30])
def test_what_is_no_moment_is_refused_with_what_one_is(text: str) -> None:
    assert "is no moment; write 2026-01-31T12:00:00Z" in refusal_of_reading(startingTimestamp=text)


def test_a_moment_without_a_zone_could_be_any_of_a_day() -> None:
    assert "has no time zone; write 2026-01-31T12:00Z" in refusal_of_reading(startingTimestamp="2026-01-31T12:00")


def test_one_beginning_and_one_end_in_their_order() -> None:
    assert "is given beside startingOffsets" in refusal_of_reading(startingOffsets="earliest", startingTimestamp="0")
    assert "is given beside endingOffsets" in refusal_of_reading(endingOffsets="latest", endingTimestamp="0")
    assert "is before startingTimestamp" in refusal_of_reading(startingTimestamp="2000", endingTimestamp="1000")


# --- other values -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["maxMessagesPerTrigger", "minPartitions"])
@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", "", "٣"])
def test_counts_are_whole_numbers_from_1(option: str, text: str) -> None:
    assert f"option {option!r}: {text!r} is not a whole number of at least 1" == refusal_of_reading(**{option: text})


def test_fail_on_data_loss_is_true_or_false() -> None:
    assert not read_options({**URL, "topic": "a", "failOnDataLoss": "False"}).fail_on_data_loss
    assert "'maybe' is neither 'true' nor 'false'" in refusal_of_reading(failOnDataLoss="maybe")


def test_an_empty_subscription_or_transaction_is_refused() -> None:
    assert "option 'subscription': is empty" in refusal_of_reading(subscription=" ")
    assert "option 'transaction': is empty" in refusal_of_writing(transaction="")


def test_keys_come_from_files_of_the_driver_or_as_texts(tmp_path: Path) -> None:
    one, two = PrivateKey.generate().pem(), PrivateKey.generate().pem()
    (tmp_path / "one.key").write_text(one)
    (tmp_path / "two.key").write_text(two)

    from_files = read_options({**URL, "topic": "a", "decryptionKeys": f"{tmp_path}/one.key, {tmp_path}/two.key"})
    from_texts = read_options({**URL, "topic": "a", "decryptionKeys": one + two})

    assert from_files.keys == (one, two)
    assert [pem.strip() for pem in from_texts.keys] == [one.strip(), two.strip()]
    assert "PRIVATE" not in repr(from_files)


def test_keys_that_are_none_are_refused_and_nothing_of_them_is_told(tmp_path: Path) -> None:
    secret = PrivateKey.generate().pem()
    wrong = secret.replace(secret.splitlines()[1][5:9], "AAAA", 1)[:-40]
    (tmp_path / "note").write_text("shopping")

    assert "cannot be read: No such file" in refusal_of_reading(decryptionKeys="/nowhere/a.key")
    assert "is no PEM file" in refusal_of_reading(decryptionKeys=str(tmp_path / "note"))
    told = refusal_of_reading(decryptionKeys=wrong)
    assert secret.splitlines()[1] not in told
    locked = PrivateKey.generate().pem(passphrase="open sesame")
    assert "key 1: needs its passphrase" in refusal_of_reading(decryptionKeys=locked)


def test_a_value_format_and_its_schema_come_together() -> None:
    assert "is missing beside valueFormat=json" in refusal_of_reading(valueFormat="json")
    assert "is missing beside valueSchema; it is one of json, avro" in refusal_of_reading(valueSchema="id BIGINT")
    assert "'xml' is not known; it is one of json, avro" in refusal_of_reading(
        valueFormat="xml", valueSchema="id BIGINT"
    )


def test_a_value_schema_is_read_before_anything_starts() -> None:
    assert read_options({**URL, "topic": "a", "valueFormat": "JSON", "valueSchema": "id BIGINT"}).values() is not None
    assert "option 'valueSchema'" in refusal_of_reading(valueFormat="json", valueSchema="id NUMBERS")


def test_how_to_reach_the_node_is_checked_too() -> None:
    assert "option 'retrySeconds'" in refusal_of_reading(retrySeconds="soon")


# --- writing ----------------------------------------------------------------------------------------------------------


def test_the_sink_has_a_topic_or_rows_have_their_own() -> None:
    assert write_options(URL).topic is None
    assert write_options({**URL, "topic": "shop/orders"}).topic == "shop/orders"
    assert "is a pattern, and one topic is asked for" in refusal_of_writing(topic="shop/*")
    assert "is no topic" in refusal_of_writing(topic="a,b")


def test_columns_are_pairs_each_once() -> None:
    options = write_options({**URL, "columns": "payload=body, key = customer id", "sealFor": "billing, audit"})

    assert options.columns == {"payload": "body", "key": "customer id"}
    assert options.seal_for == ("billing", "audit")
    assert "'payload' is not 'message column=DataFrame column'" in refusal_of_writing(columns="payload")
    assert "'payload=' is not" in refusal_of_writing(columns="payload=")
    assert "'key' is given twice: 'a' and 'b'" in refusal_of_writing(columns="key=a,key=b")


def test_what_spark_adds_for_itself_is_left_alone() -> None:
    assert write_options({**URL, "checkpointlocation": "/tmp/x"}).topic is None
