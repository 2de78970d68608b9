import { existsSync } from 'node:fs';
import { EXIT } from '../command.ts';
import type { Command } from '../command.ts';
import { readCodeTools, rightsOf, TRUST_HELP, TRUST_OPTION } from '../project/code-tools.ts';
import { enterProject, PROJECT_ROOT } from '../project/folders.ts';
import { checkOwnManifests, projectFolders, summarise } from '../project/manifest-files.ts';

/** Folders and files of one call. */
const MOST_TARGETS = 1_000;

export const command: Command = {
  name: 'validate',
  summary: 'Checks manifests and reports each issue with file, line and column.',
  usage: '[<folder or file>]… [--trust]',
  help: `  <folder or file>  default: manifests/ and the folders of CORTEX_MANIFESTS\n${TRUST_HELP}`,
  example: 'cortex validate manifests/agents',
  positionals: [0, MOST_TARGETS],
  options: TRUST_OPTION,
  run: async (call) => {
    const { positionals, json, print, tell } = call;
    const given = enterProject(positionals);
    const targets = given.length === 0 ? projectFolders() : given;
    const code = readCodeTools(PROJECT_ROOT, rightsOf(call));
    const checked = targets.map((target) => {
      if (!existsSync(target)) {
        tell(`error    ${target}: no such file or folder`);
        const message = 'no such file or folder';
        return { target, loaded: 'nothing loaded', errors: [{ file: target, message }], warnings: [], skipped: [] };
      }
      const loaded = checkOwnManifests(target, code);
      const { problems: errors, warnings, skipped } = loaded;
      const counts = [counted(errors.length, 'error'), counted(warnings.length, 'warning')];
      if (skipped.length > 0) counts.push(`${counted(skipped.length, 'file')} skipped`);
      if (!json) print(`${target}: ${summarise(loaded)}, ${counts.join(', ')}`);
      return { target, loaded: summarise(loaded), errors, warnings, skipped };
    });
    const isValid = checked.every(({ errors }) => errors.length === 0);
    if (json) print(JSON.stringify({ valid: isValid, targets: checked }));
    return isValid ? EXIT.ok : EXIT.failed;
  },
};

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
