"""What compression promises: Kafka's framings in both directions, and CorruptRecord, never more, for anything else."""

from __future__ import annotations

import contextlib
import gzip
import struct
from pathlib import Path

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import CorruptRecord
from barnabas.records.batch import HEADER_SIZE_V2, read_batches
from barnabas.records.codecs.compression import (
    FIRST_LOOK,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    check_level,
    codec_id,
    codec_name,
    compress,
    decompress,
    decompress_start,
)
from barnabas.records.codecs.lz4_frame import xxh32

GOLDEN = Path(__file__).parents[3] / "data" / "golden-logs" / "kafka-4.2.0" / "first"
CODECS = [GZIP, SNAPPY, LZ4, ZSTD]
TEXT = b"".join(b"the value of key %d; " % (n % 37) for n in range(20_000))

# Repetitive as records are, so that copies, runs and several blocks occur; and short noise, which does not compress.
contents = st.one_of(
    st.binary(max_size=300),
    st.builds(lambda piece, times: piece * times, st.binary(min_size=1, max_size=20), st.integers(1, 10_000)),
)
codecs = st.sampled_from(CODECS)


def named(codec: int) -> str:
    return codec_name(codec)


@settings(max_examples=200)
@given(codecs, contents, st.sampled_from([0, 1, 2]))
def test_any_bytes_survive_any_codec(codec: int, content: bytes, magic: int) -> None:
    assert decompress(codec, compress(codec, content, magic), magic) == content


@settings(max_examples=400)
@given(codecs, st.data())
def test_damaged_input_is_refused_or_read_but_never_passes_the_limit(codec: int, data: st.DataObject) -> None:
    compressed = bytearray(compress(codec, data.draw(contents)))
    for _ in range(data.draw(st.integers(0, 3))):
        compressed[data.draw(st.integers(0, len(compressed) - 1))] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.integers(0, len(compressed)))
    limit = data.draw(st.integers(0, 4000))
    try:
        decompressed = decompress(codec, bytes(compressed[:cut]), data.draw(st.sampled_from([0, 1, 2])), limit)
    except CorruptRecord as error:
        assert codec_name(codec) in str(error)
    else:
        assert len(decompressed) <= limit


@settings(max_examples=200)
@given(codecs, contents, st.sampled_from([0, 1, 2]), st.integers(1, 100_000))
def test_a_start_is_enough_of_the_beginning_or_all_of_it(codec: int, content: bytes, magic: int, enough: int) -> None:
    start = decompress_start(codec, compress(codec, content, magic), magic, enough)
    assert content.startswith(start)
    assert len(start) >= min(enough, len(content))


@pytest.mark.parametrize("codec", CODECS, ids=named)
def test_a_start_shorter_than_asked_for_is_checked_to_its_end(codec: int) -> None:
    with pytest.raises(CorruptRecord):
        decompress_start(codec, compress(codec, TEXT)[:-5])


@pytest.mark.parametrize("codec", CODECS, ids=named)
def test_the_start_of_a_bomb_is_all_that_is_opened_of_it(codec: int) -> None:
    bomb = compress(codec, bytes(16 * FIRST_LOOK))
    assert FIRST_LOOK <= len(decompress_start(codec, bomb)) < 2 * FIRST_LOOK


def test_damage_behind_the_start_of_a_zstd_frame_is_found_when_it_is_opened_whole() -> None:
    damaged = bytearray(compress(ZSTD, TEXT * 20))
    damaged[-20:-15] = b"\xff" * 5
    with pytest.raises(CorruptRecord):
        decompress(ZSTD, bytes(damaged))


@given(codecs, st.binary(max_size=200), st.integers(0, 100_000))
def test_noise_is_refused_or_read(codec: int, noise: bytes, limit: int) -> None:
    with contextlib.suppress(CorruptRecord):
        assert len(decompress(codec, noise, 2, limit)) <= limit


@pytest.mark.parametrize("codec", CODECS, ids=named)
def test_every_cut_is_found_out(codec: int) -> None:
    compressed = compress(codec, TEXT[:500])
    for size in range(len(compressed)):
        if (codec, size) not in [(ZSTD, 0), (SNAPPY, 16)]:  # an empty stream, and a stream header without a block
            with pytest.raises(CorruptRecord, match=codec_name(codec)):
                decompress(codec, compressed[:size])


@pytest.mark.parametrize("codec", CODECS, ids=named)
def test_the_limit_is_the_largest_size_that_comes_out(codec: int) -> None:
    compressed = compress(codec, TEXT)
    assert decompress(codec, compressed, 2, len(TEXT)) == TEXT
    with pytest.raises(CorruptRecord, match=codec_name(codec)):
        decompress(codec, compressed, 2, len(TEXT) - 1)


