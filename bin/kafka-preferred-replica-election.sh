#!/bin/sh
# Apache Kafka's name for `barnabas preferred-replica-election`: of this checkout where it is installed, else the one on the PATH.
here=$(cd "$(dirname "$0")/.." && pwd)
[ -x "$here/.venv/bin/barnabas" ] && PATH="$here/.venv/bin:$PATH"
exec barnabas preferred-replica-election "$@"
