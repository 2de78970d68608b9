import { UsageError } from '../command.ts';
import type { Command } from '../command.ts';
import { isSet } from '../option-values.ts';
import { enterProject } from '../project/folders.ts';

export const command: Command = {
  name: 'dev',
  summary: 'Runs the Worker and the runner on this machine until Ctrl-C.',
  usage: '[--open] [--inspect]',
  help:
    '  --open           opens the console in a browser\n' +
    '  --inspect        opens the V8 inspector of the Worker and prints its secret address; it can read all secrets',
  example: 'cortex dev --open',
  options: { open: { type: 'boolean' }, inspect: { type: 'boolean' } },
  positionals: [0, 0],
  run: async (call) => {
    // Errors of a closed reader are ignored (`cortex dev | head`): this process must live to stop the services.
    for (const stream of [process.stdout, process.stderr])
      stream.removeAllListeners('error').on('error', () => undefined);
    if (isSet(call, 'inspect') && process.platform !== 'linux') {
      throw new UsageError('--inspect needs Linux: elsewhere the inspector would be open to web pages');
    }
    enterProject();
    // Loads databases and supervision, which the help does not need.
    const { runDevelopment } = await import('../system/development.ts');
    return await runDevelopment(call);
  },
};
