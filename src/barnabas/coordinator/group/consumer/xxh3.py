"""XXH3, 64 bits, no seed: the hash in the epoch record of a group.

Runs once per topic and topic change, over a few hundred bytes, so plain Python is fast enough and no library is needed.
"""

from __future__ import annotations

from struct import unpack_from
from typing import Final

_MASK: Final = (1 << 64) - 1
_PRIME32_1: Final = 0x9E3779B1
_PRIME32_2: Final = 0x85EBCA77
_PRIME32_3: Final = 0xC2B2AE3D
_PRIME64_1: Final = 0x9E3779B185EBCA87
_PRIME64_2: Final = 0xC2B2AE3D27D4EB4F
_PRIME64_3: Final = 0x165667B19E3779F9
_PRIME64_4: Final = 0x85EBCA77C2B2AE63
_PRIME64_5: Final = 0x27D4EB2F165667C5
_PRIME_MX1: Final = 0x165667919E3779F9
_PRIME_MX2: Final = 0x9FB21C651E98DF25

_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE: Final = 64
_STRIPES_PER_BLOCK: Final = (len(_SECRET) - _STRIPE) // 8


def xxh3_64(data: bytes) -> int:
    size = len(data)
    if size > 240:
        return _long(data)
    if size > 128:
        return _to_240(data)
    if size > 16:
        return _to_128(data)
    if size > 8:
        return _to_16(data)
    if size >= 4:
        return _to_8(data)
    return _to_3(data) if size else _avalanche64(_u64(_SECRET, 56) ^ _u64(_SECRET, 64))


def _to_3(data: bytes) -> int:
    size = len(data)
    combined = data[0] << 16 | data[size >> 1] << 24 | data[size - 1] | size << 8
    flip = _u32(_SECRET, 0) ^ _u32(_SECRET, 4)
    return _avalanche64(combined ^ flip)


def _to_8(data: bytes) -> int:
    size = len(data)
    value = _u32(data, size - 4) + (_u32(data, 0) << 32)
    value ^= _u64(_SECRET, 8) ^ _u64(_SECRET, 16)
    value ^= _rotate(value, 49) ^ _rotate(value, 24)
    value = value * _PRIME_MX2 & _MASK
    value ^= (value >> 35) + size
    value = value * _PRIME_MX2 & _MASK
    return value ^ value >> 28


def _to_16(data: bytes) -> int:
    size = len(data)
    low = _u64(data, 0) ^ _u64(_SECRET, 24) ^ _u64(_SECRET, 32)
    high = _u64(data, size - 8) ^ _u64(_SECRET, 40) ^ _u64(_SECRET, 48)
    return _avalanche(size + int.from_bytes(low.to_bytes(8, "little"), "big") + high + _fold(low, high))


def _to_128(data: bytes) -> int:
    size = len(data)
    total = size * _PRIME64_1
    for step in range((size - 1) // 32, -1, -1):
        total += _mix16(data, 16 * step, 32 * step) + _mix16(data, size - 16 * (step + 1), 32 * step + 16)
    return _avalanche(total)


def _to_240(data: bytes) -> int:
    size = len(data)
    total = size * _PRIME64_1 + sum(_mix16(data, 16 * step, 16 * step) for step in range(8))
    total = _avalanche(total)
    total += sum(_mix16(data, 16 * step, 16 * (step - 8) + 3) for step in range(8, size // 16))
    return _avalanche(total + _mix16(data, size - 16, 136 - 17))


def _long(data: bytes) -> int:
    lanes = [_PRIME32_3, _PRIME64_1, _PRIME64_2, _PRIME64_3, _PRIME64_4, _PRIME32_2, _PRIME64_5, _PRIME32_1]
    stripes = (len(data) - 1) // _STRIPE
    for stripe in range(stripes):
        in_block = stripe % _STRIPES_PER_BLOCK
        _accumulate(lanes, data, stripe * _STRIPE, in_block * 8)
        if in_block == _STRIPES_PER_BLOCK - 1:
            _scramble(lanes)
    _accumulate(lanes, data, len(data) - _STRIPE, len(_SECRET) - _STRIPE - 7)
    total = len(data) * _PRIME64_1
    for pair in range(4):
        secret = 11 + 16 * pair
        total += _fold(lanes[2 * pair] ^ _u64(_SECRET, secret), lanes[2 * pair + 1] ^ _u64(_SECRET, secret + 8))
    return _avalanche(total)


def _accumulate(lanes: list[int], data: bytes, at: int, secret: int) -> None:
    values = unpack_from("<8Q", data, at)
    keys = unpack_from("<8Q", _SECRET, secret)
    for lane in range(8):
        keyed = values[lane] ^ keys[lane]
        lanes[lane ^ 1] = lanes[lane ^ 1] + values[lane] & _MASK
        lanes[lane] = lanes[lane] + (keyed & 0xFFFFFFFF) * (keyed >> 32) & _MASK


def _scramble(lanes: list[int]) -> None:
    keys = unpack_from("<8Q", _SECRET, len(_SECRET) - _STRIPE)
    for lane in range(8):
        lanes[lane] = (lanes[lane] ^ lanes[lane] >> 47 ^ keys[lane]) * _PRIME32_1 & _MASK


def _mix16(data: bytes, at: int, secret: int) -> int:
    return _fold(_u64(data, at) ^ _u64(_SECRET, secret), _u64(data, at + 8) ^ _u64(_SECRET, secret + 8))


def _fold(left: int, right: int) -> int:
    product = left * right
    return product & _MASK ^ product >> 64


def _avalanche(value: int) -> int:
    value &= _MASK
    value = (value ^ value >> 37) * _PRIME_MX1 & _MASK
    return value ^ value >> 32


def _avalanche64(value: int) -> int:
    value = (value ^ value >> 33) * _PRIME64_2 & _MASK
    value = (value ^ value >> 29) * _PRIME64_3 & _MASK
    return value ^ value >> 32


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")
