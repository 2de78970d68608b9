import type { Command } from '../command.ts';
import { enterProject } from '../project/folders.ts';

export const command: Command = {
  name: 'dev',
  summary: 'Runs the Worker and the runner on this machine until Ctrl-C.',
  usage: '[--open]',
  help: '  --open           opens the console in a browser',
  example: 'cortex dev --open',
  options: { open: { type: 'boolean' } },
  positionals: [0, 0],
  run: async (call) => {
    // Errors of a closed reader are ignored (`cortex dev | head`): this process must live to stop the services.
    for (const stream of [process.stdout, process.stderr])
      stream.removeAllListeners('error').on('error', () => undefined);
    enterProject();
    // Loads databases and supervision, which the help does not need.
    const { runDevelopment } = await import('../system/development.ts');
    return await runDevelopment(call);
  },
};
