/** Feeds texts to the parser with different cuts, and compares the events. */
import type { ActionDeclaration, ActionRejection } from '../../../src/domain/action.ts';
import type { ProtocolEvent } from '../../../src/domain/protocol-event.ts';
import { createParser } from '../../../src/protocol/parser/parser.ts';
import type { ParserOptions } from '../../../src/protocol/parser/parser.ts';

export const DEFAULTS: ParserOptions = { json: 'repair', actInReasoning: false };

/** Raw events of a text that arrives in these chunks. */
export function feedChunks(chunks: Iterable<string>, options: Partial<ParserOptions> = {}): ProtocolEvent[] {
  const parser = createParser({ ...DEFAULTS, ...options });
  const events: ProtocolEvent[] = [];
  for (const chunk of chunks) events.push(...parser.feed(chunk));
  events.push(...parser.end());
  return events;
}

/** Adjacent deltas of one kind become one (P3). */
export function join(events: readonly ProtocolEvent[]): ProtocolEvent[] {
  const joined: ProtocolEvent[] = [];
  for (const event of events) {
    const last = joined.at(-1);
    if ('delta' in event && last !== undefined && last.type === event.type && 'delta' in last) {
      joined[joined.length - 1] = { type: event.type, delta: last.delta + event.delta };
    } else joined.push(event);
  }
  return joined;
}

export function parse(text: string, options: Partial<ParserOptions> = {}): ProtocolEvent[] {
  return join(feedChunks([text], options));
}

export function characters(text: string): string[] {
  return Array.from({ length: text.length }, (_, index) => text.charAt(index));
}

/** Cuts at pseudo-random positions; the same seed gives the same cuts. */
export function cutAtRandom(text: string, seed: number, longest = 24): string[] {
  const chunks: string[] = [];
  let state = (seed + 1) * 2_654_435_761;
  for (let at = 0; at < text.length;) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const length = 1 + ((state >>> 8) % longest);
    chunks.push(text.slice(at, at + length));
    at += length;
  }
  return chunks;
}

/** The cuts of every test text: in two at every position (short texts), characters, random cuts. */
export function* waysToCut(
  text: string,
  randomCuts: number,
): Generator<{ readonly name: string; readonly chunks: string[] }> {
  yield { name: 'one character at a time', chunks: characters(text) };
  for (let seed = 0; seed < randomCuts; seed += 1) {
    yield { name: `random cuts, seed ${seed}`, chunks: cutAtRandom(text, seed, seed % 3 === 0 ? 5 : 40) };
  }
  if (text.length <= 600) {
    for (let at = 1; at < text.length; at += 1) {
      yield { name: `in two at ${at}`, chunks: [text.slice(0, at), text.slice(at)] };
    }
  }
}

/** A readable line for each event, for comparisons. */
export function lines(events: readonly ProtocolEvent[]): string[] {
  return join(events).map(line);
}

function line(event: ProtocolEvent): string {
  switch (event.type) {
    case 'thought_started':
      return event.reasoning ? 'thought { reasoning' : 'thought {';
    case 'response_started':
      return `response { final=${event.final ?? 'auto'}`;
    case 'text_started':
      return 'text {';
    case 'thought':
    case 'text':
    case 'response':
      return `  ${JSON.stringify(event.delta)}`;
    case 'response_reference':
      return `  ref ${event.reference.raw} = ${JSON.stringify([event.reference.name, ...event.reference.path])}`;
    case 'text_completed':
      return '}';
    case 'thought_completed':
    case 'response_completed':
      return event.unclosed ? '} unclosed' : '}';
    case 'action_opened':
      return `open ${event.actionType ?? '?'} ${event.name ?? '?'} ${event.mode ?? '?'}`;
    case 'action_declared':
      return `action ${describe(event.action)}`;
    case 'action_rejected':
      return `rejected ${event.rejection.id} ${event.rejection.code}`;
    case 'warning':
      return `warning ${event.code}`;
  }
}

/** `id type:name mode {parameters}` and every field with a non-default value. */
export function describe(action: ActionDeclaration): string {
  const parts = [`${action.id} ${action.type}:${action.name} ${action.mode} ${JSON.stringify(action.parameters)}`];
  if (action.outputKey !== null) parts.push(`output_key=${action.outputKey}`);
  if (action.dependsOn !== null) parts.push(`depends_on=[${action.dependsOn.join(',')}]`);
  if (!action.waitForAll) parts.push('wait_for_all=false');
  if (action.timeoutMs !== null) parts.push(`timeout=${action.timeoutMs}`);
  if (action.retry !== null) {
    const { maxAttempts, backoff, delayMs, maxDelayMs } = action.retry;
    parts.push(`retry=${maxAttempts}/${backoff}/${delayMs}/${maxDelayMs}`);
  }
  if (action.onError !== null) parts.push(`on_error=${action.onError}`);
  if (action.when !== null) parts.push(`when=${action.when}`);
  if (action.priority !== 0) parts.push(`priority=${action.priority}`);
  if (action.idempotencyKey !== null) parts.push(`key=${action.idempotencyKey}`);
  if (action.cacheTtlMs !== null) parts.push(`cache=${action.cacheTtlMs}`);
  if (action.references.length > 0) parts.push(`refs=[${action.references.join(',')}]`);
  if (action.embeddedInThought) parts.push('embedded');
  if (action.repaired) parts.push('repaired');
  return parts.join(' ');
}

export function actionsOf(events: readonly ProtocolEvent[]): ActionDeclaration[] {
  return events.flatMap((event) => (event.type === 'action_declared' ? [event.action] : []));
}

export function rejectionsOf(events: readonly ProtocolEvent[]): ActionRejection[] {
  return events.flatMap((event) => (event.type === 'action_rejected' ? [event.rejection] : []));
}

export function warningsOf(events: readonly ProtocolEvent[]): string[] {
  return events.flatMap((event) => (event.type === 'warning' ? [event.code] : []));
}

/** The text of all blocks of a kind, with unresolved references. */
export function textOf(events: readonly ProtocolEvent[], kind: 'thought' | 'text' | 'response'): string {
  return events
    .map((event) => {
      if (event.type === kind) return event.delta;
      return kind === 'response' && event.type === 'response_reference' ? event.reference.raw : '';
    })
    .join('');
}
