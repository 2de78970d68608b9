/** What a task was when it was measured: runs of different definitions are not compared. */
import { checksumOf } from './checksum.ts';
import type { Dataset, Task } from './dataset.ts';

/** Of all members of each task and its tools, by the name of the task. */
export function taskDigests(tasks: readonly Task[], { tools }: Pick<Dataset, 'tools'>): Map<string, string> {
  return new Map(
    tasks.map((task) => [
      task.name,
      checksumOf(JSON.stringify([task, task.tools.map((name) => tools.get(name) ?? name)])),
    ]),
  );
}
