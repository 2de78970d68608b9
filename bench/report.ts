/** Writes the table of one benchmark to docs/benchmarks.md; everything else on the page is written by hand. */
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';

const FILE = join(PACKAGE_ROOT, 'docs/benchmarks.md');
const TABLE = /(?:^\|.*\n?)+/gm;

/**
 * Writes the date, the machine and one table of the report between the marks of this section, or adds the section at the end.
 *
 * @param shown which table of the report
 * @throws RangeError the report has no such table
 */
export function writeSection(name: string, command: string, report: string, shown = 0): void {
  const found = report.match(TABLE)?.[shown];
  if (found === undefined) throw new RangeError(`the report of ${name} has no table ${shown}`);
  const begin = `<!-- ${name} -->`;
  const end = `<!-- /${name} -->`;
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? 'unknown CPU'}, Node ${process.version}`;
  const section = `${begin}\n${new Date().toISOString().slice(0, 10)} · ${machine}\n\n${found.trim()}\n${end}`;
  const before = readFileSync(FILE, 'utf8');
  const from = before.indexOf(begin);
  const to = before.indexOf(end);
  const after =
    from === -1 || to === -1
      ? `${before.trimEnd()}\n\n## ${name}\n\n\`${command}\`\n\n${section}\n`
      : `${before.slice(0, from)}${section}${before.slice(to + end.length)}`;
  writeFileSync(FILE, after);
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, index) => (index === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n');
}

/** The quantile of the samples for `share`. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}
