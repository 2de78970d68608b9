/** Runs one peer in a separate process: receives tasks as messages, answers each with its duration. */
import type { RunTask, Task } from './tools.ts';
import { Tools } from './tools.ts';

const name = process.argv[2] ?? '';
const { runTask } = (await import(`./${name}.ts`)) as { runTask: RunTask };

process.on('message', (task: Task) => {
  void answer(task).then((result) => process.send?.(result));
});
process.on('disconnect', () => process.exit(0));

async function answer(task: Task): Promise<object> {
  const tools = new Tools(task.slots);
  const startedAt = performance.now();
  try {
    const text = await runTask(task, tools);
    return { ms: performance.now() - startedAt, toolCalls: tools.calls, answer: text };
  } catch (fault) {
    return { error: `${name}: ${String((fault as Error).stack ?? fault)}` };
  }
}
