/** The report of `cortex migrate` as text for terminals. */
import { commandLine } from '../project/command-line.ts';
import type { Colors } from 'picocolors/types';
import { MANIFEST_KINDS } from '../../src/domain/catalog.ts';
import { harmless } from '../terminal/visible.ts';
import { UNCONVERTED } from './new-folder.ts';
import type { CountedKind, FileReport, MigrationReport, Note } from './report.ts';

export interface RenderOptions {
  readonly colors: Colors;
  /** Width of the terminal; null if lines are not wrapped. */
  readonly columns: number | null;
}

/** Failures come last, next to the summary. */
export function renderReport(report: MigrationReport, options: RenderOptions): string {
  const { colors } = options;
  const { files } = report;
  const out: string[] = [];
  const heading = (text: string): void => void out.push(colors.bold(text), '');
  const skipped = files.filter(({ status }) => status === 'skipped');
  const isText = ({ protocol }: FileReport): boolean => protocol !== null;
  const loads = files.filter((file) => file.status === 'loads' && !isText(file));
  const texts = files.filter((file) => file.status === 'loads' && isText(file));
  const fails = files.filter(({ status }) => status === 'fails');
  if (skipped.length > 0) {
    heading(`Skipped: ${counted(skipped.length, 'file')} without a manifest that this system uses`);
    const width = Math.max(...skipped.map(({ file }) => Math.min(file.length, 60)));
    for (const file of skipped) out.push(skippedLine(file, width, options));
    out.push('');
  }
  if (loads.length > 0) {
    heading(`Loads: ${counted(loads.length, 'file')}`);
    out.push(...loads.flatMap((file) => [...blockOf(file, options), '']));
  }
  if (texts.length > 0) {
    heading(`Protocol texts: ${counted(texts.length, 'file')}`);
    out.push(...texts.flatMap((file) => blockOf(file, options)), '');
  }
  if (fails.length > 0) {
    heading(colors.red(`Fails: ${counted(fails.length, 'file')}`));
    out.push(...fails.flatMap((file) => [...blockOf(file, options), '']));
  }
  out.push(...summaryOf(report, options), '', ...nextSteps(report, options));
  return `${out.join('\n')}\n`;
}

/** The file and the first reason; there is seldom another. */
function skippedLine(
  { file, manifests, notes, skipped }: FileReport,
  width: number,
  { colors }: RenderOptions,
): string {
  const [reason] = [...skipped, ...notes];
  const why = reason?.message.replace(/(; skipped|, so (it|the document) is skipped)(?=$| \()/, '') ?? '';
  const what = manifests.map(({ kind, name }) => `${kind} ${harmless(name)}: `).join('');
  return `${harmless(file).padEnd(width)}  ${colors.dim(harmless(`${what}${why}`))}`;
}

/** The file, what is in it, and its notes. */
function blockOf(file: FileReport, options: RenderOptions): string[] {
  const { colors } = options;
  const { manifests, protocol, errors, notes, skipped } = file;
  const name = (text: string): string => harmless(text) || 'without a name';
  const inside = manifests.map(({ kind, name: own, status }) => {
    const text = `${kind} ${name(own)}`;
    return status === 'loads' ? colors.green(text) : status === 'fails' ? colors.red(text) : colors.dim(text);
  });
  if (protocol !== null) {
    const counts = [counted(protocol.actions, 'action'), counted(protocol.responses, 'response')].join(', ');
    inside.push(colors.cyan(`${protocol.form === 'prompt' ? 'prompt with examples' : 'program'}: ${counts}`));
  }
  const lines = [`${colors.bold(harmless(file.file))}${inside.length > 0 ? `  ${inside.join(', ')}` : ''}`];
  const said = [
    ...errors.map((note) => ({ note, label: colors.red('error ') })),
    ...notes.map((note) => ({ note, label: colors.yellow('note  ') })),
    ...skipped.map((note) => ({ note, label: colors.dim('skip  ') })),
  ];
  const width = Math.max(0, ...said.map(({ note: { line } }) => String(line ?? '').length));
  for (const { note, label } of said) {
    const line = String(note.line ?? '').padStart(width);
    const indent = 2 + 'error '.length + width + 2;
    lines.push(`  ${label}${colors.dim(line)}  ${wrapped(textOf(note), indent, options.columns)}`);
  }
  return lines;
}

function textOf({ field, message, count }: Note): string {
  const times = count > 1 ? ` (${count} times)` : '';
  return harmless(`${field === '' ? '' : `${field}: `}${message}${times}`).replaceAll(/\s+/g, ' ');
}

/** Breaks a text at spaces; its further lines are indented. */
function wrapped(text: string, indent: number, columns: number | null): string {
  if (columns === null) return text;
  const width = Math.max(40, columns - indent);
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].join(`\n${' '.repeat(indent)}`);
}

