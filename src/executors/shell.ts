/**
 * `type="shell"`: a command line in the runner's sandbox; values are passed as environment variables, never as text
 * (P14).
 */
import type { Executor } from './executor.ts';
import { wrongParameter } from './failure.ts';
import { recoverJob, runJob } from './runner/job.ts';

export const shellExecutor: Executor = {
  async execute(call, context) {
    const { command } = call.parameters;
    if (typeof command !== 'string' || command.trim() === '')
      return wrongParameter('command', 'a command line', command);
    return await runJob(call, context, {
      kind: 'shell',
      code: command,
      runtime: 'shell',
      inputs: call.inputs,
      ...context.runnerNeeds,
    });
  },
  recover: recoverJob,
};
