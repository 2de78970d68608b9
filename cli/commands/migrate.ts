import { statSync } from 'node:fs';
import { isatty } from 'node:tty';
import pc from 'picocolors';
import { EXIT, UsageError } from '../command.ts';
import type { Command } from '../command.ts';
import { readCodeTools, rightsOf, TRUST_HELP, TRUST_OPTION } from '../project/code-tools.ts';
import { enterProject, PROJECT_ROOT } from '../project/folders.ts';
import { loadOwn, readManifestFiles } from '../project/manifest-files.ts';
import { renderReport } from '../migration/render.ts';
import { migrationReport } from '../migration/report.ts';

/** Longer lines are hard to read. */
const MOST_COLUMNS = 140;

export const command: Command = {
  name: 'migrate',
  summary: 'Reports what of a folder of Cortex-MK1 or agent-lib-cpp loads, and how. Changes nothing.',
  usage: '<folder> [--trust]',
  help: `  <folder>         counts as the project's own: its manifests may replace shipped ones\n${TRUST_HELP}`,
  example: 'cortex migrate old-project/manifests',
  options: TRUST_OPTION,
  positionals: [1, 1],
  run: async (call) => {
    const { positionals, json, print } = call;
    const [written = ''] = enterProject(positionals);
    if (statSync(written, { throwIfNoEntry: false })?.isDirectory() !== true) {
      throw new UsageError(`${written}: no such folder`);
    }
    const folder = written.replace(/(?<=.)[/\\]+$/, '');
    const report = migrationReport(
      folder,
      readManifestFiles(folder),
      loadOwn(folder, readCodeTools(PROJECT_ROOT, rightsOf(call))),
    );
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
