/** Writes one benchmark's section of docs/benchmarks.md; the other sections stay unchanged. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';

const FILE = join(PACKAGE_ROOT, 'docs/benchmarks.md');
const INTRO = `# Benchmarks

Each section is written by the command at its top. The values are medians of one run on a shared machine: compare the
columns of a table with each other, not with values from another machine.
`;

/** Replaces the section of this name, or adds it at the end. */
export function writeSection(name: string, command: string, body: string): void {
  const begin = `<!-- ${name} -->`;
  const end = `<!-- /${name} -->`;
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? 'unknown CPU'}, Node ${process.version}`;
  const section = `${begin}\n## ${name}\n\n\`${command}\` · ${new Date().toISOString().slice(0, 10)} · ${machine}\n\n${body.trim()}\n${end}`;
  const before = existsSync(FILE) ? readFileSync(FILE, 'utf8') : INTRO;
  const from = before.indexOf(begin);
  const to = before.indexOf(end);
  const after =
    from === -1 || to === -1
      ? `${before.trimEnd()}\n\n${section}\n`
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
