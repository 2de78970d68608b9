/**
 * CONTRIBUTING.md lists the files of each kind of change. One of each kind is added to a copy of this repository, in these files
 * only: it compiles, is used, and the tests of the product pass with it. What is left out does not compile.
 */
import { execFile, execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';

const copy = mkdtempSync(join(tmpdir(), 'cortex-additions-'));

/** A text that is inserted into a file, before the text `at`. */
type Insertion = readonly [file: string, at: string, text: string];

/** By the headings of CONTRIBUTING.md. */
const ADDITIONS: Readonly<Record<string, readonly Insertion[]>> = {
  'Add an event': [
    [
      'src/domain/event-table.ts',
      '  agent_started: event(',
      `sample_taken: event('run', PLAIN, 'A sample was taken', { sample: label('Its name'), shows: note('What it shows') }),`,
    ],
    ['src/view/reduce.ts', "    case 'run_branched':", "    case 'sample_taken':"],
  ],
  'Add an internal action': [
    [
      'src/domain/internal-actions.ts',
      '  clear_context: {',
      `take_sample: { parameters: { key: 'name' }, further: {}, prompt: '{key}', needs: { what: 'earlier_turns', also: false }, forgetsResults: false, hiddenFromViews: true },`,
    ],
    [
      'src/executors/internal.ts',
      `      case 'clear_context': {`,
      `case 'take_sample': return { ok: true, output: { key: key ?? null } };`,
    ],
  ],
  'Add a route': [
    [
      'src/http/operations.ts',
      `  'GET /agent/session/:id/state':`,
      `'GET /agent/session/:id/state/events': { scopes: ['read'], summary: 'Get a sample' },`,
    ],
    [
      'src/http/routes/session-reading.ts',
      `sessionOperation(sessionReading, 'GET /agent/session/:id/export'`,
      `sessionOperation(sessionReading, 'GET /agent/session/:id/state/events', { response: sessionsAnswers.sample }, (c) => c.json({ sample: c.env.session.record.session_id }));`,
    ],
    [
      'src/http/responses/sessions.ts',
      'export const session ',
      `export const sample = z.object({ sample: z.string().describe('The sample') }).describe('A sample');`,
    ],
  ],
  'Add a setting of the Worker': [
    [
      'src/settings/setting-table.ts',
      '  RATE_LIMIT: {',
      `SAMPLE_SIZE: { default: 'none', meaning: 'size of a sample' },`,
    ],
    ['src/settings/settings.ts', '  readonly model: ModelConfig;', 'readonly sampleSize: string | null;'],
    ['src/settings/settings.ts', '    model: {', 'sampleSize: env.SAMPLE_SIZE ?? null,'],
  ],
};

/** What was added is used. */
const USE = `
import { expect, test } from 'vitest';
import type { SessionEvent } from '../src/domain/event.ts';
import { createRedaction } from '../src/bounded/redaction.ts';
import { internalExecutor } from '../src/executors/internal.ts';
import { outgoingEntry } from '../src/engine/run/outgoing-events.ts';
import { VIEW } from '../src/http/view.ts';
import { readSettings } from '../src/settings/settings.ts';
import { eventIssue } from './support/event-check.ts';
import { sessionApi } from './http/session-api.ts';

const event: SessionEvent = { seq: 1, type: 'sample_taken', session_id: 's', run_id: 'r', iteration: 0, timestamp: 1, data: { sample: 'a', shows: 'b' } };

test('the event is checked and shown', () => {
  expect(eventIssue(event)).toBeNull();
  expect(VIEW.event(event)).toEqual(event);
});
test('the route answers', async () => {
  const api = await sessionApi();
  expect(await api.get('/state/events')).toEqual({ sample: api.kit.session.record.session_id });
});
test('the setting is read', () => {
  expect(readSettings({ SAMPLE_SIZE: '3' }).sampleSize).toBe('3');
});
`;

function insert([file, at, text]: Insertion): void {
  const path = join(copy, file);
  const whole = readFileSync(path, 'utf8');
  expect(whole.split(`\n${at}`).length, `${file}: ${at}`).toBe(2);
  writeFileSync(
    path,
    whole.replace(`\n${at}`, () => `\n${text}\n${at}`),
  );
}

/** @returns what it prints. @throws Error with everything that it has printed */
async function run([program = '', ...args]: readonly string[], folder = '.'): Promise<string> {
  const { status, output } = await new Promise<{ status: number | null; output: string }>((resolve) => {
    execFile(program, args, { cwd: join(copy, folder), maxBuffer: 100_000_000 }, (fault, stdout, stderr) =>
      resolve({ status: fault === null ? 0 : 1, output: `${stdout}${stderr}` }),
    );
  });
  if (status !== 0) throw new Error(output.slice(-6_000));
  return output;
}

const compiles = async (): Promise<string> => await run(['tsc', '-p', 'tsconfig.core.json', '--noEmit']);

beforeAll(() => {
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: PACKAGE_ROOT,
    encoding: 'utf8',
  }).split('\0');
  expect(files.length).toBeGreaterThan(1_000);
  for (const file of files.filter(Boolean)) cpSync(join(PACKAGE_ROOT, file), join(copy, file));
  symlinkSync(join(PACKAGE_ROOT, 'node_modules'), join(copy, 'node_modules'));
});
afterAll(() => rmSync(copy, { recursive: true, force: true }));

