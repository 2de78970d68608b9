# Waits for one job as a tar archive on standard input, in an image that may have no programs, and acts as init:
# it forwards TERM, and kills everything at the deadline in case the runner is gone.
# Usage: `busybox sh -c … BUSYBOX`. The archive has `start` (sets the command and the deadline) and `stdin`.
busybox=$0
trap 'kill -TERM -1' TERM
cd /cortex && "$busybox" tar xf - 2>/dev/null || exit 0
. ./start
"$busybox" chmod 0555 . && cd /work || exit 126
("$busybox" sleep "$deadline" && kill -KILL -1) </dev/null >/dev/null 2>&1 &
"$@" </cortex/stdin &
job=$!
while :; do
  wait "$job"
  code=$?
  kill -0 "$job" 2>/dev/null || exit "$code"
done
