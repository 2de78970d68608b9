import { join } from 'node:path';
import { messageOf } from '../../src/domain/errors.ts';
import { EXIT, UsageError } from '../command.ts';
import type { Command } from '../command.ts';
import { textOption } from '../option-values.ts';
import { PACKAGE_ROOT } from '../project/folders.ts';
import { newProject, nextSteps } from '../project/new-project.ts';

export const command: Command = {
  name: 'init',
  summary: 'Makes a new project: an agent, a tool in TypeScript, and a test.',
  usage: '<folder> [--name <name>]',
  help: `  <folder>         a new or empty folder
  --name <name>    of the Worker; default: that of the folder`,
  example: 'cortex init my-agent',
  options: { name: { type: 'string' } },
  positionals: [1, 1],
  run: async (call) => {
    const [folder = ''] = call.positionals;
    const made = attempt(folder, textOption(call, 'name'));
    if (call.json) call.print(JSON.stringify(made));
    else call.print(`${made.name} is ready in ${made.folder}.\n\n${nextSteps(made.folder).join('\n')}`);
    return EXIT.ok;
  },
};

function attempt(folder: string, name: string | undefined): ReturnType<typeof newProject> {
  try {
    return newProject(join(PACKAGE_ROOT, 'template'), folder, name);
  } catch (fault) {
    throw new UsageError(messageOf(fault), { cause: fault });
  }
}