describe('one of each kind', () => {
  const page = readFileSync(join(PACKAGE_ROOT, 'CONTRIBUTING.md'), 'utf8');

  test.each(Object.entries(ADDITIONS))('%s: CONTRIBUTING.md names the files', (heading, insertions) => {
    const [, section = ''] = page.split(`\n## ${heading}\n`);
    const [text = ''] = section.split('\n## ');
    // Of a table with a file for each group of routes, the group does not matter.
    const named = insertions.map(([file]) => [file, file.replace(/[^/]+\.ts$/, '<group>.ts')]);
    expect(named.filter((names) => !names.some((name) => text.includes(`\`${name}\``)))).toEqual([]);
  });

  test.each([
    [
      'an event with a text that is not marked',
      'src/domain/event-table.ts',
      '  agent_started: event(',
      `bad: event('run', PLAIN, 'd', { said: z.string() }),`,
    ],
    [
      'an event that the view of a run does not know',
      'src/domain/event-table.ts',
      '  agent_started: event(',
      `bad: event('run', PLAIN, 'd', { said: note('What it says') }),`,
    ],
    [
      'an internal action without a case',
      'src/domain/internal-actions.ts',
      '  clear_context: {',
      `bad: { parameters: {}, further: {}, prompt: '', needs: null, forgetsResults: false, hiddenFromViews: false },`,
    ],
    [
      'an internal action that does not say whether views hide it',
      'src/domain/internal-actions.ts',
      '  clear_context: {',
      `bad: { parameters: {}, further: {}, prompt: '', needs: null, forgetsResults: false },`,
    ],
  ])('%s does not compile', async (_what, file, at, text) => {
    const path = join(copy, file);
    const before = readFileSync(path, 'utf8');
    insert([file, at, text]);
    await expect(compiles()).rejects.toThrow('error TS');
    writeFileSync(path, before);
  });

  test('with all of them the tests of the product pass', { timeout: 1_800_000 }, async () => {
    for (const insertion of Object.values(ADDITIONS).flat()) insert(insertion);
    writeFileSync(join(copy, 'test/additions.test.ts'), USE);
    for (const folder of ['.', 'examples/code-tools']) await run(['node', join(copy, 'cli/main.ts'), 'build'], folder);
    for (const script of ['event-tables', 'manifest-schemas']) await run(['node', `scripts/${script}.ts`]);
    await compiles();
    await run(['vitest', 'run', '--project', 'node', '--project', 'simulation']);
  });
});
