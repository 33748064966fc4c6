#!/bin/sh
# Apache Kafka's name for `barnabas get-offsets`: of this checkout where it is installed, else the one on the PATH.
here=$(cd "$(dirname "$0")/.." && pwd)
[ -x "$here/.venv/bin/barnabas" ] && PATH="$here/.venv/bin:$PATH"
exec barnabas get-offsets "$@"
