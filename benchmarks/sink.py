"""The limit of a broker on one thread: takes the frames of the raw generator, writes their records to a file, and acknowledges them.

It checks nothing, keeps no index and knows one topic; what it needs is what the kernel needs to receive, write and answer. No broker that
does its work on one core can be faster on this machine, however little it did.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from struct import Struct

from barnabas.protocol.framing import response_frame
from barnabas.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from barnabas.protocol.registry import BY_NAME
from benchmarks.generator import PRODUCE_VERSION

_BUFFER_BYTES = 8 << 20
_size_at = Struct(">i").unpack_from


def serve(topic: str) -> None:
    """Prints its port, then serves one connection to its end."""
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    connection, _ = listening.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with tempfile.TemporaryFile() as file:
        _take_all(connection, file.fileno(), _acknowledgement(topic))


def _take_all(connection: socket.socket, file: int, acknowledgement: bytes) -> None:
    buffer = bytearray(_BUFFER_BYTES)
    view, end = memoryview(buffer), 0
    while received := connection.recv_into(view[end:]):
        end += received
        at, answers = 0, 0
        while end - at >= 4 and end - at >= (size := 4 + _size_at(buffer, at)[0]):
            os.write(file, view[at : at + size])
            at += size
            answers += 1
        if answers:
            connection.sendall(acknowledgement * answers)
            view[: end - at] = view[at:end]
            end -= at


def _acknowledgement(topic: str) -> bytes:
    response = ProduceResponse(responses=[TopicProduceResponse(topic, partition_responses=[PartitionProduceResponse(0, 0, 0)])])
    frame = response_frame(response, 7, PRODUCE_VERSION, BY_NAME["Produce"].response_header_version(PRODUCE_VERSION))
    return b"".join(part for part in frame if isinstance(part, bytes))


if __name__ == "__main__":
    serve(sys.argv[1])
