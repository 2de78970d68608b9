# Waits for one job as a tar archive on standard input, in an image that need not have anything, and is
# init to it: passes TERM on, and ends everything at the deadline should nobody else be there to.
# Called as `busybox sh -c … BUSYBOX`; the archive holds `start` (sets the words to run and the deadline) and `stdin`.
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
