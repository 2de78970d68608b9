/**
 * Bytes and processor time for each character of an answer, in each protocol that a client can ask for: the events of one
 * real run, with its text cut again into patches of one size, encoded in turn.
 */
import { isTextPatch } from '../../src/domain/event.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import type { EventBatch } from '../../src/engine/session/broadcaster.ts';
import { CompactEncoder } from '../../src/http/compact-frames.ts';
import { sseFrame } from '../../src/http/sse.ts';
import { AiSdkFold } from '../../src/surfaces/ai-sdk/fold.ts';
import { ChatFold } from '../../src/surfaces/openai/chat-fold.ts';
import type { Fold, FoldedRun } from '../../src/surfaces/surface.ts';
import { percentile, table } from '../report.ts';

const SIZES = [2, 4, 20] as const;
/** Of a model that sends 50 tokens a second. */
const PATCH_MS = 20;
const ROUNDS = 15;
const ANSWERS = 100;

/** Encodes one answer from its first event to its end. */
type Encode = (batches: readonly EventBatch[]) => number;

const utf8 = new TextEncoder();

/** @param events of one run with a single response, from its first event on; @param answer its text */
export function wireTable(events: readonly SessionEvent[], answer: string): string {
  const first = events[0];
  if (first === undefined) throw new Error('the run has no events');
  const run: FoldedRun = {
    runId: first.run_id,
    sessionId: first.session_id,
    agent: 'bench',
    after: 0,
    clientTools: [],
    startedAt: 0,
    options: {},
  };
  const folded =
    (make: () => Fold): Encode =>
    (batches) => {
      const fold = make();
      let bytes = 0;
      for (const batch of batches) bytes += utf8.encode(batch.map((event) => fold.add(event)).join('')).byteLength;
      return bytes + utf8.encode(fold.end('stopped')).byteLength;
    };
  const forms: Readonly<Record<string, Encode>> = {
    'own events, full': (batches) =>
      batches.reduce((bytes, batch) => bytes + utf8.encode(batch.map(sseFrame).join('')).byteLength, 0),
    'own events, compact': (batches) => {
      const encoder = new CompactEncoder();
      return batches.reduce((bytes, batch) => bytes + encoder.encode(batch).byteLength, 0);
    },
    'AI SDK': folded(() => new AiSdkFold(run)),
    'chat completions': folded(() => new ChatFold(run)),
  };
  const rows = Object.entries(forms).map(([name]) => [name]);
  for (const size of SIZES) {
    const cpu = cpuOf(forms, () => recut(events, size));
    for (const [row, [name, encode]] of Object.entries(forms).entries()) {
      const perCharacter = encode(recut(events, size)) / answer.length;
      rows[row]?.push(perCharacter.toFixed(2), `${((cpu.get(name) ?? Number.NaN) / answer.length).toFixed(0)}`);
    }
  }
  const head = SIZES.flatMap((size) => [`bytes, ${size} characters a patch`, `ns, ${size}`]);
  return table(['protocol', ...head], rows);
}

/** Median nanoseconds of processor time for one answer. The forms take turns; each time with batches of its own. */
function cpuOf(forms: Readonly<Record<string, Encode>>, batches: () => readonly EventBatch[]): Map<string, number> {
  const samples = new Map<string, number[]>(Object.keys(forms).map((name) => [name, []]));
  for (let round = -3; round < ROUNDS; round += 1) {
    for (const [name, encode] of Object.entries(forms)) {
      const answers = Array.from({ length: ANSWERS }, batches);
      const before = process.cpuUsage();
      for (const one of answers) encode(one);
      const { user, system } = process.cpuUsage(before);
      if (round >= 0) samples.get(name)?.push(((user + system) * 1_000) / ANSWERS);
    }
  }
  return new Map([...samples].map(([name, all]) => [name, percentile(all, 0.5)]));
}

/** The journaled events, with patches of this size in place of those that came, each in a batch of its own. */
function recut(events: readonly SessionEvent[], size: number): EventBatch[] {
  const batches: EventBatch[] = [];
  for (const event of events) {
    if (isTextPatch(event)) continue;
    if (event.type === 'response_completed') {
      const { session_id, run_id, iteration, timestamp, data } = event;
      const head = { seq: null, type: 'response', session_id, run_id, iteration } as const;
      for (let at = 0; at < data.content.length; at += size) {
        const patch = { segment: data.segment, offset: at, delta: data.content.slice(at, at + size) };
        batches.push([{ ...head, timestamp: timestamp + (at / size) * PATCH_MS, data: patch }]);
      }
    }
    batches.push([{ ...event }]);
  }
  return batches;
}
