/**
 * `npm run migrate -- <folder> [--json]`: reports what of a folder loads, and what was understood how, file by file. The
 * folder counts as a project's own: its manifests may replace shipped ones. Changes nothing.
 *
 * The exit code is 1 if a file fails.
 */
import { statSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { isatty } from 'node:tty';
import pc from 'picocolors';
import { loadOwn, readManifestFiles } from '../project/manifest-files.ts';
import { renderReport } from '../migration/render.ts';
import { migrationReport } from '../migration/report.ts';

const USAGE = 'npm run migrate -- <folder> [--json]';

function readArguments(): { readonly folder: string; readonly json: boolean } {
  try {
    const { values, positionals } = parseArgs({ allowPositionals: true, options: { json: { type: 'boolean' } } });
    const [folder, ...others] = positionals;
    if (folder === undefined || others.length > 0) throw new Error(`expected one folder, got ${positionals.length}`);
    if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true)
      throw new Error(`${folder}: no such folder`);
    return { folder: folder.replace(/(?<=.)[/\\]+$/, ''), json: values.json ?? false };
  } catch (fault) {
    console.error(`${fault instanceof Error ? fault.message : String(fault)}\nusage: ${USAGE}`);
    process.exit(2);
  }
}

const { folder, json } = readArguments();
const report = migrationReport(folder, readManifestFiles(folder), loadOwn(folder));
const isTerminal = isatty(1);
process.stdout.write(
  json
    ? `${JSON.stringify(report, null, 2)}\n`
    : renderReport(report, {
        colors: pc.createColors(isTerminal && pc.isColorSupported),
        columns: isTerminal ? Math.min(process.stdout.columns, 140) : null,
      }),
);
process.exitCode = report.files.some(({ status }) => status === 'fails') ? 1 : 0;
