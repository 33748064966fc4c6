#!/bin/sh
# Apache Kafka's name for `barnabas server`: of this checkout where it is installed, else the one on the PATH.
# Where it runs is noted in $LOG_DIR/kafka-server.pids (LOG_DIR: the checkout's logs/), for kafka-server-stop.sh.
here=$(cd "$(dirname "$0")/.." && pwd)
[ -x "$here/.venv/bin/barnabas" ] && PATH="$here/.venv/bin:$PATH"

daemon=
while [ $# -gt 0 ]; do
  case $1 in
    -daemon) daemon=1; shift ;;
    -loggc) shift ;;  # of the JVM: accepted, and there is nothing to log
    -name) shift; [ $# -gt 0 ] && shift ;;
    *) break ;;
  esac
done
if [ $# -lt 1 ]; then
  echo "USAGE: $0 [-daemon] server.properties [--override property=value]*" >&2
  exit 1
fi

LOG_DIR=${LOG_DIR:-$here/logs}
mkdir -p "$LOG_DIR" || exit 1
properties=$(cd "$(dirname "$1")" 2>/dev/null && pwd)/$(basename "$1")
if [ -n "$daemon" ]; then
  nohup barnabas server "$@" >"$LOG_DIR/kafkaServer.out" 2>&1 </dev/null &
  echo "$! $properties" >>"$LOG_DIR/kafka-server.pids"
else
  echo "$$ $properties" >>"$LOG_DIR/kafka-server.pids"
  exec barnabas server "$@"
fi
