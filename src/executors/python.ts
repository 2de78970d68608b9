/** `type="python"`: code in the runner's sandbox; values are passed as the dict `inputs`, never as code (P14). */
import type { Executor } from './executor.ts';
import { wrongParameter } from './failure.ts';
import { recoverJob, runJob } from './runner/job.ts';

export const pythonExecutor: Executor = {
  async execute(call, context) {
    const code = call.parameters['code'] ?? call.parameters['script'];
    if (typeof code !== 'string' || code.trim() === '') return wrongParameter('code', 'Python source', code);
    return await runJob(call, context, {
      kind: 'python',
      code,
      runtime: 'python3',
      inputs: call.inputs,
      ...context.runnerNeeds,
    });
  },
  recover: recoverJob,
};
