/**
 * `npm run bench:surfaces`: what a client of each protocol gets: bytes for each character of the answer, and the time to
 * the first byte, to the first character and to the end. The same scripted model writes the same answer for this system
 * and for the AI SDK's own server.
 *
 * A second table has the bytes and the processor time of each form for patches of one size.
 *
 * BENCH_ROWS=<part of a name> measures only those rows beside the AI SDK's, and writes nothing; BENCH_ROWS=wire only the
 * second table.
 */
import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';
import { tokensOf } from './makespan/generation.ts';
import { promptOf, startModelServer } from './makespan/model-server.ts';
import { agentFor, startStagedSystem } from './makespan/staged-system.ts';
import { percentile, table, writeSection } from './report.ts';
import { sseReader } from '../src/client/sse-reader.ts';
import type { SessionEvent } from '../src/domain/event.ts';
import { contestants } from './surfaces/contestants.ts';
import type { Contestant } from './surfaces/contestants.ts';
import { wireTable } from './surfaces/wire.ts';

/** Occurs nowhere else: the first character of the answer has arrived when this has. */
const MARK = 'Zephyr';
const ANSWER = `${MARK} ${'carries the answer of the benchmark, word by word, to every client that reads it. '.repeat(8)}`;
const PACES = [50, 300, 5_000] as const;
const FIRST_TOKEN_MS = 100;
const REPEATS = 7;

await using model = await startModelServer();
await using system = await startStagedSystem({ LLM_BASE_URL: model.baseUrl, LLM_MODEL: 'scripted' });
const server = fork(join(PACKAGE_ROOT, 'bench/surfaces/ai-sdk-server.ts'), [model.baseUrl]);
const only = process.env['BENCH_ROWS'] ?? '';
let runs = 0;

try {
  const port = await new Promise<number>((resolve) => server.once('message', (value) => resolve(Number(value))));
  const { version } = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'node_modules/ai/package.json'), 'utf8')) as {
    version: string;
  };
  const all = contestants(system, agentFor(8), `http://127.0.0.1:${port}`, version, model.baseUrl).filter(
    ({ name }) => name.includes(only) || name.startsWith('AI SDK'),
  );
  const sections: string[] = [
    `### Bytes and processor time\n\nOf the same answer, with its text in patches of one size, 20 ms apart, each encoded alone; from the first event of the run to its end. Bytes and nanoseconds of processor time are for each character of the answer.\n\n${await measureWire()}`,
  ];
  for (const tokensPerSecond of only === 'wire' ? [] : PACES) {
    console.error(`${tokensPerSecond} tokens a second`);
    sections.push(await measure(all, tokensPerSecond));
  }
  const text = [
    `An answer of ${ANSWER.length} characters in ${tokensOf(ANSWER).length} tokens, without actions; the model begins after ${FIRST_TOKEN_MS} ms. Medians of ${REPEATS} answers, in turn. Times are milliseconds from the request; in brackets, the ratio to the AI SDK's own server. The first token of our answers is that of a tag, so the first character is some tokens later in the model's text.`,
    ...sections,
  ].join('\n\n');
  if (only === '') writeSection('Surfaces', 'npm run bench:surfaces', text, 2);
  console.log(text);
} finally {
  server.kill();
}

/** The table of a real run's events, in every form. */
async function measureWire(): Promise<string> {
  const own = contestants(system, agentFor(8), '', '', model.baseUrl).find(({ name }) =>
    name.endsWith('own events, full'),
  );
  if (own === undefined) throw new Error('no contestant has our own events');
  const response = await own.ask(prepared(own, PACES[2]), runs, PACES[2]);
  const events = sseReader()(await response.text()).map((data) => {
    const { event_type: _second, ...event } = JSON.parse(data) as SessionEvent & { readonly event_type?: string };
    return event as SessionEvent;
  });
  return wireTable(events, ANSWER);
}

/** Registers the answer with the model. @returns the prompt for it */
function prepared({ text }: Contestant, tokensPerSecond: number): string {
  runs += 1;
  const name = `surface${runs}`;
  const pieces =
    text === 'bare'
      ? tokensOf(ANSWER)
      : [...tokensOf('<response final="true">'), ...tokensOf(ANSWER), ...tokensOf('</response>')];
  model.register(name, {
    pace: { firstTokenMs: FIRST_TOKEN_MS, tokensPerSecond },
    next: () => ({ segments: [{ type: 'text', pieces, closes: null }] }),
  });
  return promptOf(name);
}

interface Sample {
  readonly firstByteMs: number;
  readonly firstCharacterMs: number;
  readonly endMs: number;
  readonly bytes: number;
}

async function measure(all: readonly Contestant[], tokensPerSecond: number): Promise<string> {
  const samples = new Map<Contestant, Sample[]>(all.map((one) => [one, []]));
  for (let repeat = -1; repeat < REPEATS; repeat += 1) {
    for (const one of all) {
      const sample = await ask(one, tokensPerSecond);
      if (repeat >= 0) samples.get(one)?.push(sample);
    }
  }
  const medianOf = (one: Contestant | undefined, of: (sample: Sample) => number): number =>
    percentile((one === undefined ? [] : (samples.get(one) ?? [])).map(of), 0.5);
  const peer = all.find(({ name }) => name.startsWith('AI SDK'));
  const cell = (one: Contestant, of: (sample: Sample) => number, digits: number): string => {
    const value = medianOf(one, of);
    return `${value.toFixed(digits)} (${(value / medianOf(peer, of)).toFixed(2)})`;
  };
  const rows = all.map((one) => [
    one.name,
    cell(one, ({ bytes }) => bytes / ANSWER.length, 1),
    cell(one, ({ firstByteMs }) => firstByteMs, 0),
    cell(one, ({ firstCharacterMs }) => firstCharacterMs, 0),
    cell(one, ({ endMs }) => endMs, 0),
  ]);
  const head = ['server and protocol', 'bytes per character', 'first byte', 'first character', 'end'];
  return `### ${tokensPerSecond} tokens a second\n\n${table(head, rows)}`;
}

async function ask(one: Contestant, tokensPerSecond: number): Promise<Sample> {
  const prompt = prepared(one, tokensPerSecond);
  const startedAt = performance.now();
  const since = (): number => performance.now() - startedAt;
  const response = await one.ask(prompt, runs, tokensPerSecond);
  let firstByteMs = Number.NaN;
  let firstCharacterMs = Number.NaN;
  let bytes = 0;
  let all = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    if (bytes === 0) firstByteMs = since();
    bytes += chunk.byteLength;
    all += decoder.decode(chunk, { stream: true });
    if (Number.isNaN(firstCharacterMs) && all.includes(MARK.slice(0, 1))) firstCharacterMs = since();
  }
  const endMs = since();
  if (!response.ok || !all.includes(' reads') || /"error":\{|RUN_ERROR/.test(all))
    throw new Error(`no answer: ${response.status} ${all.slice(0, 300)}`);
  return { firstByteMs, firstCharacterMs, endMs, bytes };
}
