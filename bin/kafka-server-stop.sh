#!/bin/sh
# Stops the brokers that kafka-server-start.sh started, cleanly: all of them, or the one with --node-id=N.
# They are found by $LOG_DIR/kafka-server.pids. SIGNAL chooses another signal than TERM. --process-role=broker is accepted: all are brokers.
here=$(cd "$(dirname "$0")/.." && pwd)
pids=${LOG_DIR:-$here/logs}/kafka-server.pids

node_id=
while [ $# -gt 0 ]; do
  case $1 in
    --node-id=*) node_id=${1#*=} ;;
    --node-id) node_id=$2; [ $# -gt 1 ] && shift ;;
    --process-role=controller) echo "No controller to stop: every node is a broker" >&2; exit 1 ;;
    --process-role=*) ;;
    --process-role) [ $# -gt 1 ] && shift ;;
    *) echo "USAGE: $0 [--process-role=broker] [--node-id=N]" >&2; exit 1 ;;
  esac
  shift
done

# A number in the file may have been given to another process since.
is_broker() {
  { tr '\0' ' ' <"/proc/$1/cmdline" || ps -o args= -p "$1"; } 2>/dev/null | grep -q 'barnabas server '
}

is_wanted() {
  [ -z "$node_id" ] || grep -Eq "^[[:space:]]*(node|broker)\.id[[:space:]]*[=:][[:space:]]*$node_id[[:space:]]*$" "$1" 2>/dev/null
}

stopped=
if [ -f "$pids" ]; then
  others=
  while read -r pid properties; do
    is_broker "$pid" || continue
    if is_wanted "$properties" && kill -s "${SIGNAL:-TERM}" "$pid"; then
      stopped=1
    fi
    others="$others$pid $properties
"
  done <"$pids"
  printf %s "$others" >"$pids"  # those that still ran: the next call drops the ones that have ended
fi
if [ -z "$stopped" ]; then
  echo "No kafka server to stop"
  exit 1
fi