const LABELS: Readonly<Record<CountedKind, string>> = {
  agent: 'agents',
  tool: 'tools',
  relic: 'relics',
  workflow: 'workflows',
  skill: 'skills',
  monument: 'monuments',
  protocol: 'protocol texts',
  other: 'other files',
};

function summaryOf({ folder, counts }: MigrationReport, { colors }: RenderOptions): string[] {
  const kinds = [...MANIFEST_KINDS, 'protocol', 'other'] as const;
  const rows = kinds.flatMap((kind) => {
    const row = counts[kind];
    if (row === undefined) return [];
    const cell = (count: number, color: (text: string) => string): string => {
      const text = (count === 0 ? '-' : String(count)).padStart(9);
      return count === 0 ? colors.dim(text) : color(text);
    };
    const cells = [cell(row.loads, colors.green), cell(row.fails, colors.red), cell(row.skipped, String)];
    return [`${LABELS[kind].padEnd(14)}${cells.join('')}`];
  });
  if (rows.length === 0) return [`${harmless(folder)} contains no manifests`];
  const head = `${harmless(folder)}`;
  return [colors.bold(head), colors.dim(`${''.padEnd(14)}    loads    fails  skipped`), ...rows];
}

function nextSteps({ folder, files, counts, out }: MigrationReport, { colors }: RenderOptions): string[] {
  const failing = files.filter(({ status }) => status === 'fails');
  const loads = MANIFEST_KINDS.reduce((sum, kind) => sum + (counts[kind]?.loads ?? 0), 0);
  const lines: string[] = [];
  if (failing.length > 0) {
    const isImport = ({ field }: Note): boolean => /^import\b/.test(field);
    const imports = failing.flatMap(({ errors }) => errors.filter(isImport));
    lines.push(`Correct ${failing.length === 1 ? 'the file that fails' : `the ${failing.length} files that fail`}:`);
    if (imports.length > 0) {
      lines.push(
        `  ${counted(imports.length, 'import')} of something that is not there: add its file, or remove the line`,
      );
    }
    lines.push('  docs/migration.md lists what is converted, and what to use instead', '');
  }
  if ((counts.protocol?.loads ?? 0) > 0 && files.some(({ protocol }) => protocol?.form === 'program')) {
    lines.push(
      `Programs run with ${colors.cyan(commandLine('plan', '<file>', '[agent]'))} (dry) and POST /execute/direct`,
      '',
    );
  }
  if (out === undefined) {
    if (loads === 0) return lines.slice(0, -1);
    const command = commandLine('migrate', shellWord(folder), '--out', '<new folder>');
    return [...lines, 'Nothing was written. Next:', `  ${colors.cyan(command)}`];
  }
  lines.push(`Wrote ${counted(out.files.length, 'file')} to ${harmless(out.folder)}.`);
  if (out.unconverted.length > 0) {
    lines.push(
      `What fails is in ${counted(out.unconverted.length, 'file')} that ${out.unconverted.length === 1 ? 'ends' : 'end'} in ${UNCONVERTED}: correct what the comments "# migrate:" say, and remove the ending.`,
    );
  }
  if (loads === 0) return lines;
  const target = shellWord(out.folder);
  lines.push(
    'The comments "# migrate:" in the new files say what was lost. Next:',
    `  ${colors.cyan(commandLine('validate', target))}`,
    `  ${colors.cyan(`CORTEX_MANIFESTS=${target} ${commandLine('dev')}`)}`,
    '                      starts the system with this folder; its manifests replace shipped ones',
    `  ${colors.cyan('POST /manifests')}     uploads files to a running system, which keeps its own manifests (docs/migration.md)`,
  );
  return lines;
}

function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
