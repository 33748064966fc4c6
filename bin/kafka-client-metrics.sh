#!/bin/sh
# `barnabas kafka-client-metrics`, which is `barnabas client-metrics` exactly as Apache Kafka has it: of this checkout where it is installed, else the one on the PATH.
here=$(cd "$(dirname "$0")/.." && pwd)
[ -x "$here/.venv/bin/barnabas" ] && PATH="$here/.venv/bin:$PATH"
exec barnabas kafka-client-metrics "$@"