def test_a_bomb_of_run_length_blocks_is_refused_by_its_headers() -> None:
    block = struct.pack("<I", 131072 << 3 | 1 << 1)[:3] + b"\x00"
    bomb = b"\x28\xb5\x2f\xfd\x00\x58" + block * 100_000 + b"\x01\x00\x00"  # 400 KB that stand for 13 GB
    with pytest.raises(CorruptRecord, match="zstd: more than"):
        decompress(ZSTD, bomb)


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD], ids=named)
def test_a_bomb_is_refused_once_it_passes_the_limit(codec: int) -> None:
    bomb = compress(codec, bytes(50_000_000))
    assert len(bomb) < 250_000
    with pytest.raises(CorruptRecord, match=codec_name(codec)):
        decompress(codec, bomb, 2, 1_000_000)


def test_a_snappy_block_may_not_claim_more_than_its_bytes_can_hold() -> None:
    claims_256_mb = b"\x80\x80\x80\x80\x01" + b"\x00a"
    with pytest.raises(CorruptRecord, match="snappy: 7 bytes claim to hold 268435456"):
        decompress(SNAPPY, claims_256_mb)


def test_a_stream_of_very_many_gzip_members_is_refused() -> None:
    with pytest.raises(CorruptRecord, match="members"):
        decompress(GZIP, compress(GZIP, b"") * 2000)


def bodies(topic: str) -> list[bytes]:
    data = (GOLDEN / f"{topic}-0" / "00000000000000000000.log").read_bytes()
    return [data[batch.at + HEADER_SIZE_V2 : batch.end] for batch in read_batches(data)]


@pytest.mark.parametrize("codec", CODECS, ids=named)
def test_what_kafka_compressed_reads_as_what_it_left_uncompressed(codec: int) -> None:
    assert [decompress(codec, body) for body in bodies(f"g-{codec_name(codec)}")] == bodies("g-none")


@pytest.mark.parametrize("codec", [LZ4, ZSTD], ids=named)
def test_the_bytes_are_those_kafka_writes(codec: int) -> None:
    assert [compress(codec, body) for body in bodies("g-none")] == bodies(f"g-{codec_name(codec)}")


def test_the_gzip_header_is_the_one_java_writes() -> None:
    assert compress(GZIP, b"x")[:10] == bodies("g-gzip")[0][:10]


def test_the_snappy_stream_is_cut_into_blocks_of_32_kb() -> None:
    compressed = compress(SNAPPY, TEXT[:70_000])
    assert compressed[:16] == bodies("g-snappy")[0][:16]
    sizes, at = [], 16
    while at < len(compressed):
        size = int.from_bytes(compressed[at : at + 4], "big")
        sizes.append(cramjam.snappy.decompress_raw_len(compressed[at + 4 : at + 4 + size]))
        at += 4 + size
    assert sizes == [32768, 32768, 4464]


def test_plain_snappy_without_the_framing_is_read() -> None:
    assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, ZSTD], ids=named)
def test_streams_one_after_another_are_read_as_one(codec: int) -> None:
    assert decompress(codec, compress(codec, b"first ") + compress(codec, b"second")) == b"first second"


def test_a_skippable_zstd_frame_is_skipped() -> None:
    assert decompress(ZSTD, b"\x5a\x2a\x4d\x18\x03\x00\x00\x00abc" + compress(ZSTD, b"content")) == b"content"


def test_a_zstd_frame_that_tells_its_size_is_read() -> None:
    assert decompress(ZSTD, bytes(cramjam.zstd.compress(TEXT)), 2, len(TEXT)) == TEXT


def test_what_follows_gzip_or_lz4_is_ignored_as_java_does() -> None:
    assert decompress(GZIP, gzip.compress(b"content") + b"\x00\x00rest") == b"content"
    assert decompress(LZ4, compress(LZ4, b"content") + b"rest") == b"content"


def test_empty_input_is_no_stream_except_for_zstd() -> None:
    assert decompress(ZSTD, b"") == b""
    for codec in (GZIP, SNAPPY, LZ4):
        with pytest.raises(CorruptRecord, match=codec_name(codec)):
            decompress(codec, b"")


def test_no_codec_passes_the_bytes_on() -> None:
    assert decompress(NONE, compress(NONE, TEXT)) is TEXT


def test_an_unknown_codec_is_corrupt_to_read_and_a_mistake_to_write() -> None:
    with pytest.raises(CorruptRecord, match="Unknown compression type id: 5"):
        decompress(5, b"")
    with pytest.raises(ValueError, match="Unknown compression type id: 5"):
        compress(5, b"")


