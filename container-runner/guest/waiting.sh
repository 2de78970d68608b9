# Waits for one job as a tar archive on standard input, in an image that may have no programs, and acts as init:
# it forwards TERM, and kills everything at the deadline in case the runner is gone.
# Usage: `busybox sh -c … BUSYBOX`. The archive has `cortex/start` (sets the command, its directory, the deadline, the
# read-only folders and, with a workspace, the marker), `cortex/stdin`, and the files of the workspace. With a workspace,
# the marker and an archive of the workspace follow the program's output.
busybox=$0
marker=
trap 'kill -TERM -1' TERM
cd / && "$busybox" tar xf - 2>/dev/null || exit 0
. /cortex/start
"$busybox" rm -f /cortex/start
"$busybox" chmod 0555 $folders && cd "$directory" || exit 126
("$busybox" sleep "$deadline" && kill -KILL -1) </dev/null >/dev/null 2>&1 &
"$@" </cortex/stdin &
job=$!
while :; do
  wait "$job"
  code=$?
  kill -0 "$job" 2>/dev/null || break
done
[ -n "$marker" ] || exit "$code"
# an applet in between reaps the processes that were killed
while kill -KILL -1 2>/dev/null; do "$busybox" true; done
exec 2>/dev/null
printf '\0%s' "$marker"
"$busybox" chmod -R u+rwX /workspace && cd /workspace &&
  # every name of a file is a file
  "$busybox" find . -type f -links +1 -exec "$busybox" sh -c \
    '"$0" cp -p "$1" "$2" && "$0" mv -f "$2" "$1" || "$0" rm -f "$2"' "$busybox" {} "/workspace/.$marker" \; &&
  "$busybox" tar cf - . &&
  printf complete
exit "$code"
