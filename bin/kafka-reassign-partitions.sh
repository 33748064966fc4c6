#!/bin/sh
# `barnabas kafka-reassign-partitions`, which is `barnabas reassign-partitions` exactly as Apache Kafka has it: of this checkout where it is installed, else the one on the PATH.
here=$(cd "$(dirname "$0")/.." && pwd)
[ -x "$here/.venv/bin/barnabas" ] && PATH="$here/.venv/bin:$PATH"
exec barnabas kafka-reassign-partitions "$@"
