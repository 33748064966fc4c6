"""Opens connections that say nothing, in a process of its own, and holds them until its standard input ends.

`python -m tests.fuzz.idle PORT COUNT` prints one line when all are open.
"""

from __future__ import annotations

import resource
import socket
import sys

from tests.fuzz.noise import API_VERSIONS

SPARE_FILES = 50
BACKLOG = 40  # a little less than socket.listen.backlog.size


def main(port: int, count: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(count + SPARE_FILES, min(hard, 2 * count)), hard))
    held: list[socket.socket] = []
    while len(held) < count:
        held.append(socket.create_connection(("127.0.0.1", port), 60))
        if len(held) % BACKLOG == 0:  # no faster than the broker accepts: the kernel drops what its backlog has no room for, for a second
            held[-1].sendall(API_VERSIONS)
            held[-1].recv(65536)
    print(f"open {len(held)}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