def test_the_lz4_header_checksum_of_format_v0_is_the_historic_one() -> None:
    assert compress(LZ4, b"x", magic=0)[:7].hex() == "04224d1860401a"
    assert compress(LZ4, b"x", magic=1)[:7].hex() == "04224d18604082"


def test_the_historic_lz4_checksum_is_read_in_the_old_formats_only() -> None:
    historic = compress(LZ4, TEXT, magic=0)
    assert decompress(LZ4, historic, magic=0) == TEXT
    assert decompress(LZ4, historic, magic=1) == TEXT
    with pytest.raises(CorruptRecord, match="Stream frame descriptor corrupted"):
        decompress(LZ4, historic, magic=2)


def lz4_frame_with_block_checksums(content: bytes) -> bytes:
    compressor = cramjam.lz4.Compressor(content_checksum=True, block_linked=False)
    compressor.compress(content)
    frame = bytes(compressor.finish())
    assert frame[4] == 0x74  # version 1, independent blocks, block checksums, content checksum
    return frame


def test_lz4_block_checksums_are_read_and_compared() -> None:
    frame = lz4_frame_with_block_checksums(TEXT)
    assert decompress(LZ4, frame) == TEXT
    at = 11 + int.from_bytes(frame[7:11], "little")
    with pytest.raises(CorruptRecord, match="Block checksum mismatch"):
        decompress(LZ4, frame[:at] + bytes([frame[at] ^ 1]) + frame[at + 1 :])


def test_lz4_blocks_that_need_each_other_are_unsupported_as_in_kafka() -> None:
    with pytest.raises(CorruptRecord, match="Dependent block stream is unsupported"):
        decompress(LZ4, bytes(cramjam.lz4.compress(TEXT)))


def test_an_lz4_frame_with_4_mb_blocks_and_a_content_size_is_read() -> None:
    descriptor = b"\x68\x70" + struct.pack("<Q", len(TEXT))
    block = bytes(cramjam.lz4.compress_block(TEXT, store_size=False))
    header = b"\x04\x22\x4d\x18" + descriptor + bytes([xxh32(descriptor) >> 8 & 0xFF])
    assert decompress(LZ4, header + struct.pack("<I", len(block)) + block + bytes(4)) == TEXT


def test_an_lz4_block_larger_than_its_frame_allows_is_refused() -> None:
    with pytest.raises(CorruptRecord, match="Block size 65537 exceeded max: 65536"):
        decompress(LZ4, compress(LZ4, b"x")[:7] + struct.pack("<I", 65537) + bytes(70_000))


def test_xxh32_gives_the_published_values() -> None:
    assert xxh32(b"") == 0x02CC5D05
    assert xxh32(b"Nobody inspects the spammish repetition") == 0xE2293B2F


@pytest.mark.parametrize(
    ("codec", "levels"), [(GZIP, [-1, 1, 9]), (LZ4, [1, 2, 3, 9, 12, 17]), (ZSTD, [-131072, -1, 0, 3, 12])], ids=["gzip", "lz4", "zstd"]
)
def test_every_level_makes_readable_bytes(codec: int, levels: list[int]) -> None:
    for level in levels:
        check_level(codec, level)
        assert decompress(codec, compress(codec, TEXT[:100_000], level=level)) == TEXT[:100_000]


def test_a_higher_level_compresses_more() -> None:
    assert len(compress(GZIP, TEXT, level=9)) < len(compress(GZIP, TEXT, level=1))
    assert len(compress(LZ4, TEXT, level=12)) < len(compress(LZ4, TEXT))
    assert len(compress(ZSTD, TEXT, level=12)) < len(compress(ZSTD, TEXT, level=-5))


@pytest.mark.parametrize(
    ("codec", "level", "message"),
    [
        (GZIP, 0, "between 1 and 9 or equal to -1"),
        (GZIP, 10, "between 1 and 9 or equal to -1"),
        (LZ4, 0, "at least 1"),
        (LZ4, 18, "no more than 17"),
        (ZSTD, -131073, "at least -131072"),
        (ZSTD, 23, "no more than 22"),
        (SNAPPY, 1, "Compression levels are not defined for this compression type: snappy"),
    ],
)
def test_a_level_out_of_range_is_named(codec: int, level: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_level(codec, level)


def test_names_and_ids_are_kafkas() -> None:
    assert [codec_name(codec) for codec in range(5)] == ["none", "gzip", "snappy", "lz4", "zstd"]
    assert [codec_id(codec_name(codec)) for codec in range(5)] == [NONE, GZIP, SNAPPY, LZ4, ZSTD]
    with pytest.raises(ValueError, match="Unknown compression name: brotli"):
        codec_id("brotli")
    with pytest.raises(ValueError, match="Unknown compression type id: 7"):
        codec_name(7)
