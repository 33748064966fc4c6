#!/bin/sh
# Runs the tool that a Java class of Apache Kafka is: `barnabas run-class`, of this checkout where it is installed, else the one on the PATH.
here=$(cd "$(dirname "$0")/.." && pwd)
[ -x "$here/.venv/bin/barnabas" ] && PATH="$here/.venv/bin:$PATH"
exec barnabas kafka-run-class "$@"
