/**
 * Processes that outlive a killed runner (R1). Programs of the level `process` do, and so does a bubblewrap whose outer
 * process is killed while its inner one still waits for it: only after that wait, the inner one dies with the outer one.
 *
 * Every process that a runner starts in these ways carries a mark of the runner in its environment. The next runner on
 * the machine kills those whose runner is gone. It ignores the marks of other pid namespaces, whose pids it cannot judge.
 */
import fs from 'node:fs';

import { environments, signalAll, startOf } from './process-tree.ts';

const NAME = 'CORTEX_RUNNER';

/** The variable that marks processes of this runner; empty on systems other than Linux. */
export function ownerMark(): Readonly<Record<string, string>> {
  const start = startOf(process.pid);
  return start === null ? {} : { [NAME]: `${namespaceOfPids()}/${process.pid}/${start}` };
}

/** Kills the marked processes whose runner is gone. @returns their number */
export function killAbandoned(): number {
  const abandoned = environments().flatMap(({ pid, variables }) => {
    const mark = variables.find((variable) => variable.startsWith(`${NAME}=`));
    return mark !== undefined && isGone(mark.slice(NAME.length + 1)) ? [pid] : [];
  });
  signalAll(abandoned, 'SIGKILL');
  return abandoned.length;
}

function isGone(owner: string): boolean {
  const [namespace, pid, start] = owner.split('/');
  return namespace === namespaceOfPids() && startOf(Number(pid)) !== start;
}

function namespaceOfPids(): string {
  try {
    return fs.readlinkSync('/proc/self/ns/pid');
  } catch {
    return 'unknown';
  }
}
