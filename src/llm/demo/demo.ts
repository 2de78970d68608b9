/**
 * The provider without a key: deterministic, no network, no language model (L3).
 *
 * It interprets the user's message by patterns and streams real protocol text, a few characters at a time, so the
 * parser, scheduler, executors and journal run as with any model. When it is called again with results, it answers
 * from them. It keeps no state: everything is read from the request.
 */
import { DEMO_MODEL } from '../../domain/ports/model.ts';
import type { ChatMessage, ModelDelta, ModelProvider, ModelRequest } from '../../domain/ports/model.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import { estimateTokens } from '../../domain/tokens.ts';
import { describeFile, filesIn, readPixelSizes, withoutPlaceholders } from './files.ts';
import type { PixelSizes, SeenFile } from './files.ts';
import { readMessage, variablesIn } from './reading.ts';
import { paced, writePlain, writePlan, writeSequel } from './script.ts';
import type { Passage, StepResult } from './script.ts';
import { limits } from '../../domain/limits.ts';
import { pause } from '../../domain/sleep.ts';

export interface DemoOptions {
  readonly clock: Clock;
  /** Pause before each delta in milliseconds; 0 streams without pauses. */
  readonly deltaMs?: number;
}

/** Characters per delta, in rotation: uneven, like tokens. */
const DELTA_CHARS = [3, 5, 4, 7, 2, 6] as const;
/** Number of generations per turn that may still act; later ones only answer. */
const ACTING_GENERATIONS = 3;

export function createDemoProvider({ clock, deltaMs = limits.demoDeltaMs }: DemoOptions): ModelProvider {
  return {
    name: DEMO_MODEL,
    async *stream(request): AsyncGenerator<ModelDelta> {
      let sent = '';
      const sizes = request.messages.some(({ attachments }) => attachments !== undefined)
        ? await readPixelSizes(request.messages)
        : new Map<string, string>();
      for (const delta of deltasOf(passages(request, sizes))) {
        if (deltaMs > 0 && !request.signal.aborted) await pause(deltaMs, clock, request.signal);
        if (request.signal.aborted) break;
        sent += delta;
        yield { type: 'text', text: delta };
      }
      const prompt = request.messages.map(({ content }) => content).join('\n');
      yield {
        type: 'usage',
        usage: {
          promptTokens: estimateTokens(prompt),
          completionTokens: estimateTokens(sent),
          cachedTokens: 0,
          estimated: true,
          model: DEMO_MODEL,
        },
      };
      yield { type: 'finish', reason: request.signal.aborted ? 'abort' : 'stop' };
    },
  };
}

/** The text of one generation, in passages with their own pace. @param sizes of the attached images */
export function passages(
  { agent, messages }: Pick<ModelRequest, 'messages' | 'agent'>,
  sizes: PixelSizes = new Map(),
): Passage[] {
  const { message, files, results, generations, last, known, feeds } = readConversation(messages);
  if (agent === null) return paced(writePlain(message));
  const described = files.map((file) => describeFile(file, sizes));
  const reading = { ...readMessage(message, agent, known, feeds), files: described };
  if (generations === 0 && !last) return writePlan(reading, agent);
  return paced(writeSequel(reading, agent, results, !last && generations < ACTING_GENERATIONS));
}

/** Runtime blocks in a user message. Their content is escaped, so the first closing tag is the real one. */
const RUNTIME_BLOCK = /<(results|context_feed|system|attached_file)\b([^>]*)>([\s\S]*?)<\/\1>/g;
const RESULT = /<action_result id="([^"]*)"[^>]*? status="(\w+)"[^>]*>\n?([\s\S]*?)\n?<\/action_result>/g;

interface Conversation {
  /** The user's latest message. */
  readonly message: string;
  /** Its images and files. */
  readonly files: readonly SeenFile[];
  /** Number of generations since then. */
  readonly generations: number;
  /** Their results, by action id. */
  readonly results: ReadonlyMap<string, StepResult>;
  /** The runtime has announced the last generation. */
  readonly last: boolean;
  /** Variables set by earlier messages. */
  readonly known: ReadonlySet<string>;
  readonly feeds: readonly string[];
}

function readConversation(messages: readonly ChatMessage[]): Conversation {
  const spoken = messages.map(({ role, content }) =>
    role === 'user' ? content.replace(RUNTIME_BLOCK, '').trim() : '',
  );
  const at = spoken.findLastIndex((words) => words !== '');
  const later = messages.slice(at + 1);
  const results = new Map<string, StepResult>();
  for (const { role, content } of later) {
    if (role !== 'user') continue;
    for (const [, id = '', status = '', text = ''] of content.matchAll(RESULT)) results.set(id, { status, text });
  }
  const newest = messages.at(-1)?.content ?? '';
  const blocks = [...newest.matchAll(RUNTIME_BLOCK)];
  return {
    message: withoutPlaceholders(spoken[at] ?? ''),
    files: filesIn(spoken[at] ?? ''),
    generations: later.filter(({ role }) => role === 'assistant').length,
    results,
    last: blocks.some(([, tag, , text = '']) => tag === 'system' && /last generation/.test(text)),
    known: new Set(spoken.slice(0, Math.max(0, at)).flatMap((words) => variablesIn(words))),
    feeds: blocks.flatMap(([, tag, attributes = '']) =>
      tag === 'context_feed' ? (/ id="([^"]*)"/.exec(attributes)?.[1] ?? []) : [],
    ),
  };
}

/** Yields bursts whole and the rest in small pieces. No piece ends inside a surrogate pair. */
function* deltasOf(script: readonly Passage[]): Generator<string> {
  let turn = 0;
  for (const { text, burst } of script) {
    if (burst) yield text;
    for (let start = burst ? text.length : 0; start < text.length;) {
      let end = start + (DELTA_CHARS[turn % DELTA_CHARS.length] ?? 1);
      turn += 1;
      const unit = text.charCodeAt(end - 1);
      if (unit >= 0xd800 && unit <= 0xdbff) end += 1;
      yield text.slice(start, end);
      start = end;
    }
  }
}
