#!/bin/sh
# `barnabas kafka-verifiable-consumer`, which is `barnabas verifiable-consumer` exactly as Apache Kafka has it: of this checkout where it is installed, else the one on the PATH.
here=$(cd "$(dirname "$0")/.." && pwd)
[ -x "$here/.venv/bin/barnabas" ] && PATH="$here/.venv/bin:$PATH"
exec barnabas kafka-verifiable-consumer "$@"
