import { appendFileSync, existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { exportAll } from '../../cli/export/export-all.ts';
import { folderOfFile, serverOfFile } from './scene.ts';

const session = (digit: number): string => `ses_${String(digit).repeat(32)}`;
const run = (digit: number, number: number, status = 'completed', at = number) => ({
  execution_id: `run_${String(digit).repeat(32)}_${number}`,
  session_id: session(digit),
  agent: 'assistant',
  status,
  started_at: at,
  ended_at: status === 'running' ? null : at + 1,
});
const lines = (id: string): string =>
  `{"session":{"session_id":"${id}"}}\n{"seq":1}\n{"variables":{"a":"${'x'.repeat(99)}"}}\n`;

/** A system with one key: the runs of two pages, and what its sessions answer. */
let runs: ReturnType<typeof run>[] = [];
let asked: string[] = [];
const answers = new Map<string, (response: ServerResponse) => void>();
const server = serverOfFile(({ url = '', headers }, response) => {
  asked.push(url);
  const json = (value: unknown): void =>
    void response.setHeader('content-type', 'application/json').end(JSON.stringify(value));
  if (headers.authorization !== 'Bearer key') return void response.writeHead(401).end('no');
  const { pathname, searchParams } = new URL(url, 'http://x');
  const [, id = ''] = /^\/agent\/session\/(\w+)\/export$/.exec(pathname) ?? [];
  if (pathname === '/manifests') {
    return json({
      manifests: [
        { kind: 'agent', name: 'mine', common: false },
        { kind: 'tool', name: 'echo', common: true },
      ],
    });
  }
  if (pathname === '/manifests/agent/mine') return json({ name: 'mine', source: 'kind: Agent' });
  if (pathname === '/executions') {
    const from = Number(searchParams.get('before') ?? 0);
    return json({ executions: runs.slice(from, from + 2), next: from + 2 < runs.length ? String(from + 2) : null });
  }
  const special = answers.get(id);
  if (special !== undefined) return special(response);
  response.end(lines(id));
});

const folder = folderOfFile();
const waits: number[] = [];
const exported = (out: string) =>
  exportAll(
    { url: server.url, key: 'key' },
    { folder: join(folder, out), wait: async (ms) => void waits.push(ms), report: () => {} },
  );
const sessions = (out: string): string[] => readdirSync(join(folder, out, 'sessions')).toSorted();

beforeEach(() => {
  runs = [run(1, 3), run(2, 1), run(1, 2), run(3, 1), run(1, 1)];
  asked = [];
  waits.length = 0;
  answers.clear();
});

test('[H1] an export has each session of all pages once, and the own manifests', async () => {
  expect(await exported('a')).toEqual({ saved: 3, unchanged: 0, gone: 0, failed: [], manifests: 1 });
  expect(sessions('a')).toEqual([1, 2, 3].map((digit) => `${session(digit)}.jsonl`));
  expect(readFileSync(join(folder, 'a/sessions', `${session(2)}.jsonl`), 'utf8')).toBe(lines(session(2)));
  expect(JSON.parse(readFileSync(join(folder, 'a/manifests.jsonl'), 'utf8'))).toMatchObject({ source: 'kind: Agent' });
  const index = readFileSync(join(folder, 'a/sessions.jsonl'), 'utf8').trim().split('\n');
  expect(index.map((line) => (JSON.parse(line) as { session_id: string }).session_id)).toEqual([1, 2, 3].map(session));
});

test('[H1] a second export reads only sessions with new or running runs', async () => {
  runs = [run(1, 1), run(2, 1, 'running')];
  await exported('b');
  runs = [run(3, 1), run(1, 2), run(2, 1, 'running'), run(1, 1)];
  asked = [];
  expect(await exported('b')).toMatchObject({ saved: 3, unchanged: 0 });
  runs = [run(3, 1), run(1, 2), run(2, 1)];
  asked = [];
  expect(await exported('b')).toMatchObject({ saved: 1, unchanged: 2 });
  expect(asked.filter((url) => url.endsWith('/export'))).toEqual([`/agent/session/${session(2)}/export`]);
});

test('[H1] an interrupted export continues, and a cut line of its index is ignored', async () => {
  runs = [run(1, 1), run(2, 1)];
  answers.set(session(2), (response) => void response.writeHead(400).end('{"code":"broken"}'));
  const first = await exported('c');
  expect(first).toMatchObject({ saved: 1, failed: [{ id: session(2), reason: 'HTTP 400: {"code":"broken"}' }] });
  appendFileSync(join(folder, 'c/sessions.jsonl'), '{"session_id":"ses_');
  answers.clear();
  expect(await exported('c')).toMatchObject({ saved: 1, unchanged: 1, failed: [] });
  expect(await exported('c')).toMatchObject({ saved: 0, unchanged: 2 });
});

test('[H1] a busy system is asked again after its Retry-After; a deleted session is counted', async () => {
  let busy = 2;
  answers.set(session(1), (response) => {
    if (busy > 0) response.writeHead(429, { 'retry-after': '7' }).end('busy');
    else response.end(lines(session(1)));
    busy -= 1;
  });
  answers.set(session(2), (response) => void response.writeHead(404).end('{}'));
  runs = [run(1, 1), run(2, 1)];
  expect(await exported('d')).toMatchObject({ saved: 1, gone: 1, failed: [] });
  expect(waits).toEqual([7_000, 7_000]);
});

test.each(['sessions.jsonl', `sessions/${session(1)}.jsonl.part`, 'manifests.jsonl.part'])(
  '[H1] an export does not follow a link in place of %s',
  async (file) => {
    const kept = join(folder, 'kept');
    writeFileSync(kept, 'kept');
    const name = `links-${file.length}`;
    mkdirSync(join(folder, name, 'sessions'), { recursive: true });
    symlinkSync(kept, join(folder, name, file));
    runs = [run(1, 1)];
    const result = await exported(name).catch((fault: unknown) => String(fault));
    expect(result).toEqual(
      file === 'sessions.jsonl' ? expect.stringContaining('ELOOP') : expect.objectContaining({ saved: 1 }),
    );
    expect(readFileSync(kept, 'utf8')).toBe('kept');
  },
);

test.each([
  ['without its last line', (response: ServerResponse) => void response.end('{"session":{}}\n{"seq":1}\n')],
  ['cut in its last line', (response: ServerResponse) => void response.end('{"session":{}}\n{"variables":{"a')],
  ['empty', (response: ServerResponse) => void response.end()],
])('[H1] an export that is %s is not saved', async (_title, answer) => {
  runs = [run(9, 1)];
  answers.set(session(9), answer);
  const result = await exported('e');
  expect(result).toMatchObject({
    saved: 0,
    failed: [{ reason: expect.stringContaining('ended before its last line') }],
  });
  expect(existsSync(join(folder, 'e/sessions', `${session(9)}.jsonl`))).toBe(false);
  expect(sessions('e')).toEqual([]);
});

test('[H1] the last line is recognised in any pieces', async () => {
  runs = [run(8, 1)];
  const text = lines(session(8));
  for (const size of [1, 3, 13, 40, 41, 42, 43]) {
    answers.set(session(8), (response) => {
      for (let at = 0; at < text.length; at += size) response.write(text.slice(at, at + size));
      response.end();
    });
    expect([size, await exported(`f${size}`)]).toMatchObject([size, { saved: 1 }]);
  }
});

test('[H5] a wrong key ends the export', async () => {
  const wrong = { url: server.url, key: 'wrong' };
  await expect(exportAll(wrong, { folder: join(folder, 'g'), wait: async () => {}, report: () => {} })).rejects.toThrow(
    'HTTP 401',
  );
});
