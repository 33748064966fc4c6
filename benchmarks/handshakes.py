"""Opens SASL_SSL connections one after the other for some seconds: `python -m benchmarks.handshakes PORT AUTHORITY SECONDS`."""

from __future__ import annotations

import functools
import hashlib
import json
import sys
import time

from barnabas.client.network.sasl.scram import Scram
from barnabas.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from benchmarks.secured_peers import USER, USER_PASSWORD
from benchmarks.wire import Client

MECHANISM = "SCRAM-SHA-256"


def handshake(port: int, authority: str) -> None:
    with Client("localhost", port, authority=authority) as client:
        client.ask(SaslHandshakeRequest(MECHANISM), 1)
        scram = Scram(MECHANISM, USER, USER_PASSWORD)
        message: bytes | None = scram.begin()
        while message is not None:
            response = client.ask(SaslAuthenticateRequest(message), 2)
            if response.error_code:
                raise RuntimeError(f"Error {response.error_code}: {response.error_message}")
            message = scram.answer(response.auth_bytes)
        client.metadata([])


def main() -> int:
    port, authority, seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    # The client's 4,096 rounds would be most of the time: they are computed once, as a client with many connections could.
    hashlib.pbkdf2_hmac = functools.cache(hashlib.pbkdf2_hmac)  # type: ignore[assignment]
    handshake(port, authority)
    count, started = 0, time.perf_counter()
    while time.perf_counter() < started + seconds:
        handshake(port, authority)
        count += 1
    print(json.dumps({"connections_s": count / (time.perf_counter() - started)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
