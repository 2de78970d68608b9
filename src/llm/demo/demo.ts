/**
 * The provider without a key: deterministic, no network, no language model (L3).
 *
 * It matches the user's message against patterns and streams real protocol text, a few characters at a time, so the
 * parser, scheduler, executors and journal run as with any model. When it is called again with results, it answers
 * from them. It keeps no state: everything is read from the request.
 */
import type { Clock } from '../../domain/ports/clock.ts';
import { DEMO_MODEL } from '../../domain/ports/model.ts';
import type { ModelDelta, ModelProvider, ModelRequest } from '../../domain/ports/model.ts';
import { limits } from '../../domain/limits.ts';
import { pause } from '../../domain/sleep.ts';
import { estimateTokens } from '../../domain/tokens.ts';
import { readMessage, variablesIn } from './reading.ts';
import { writePlain, writeTurn } from './script.ts';

export interface DemoOptions {
  readonly clock: Clock;
  /** Pause before each delta in milliseconds; 0 streams without pauses. */
  readonly deltaMs?: number;
}

/** Number of generations per turn that may act; later ones only answer. */
const ACTING_GENERATIONS = 3;
/** Runtime blocks in a user message. Their content is escaped, so the first closing tag is the real one. */
const RUNTIME_BLOCK = /<(results|context_feed|system|attached_file)\b([^<>]*)>([\s\S]*?)<\/\1>/g;
const RESULT = /<action_result id="([^"]*)"[^>]*? status="(\w+)"[^>]*>\n?([\s\S]*?)\n?<\/action_result>/g;
/** A line in place of an image or file, as the runtime writes it. */
const FILE = /^\[((?:image|file) ".*", [\w.+-]+\/[\w.+-]+, \d+ bytes)\]$/gm;
/** A few characters, as tokens are. */
const PIECE = /.{1,5}/gsu;

export function createDemoProvider({ clock, deltaMs = limits.demoDeltaMs }: DemoOptions): ModelProvider {
  return {
    name: DEMO_MODEL,
    async *stream(request): AsyncGenerator<ModelDelta> {
      let sent = '';
      const [before, burst, after] = passages(request);
      const pieces = [...(before.match(PIECE) ?? []), ...(burst === '' ? [] : [burst]), ...(after.match(PIECE) ?? [])];
      for (const text of pieces) {
        if (deltaMs > 0 && !request.signal.aborted) await pause(deltaMs, clock, request.signal);
        if (request.signal.aborted) break;
        sent += text;
        yield { type: 'text', text };
      }
      const promptTokens = estimateTokens(request.messages.map(({ content }) => content).join('\n'));
      const usage = { promptTokens, completionTokens: estimateTokens(sent), cachedTokens: 0, estimated: true };
      yield { type: 'usage', usage: { ...usage, model: DEMO_MODEL } };
      yield { type: 'finish', reason: request.signal.aborted ? 'abort' : 'stop' };
    },
  };
}

/** The text of one generation. Its middle is one delta, so that the actions that it completes start at the same time. */
export function passages({
  agent,
  messages,
}: Pick<ModelRequest, 'messages' | 'agent'>): readonly [before: string, burst: string, after: string] {
  // The prompt of an `llm` action: nothing in it is of the runtime.
  if (agent === null)
    return [writePlain(messages.findLast(({ role }) => role === 'user')?.content.trim() ?? ''), '', ''];
  const spoken = messages.map(({ role, content }) =>
    role === 'user' ? content.replace(RUNTIME_BLOCK, '').trim() : '',
  );
  const at = spoken.findLastIndex((words) => words !== '');
  const message = spoken[at] ?? '';
  const later = messages.slice(at + 1);
  const results = later.flatMap(({ role, content }) =>
    role === 'user'
      ? [...content.matchAll(RESULT)].map(([, id = '', status = '', text = '']) => [id, { status, text }] as const)
      : [],
  );
  const blocks = [...(messages.at(-1)?.content ?? '').matchAll(RUNTIME_BLOCK)];
  const isLast = blocks.some(([, tag, , text = '']) => tag === 'system' && /last generation/.test(text));
  const feeds = blocks.flatMap(([, tag, attributes = '']) =>
    tag === 'context_feed' ? (/ id="([^"]*)"/.exec(attributes)?.[1] ?? []) : [],
  );
  const known = spoken.slice(0, Math.max(0, at)).flatMap((text) => variablesIn(text));
  const generation = later.filter(({ role }) => role === 'assistant').length;
  return writeTurn(readMessage(message.replace(FILE, '').trim(), agent, known, feeds), {
    agent,
    isFirst: generation === 0,
    results: new Map(results),
    mayAct: !isLast && generation < ACTING_GENERATIONS,
    files: Array.from(message.matchAll(FILE), ([, file = '']) => file),
  });
}
