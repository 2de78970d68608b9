import type { Command } from '../command.ts';
import { buildProject } from '../project/build.ts';
import { GENERATED } from '../project/folders.ts';
import { EXIT } from '../command.ts';

/** Folders of one call. */
const MOST_FOLDERS = 100;

export const command: Command = {
  name: 'build',
  summary: `Checks manifests and code tools, and writes them to ${GENERATED}.`,
  usage: '[<folder>]…',
  help: '  <folder>         further folders with manifests, next to manifests/ and those of CORTEX_MANIFESTS',
  example: 'cortex build',
  positionals: [0, MOST_FOLDERS],
  run: async ({ positionals, json, print, tell }) => {
    const code = await buildProject(positionals, json ? tell : print);
    if (json) print(JSON.stringify({ built: code === EXIT.ok, file: GENERATED }));
    return code;
  },
};
