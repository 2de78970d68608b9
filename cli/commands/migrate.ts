import { lstatSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { isatty } from 'node:tty';
import pc from 'picocolors';
import { EXIT, UsageError } from '../command.ts';
import type { Command } from '../command.ts';
import { textOption } from '../option-values.ts';
import { readCodeTools, rightsOf, TRUST_HELP, TRUST_OPTION } from '../project/code-tools.ts';
import { enterProject, PROJECT_ROOT } from '../project/folders.ts';
import { inPlaceOf, readFolder } from '../project/manifest-files.ts';
import { isWithin } from '../project/real-path.ts';
import { migrateFolder } from '../migration/migrate-folder.ts';
import { writeFolder } from '../migration/new-folder.ts';
import { renderReport } from '../migration/render.ts';
import { migrationReport } from '../migration/report.ts';

/** Longer lines are hard to read. */
const MOST_COLUMNS = 140;

export const command: Command = {
  name: 'migrate',
  summary: "Converts a folder of Cortex-MK1 or agent-lib-cpp into this system's form.",
  usage: '<folder> [--out <new folder>] [--trust]',
  help: `  <folder>            is only read; without --out, the report says what would change
  --out <new folder>  gets the converted manifests and the files that they name; must be empty or absent
${TRUST_HELP}`,
  example: 'cortex migrate old-project/manifests --out converted',
  options: { ...TRUST_OPTION, out: { type: 'string' } },
  positionals: [1, 1],
  run: async (call) => {
    const { positionals, json, print } = call;
    const out = textOption(call, 'out');
    const [written = '', target] = enterProject([...positionals, ...(out === undefined ? [] : [out])]);
    if (statSync(written, { throwIfNoEntry: false })?.isDirectory() !== true) {
      throw new UsageError(`${written}: no such folder`);
    }
    const folder = written.replace(/(?<=.)[/\\]+$/, '');
    if (target !== undefined) requireNew(target, folder);
    const old = { ...readFolder(folder), path: folder };
    const migration = migrateFolder(old, inPlaceOf(folder, readCodeTools(PROJECT_ROOT, rightsOf(call))));
    const report = {
      ...migrationReport(folder, old.files, migration),
      ...(target === undefined ? {} : { out: writeFolder(target, folder, migration) }),
    };
    const isTerminal = isatty(1);
    const text = json
      ? JSON.stringify(report, null, 2)
      : renderReport(report, {
          colors: pc.createColors(isTerminal && pc.isColorSupported),
          columns: isTerminal ? Math.min(process.stdout.columns, MOST_COLUMNS) : null,
        });
    print(text.replace(/\n$/, ''));
    return report.files.some(({ status }) => status === 'fails') ? EXIT.failed : EXIT.ok;
  },
};

/** The real path of a folder that may not exist yet. */
function realTarget(target: string): string {
  let known = resolve(target);
  while (lstatSync(known, { throwIfNoEntry: false }) === undefined) known = dirname(known);
  return join(realpathSync.native(known), relative(known, resolve(target)));
}

/** @throws UsageError for a folder that has files, or that the old folder would then contain */
function requireNew(target: string, folder: string): void {
  if (isWithin(realpathSync.native(folder), realTarget(target)))
    throw new UsageError(`--out ${target} is in the folder that is converted`);
  const known = statSync(target, { throwIfNoEntry: false });
  if (known?.isDirectory() === false) throw new UsageError(`--out ${target} is not a folder`);
  if (known !== undefined && readdirSync(target).length > 0) {
    throw new UsageError(`--out ${target} is not empty: nothing is replaced; name a new folder`);
  }
}
