/** Stored histories: the files of histories/, and those that `npm run test:simulation` writes. */
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import {
  ATTEMPT_ENDS,
  BRANCHES,
  CALL_FORMS,
  CALL_REPEATS,
  CUT_CAUSES,
  FILE_FORMS,
  PROTOCOLS,
  STATEMENT_NAMES,
  TARGETS,
} from './history.ts';
import type { History } from './history.ts';
import { USUAL } from './usual.ts';

/** What a file may leave out: usual values, and lists without members. */
const LEFT_OUT: ReadonlyMap<string, unknown> = new Map([
  ...USUAL,
  ...['files', 'decisions', 'requests', 'faults', 'seeded'].map((name) => [name, []] as const),
]);

/** A part of a history, whose members with a usual value have it by default. */
function part<Shape extends z.ZodRawShape>(shape: Shape): z.ZodObject<Shape, z.core.$strict> {
  const members = Object.entries(shape).map(([name, schema]) => {
    return [name, LEFT_OUT.has(name) ? (schema as z.ZodType).default(() => LEFT_OUT.get(name)) : schema];
  });
  return z.strictObject(Object.fromEntries(members) as Shape);
}

const count = z.int().min(0);
const places = z.array(z.int());
const share = z.number().min(0).max(1);
const position = z.int().min(1);

const attempt = part({ ms: count, end: z.enum(ATTEMPT_ENDS) });

const action = part({
  target: z.enum(TARGETS),
  mode: z.enum(['sync', 'async', 'fire_and_forget']),
  dependsOn: places.nullable(),
  refers: places,
  when: z.boolean().nullable(),
  onError: z.enum(['skip', 'retry']).nullable(),
  retries: position.nullable(),
  timeoutS: position.nullable(),
  priority: z.int(),
  key: count.nullable(),
  attempts: z.array(attempt).min(1),
});

const item = z.discriminatedUnion('type', [
  part({ type: z.literal('action'), action }),
  part({ type: z.enum(['thought', 'bare']), words: count }),
  part({ type: z.literal('response'), final: z.boolean().nullable(), refers: places }),
  part({ type: z.literal('broken') }),
  part({ type: z.literal('recall'), of: count }),
]);

const generation = part({
  items: z.array(item),
  finish: z.enum(['stop', 'length', 'content_filter', 'tool_calls', 'error', 'abort', 'throws', 'silent']),
  pieceChars: position,
  gapMs: count,
  reportsUsage: z.boolean(),
  calls: part({ written: z.enum(CALL_FORMS), repeats: z.enum(CALL_REPEATS) }).nullable(),
  cut: part({
    tag: count.nullable(),
    chars: count,
    pauseMs: count,
    cause: z.enum(CUT_CAUSES),
    keeps: share,
  }).nullable(),
  reason: z.string().min(1).nullable(),
});

const message = part({
  type: z.enum(['message', 'text']),
  at: count,
  ifBusy: z.enum(['queue', 'reject', 'steer']),
  branch: part({ how: z.enum(BRANCHES), back: count, nth: count }).nullable(),
  repeats: z.boolean(),
  via: part({ protocol: z.enum(PROTOCOLS), reads: position.nullable(), pauseMs: count }).nullable(),
  files: z.array(part({ form: z.enum(FILE_FORMS), body: count })),
  generations: z.array(generation).min(1),
});

const request = z.discriminatedUnion('type', [
  part({ type: z.literal('cancel'), at: count }),
  part({ type: z.literal('delete'), at: count, exportMs: count.nullable(), againMs: count.nullable() }),
  part({ type: z.literal('head'), at: count, back: count }),
  part({ type: z.literal('fork'), at: count, back: count }),
  part({
    type: z.literal('reader'),
    at: count,
    fromEnd: z.boolean(),
    pauseMs: count,
    reads: position.nullable(),
  }),
]);

const fault = z.discriminatedUnion('type', [
  part({ type: z.literal('crash'), life: position, call: position, keeps: share }),
  part({ type: z.literal('eviction'), at: count, keeps: share }),
  part({ type: z.literal('write'), life: position, statement: position }),
  part({
    type: z.literal('statement'),
    in: z.enum(['session', 'fork', 'index']),
    does: z.enum(['write', 'read']),
    names: z.enum(STATEMENT_NAMES).nullable(),
    statement: position,
  }),
  part({ type: z.literal('sync'), life: position, sync: position, keeps: share }),
  part({ type: z.literal('slow_disk'), at: count, ms: count }),
  part({ type: z.literal('full_disk'), at: count, forMs: count }),
  part({ type: z.literal('clock'), at: count, byMs: z.int() }),
  part({ type: z.literal('index'), at: count, forMs: count, works: z.boolean() }),
  part({ type: z.literal('runner'), runner: count, at: count, forMs: count }),
  part({
    type: z.literal('collector'),
    at: count,
    forMs: count,
    works: z.boolean(),
    loses: z.literal(true).exactOptional(),
  }),
]);

export const historySchema = part({
  order: z.int(),
  agent: part({
    maxParallelActions: position,
    maxIterations: position,
    maxActions: position,
    modelCalls: position,
    seconds: position,
    failFast: z.boolean(),
    supervised: z.boolean(),
    policies: z.boolean(),
    feed: z.boolean(),
    expiryMs: position.nullable(),
  }),
  messages: z.array(message).min(1),
  decisions: z.array(part({ afterMs: count, approved: z.boolean(), times: count })),
  requests: z.array(request),
  faults: z.array(fault),
  seeded: z.array(part({ type: z.enum(['user', 'assistant', 'call']), words: count })),
}) satisfies z.ZodType<History>;

const storedSchema = z.strictObject({
  name: z.string().min(1),
  seed: z.int().nullable(),
  history: historySchema,
});

export interface StoredHistory {
  /** A sentence: what holds in it. */
  readonly name: string;
  /** The seed that it was shrunk from; null if it was written by hand. */
  readonly seed: number | null;
  readonly history: History;
}

/** The text of a file. */
export function storedText(stored: StoredHistory): string {
  const withoutUsual = (name: string, value: unknown): unknown =>
    LEFT_OUT.has(name) && isDeepStrictEqual(value, LEFT_OUT.get(name)) ? undefined : value;
  return `${JSON.stringify(stored, withoutUsual, 2)}\n`;
}

/** @throws Error that names the file, if it cannot be read or does not fit history.ts (any more) */
export function readHistory(file: string): StoredHistory {
  let data: unknown;
  try {
    data = JSON.parse(readFileSync(file, 'utf8'));
  } catch (fault) {
    throw new Error(`${file} is not a JSON file that can be read: ${fault instanceof Error ? fault.message : ''}`, {
      cause: fault,
    });
  }
  const parsed = storedSchema.safeParse(data);
  if (parsed.success) return parsed.data;
  throw new Error(
    `${file} does not fit the form of histories (test/simulation/history.ts). Adapt the file, or delete it and find ` +
      `the failure again.\n${z.prettifyError(parsed.error)}`,
  );
}
