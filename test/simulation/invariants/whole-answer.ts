import { isTextPatch } from '../../../src/domain/event.ts';
import type { SessionEvent } from '../../../src/domain/event.ts';
import type { GenerationScript, History } from '../history.ts';
import type { Observation } from '../observation.ts';
import { chunksOf, isOfEndpoint } from '../endpoint.ts';
import { textOf, writtenOf } from '../script.ts';
import { byRun } from './invariant.ts';
import type { Invariant } from './invariant.ts';

/** After these, bare text is an answer (P11, P15). */
const WHOLE: ReadonlySet<string> = new Set(['stop', 'tool_calls', 'length']);
/** Every response of a script. Values take the place of references. */
const RESPONSE = /^The values.* are here\.$/s;
/** A response that the model could not finish. */
const PART_OF_RESPONSE = /^T(h|$)/;

export const wholeAnswer: Invariant = {
  name: 'whole answer',
  holds:
    'An answer is a text that the model has finished: no bare text and no open response of a generation that was cut off, by a crash, a lost stream, silence or an unknown reason; and what may be the beginning of a tag is never shown as text.',
  *check(seen) {
    const texts = bareAnswers(seen.history);
    for (const [run, events] of byRun(seen.events)) {
      for (const event of events) {
        if (event.type !== 'agent_completed') continue;
        const answer = event.data.response;
        const isResponse = RESPONSE.test(answer) || (mayBeCut(seen.history, events) && PART_OF_RESPONSE.test(answer));
        if (!isResponse && !texts.has(spaced(answer))) yield `the answer of run ${run} is ${JSON.stringify(answer)}`;
      }
    }
    yield* beginningsOfTags(seen);
  },
};

/** Bare texts that are an answer. The empty text is that of a run without one. */
function bareAnswers({ messages }: History): Set<string> {
  const texts = new Set(['']);
  for (const [message, { type, generations }] of messages.entries()) {
    for (const [call, script] of generations.entries()) {
      const isPosted = type === 'text' && call === 0;
      const text = isPosted ? allBareText(script) : bareAnswer(message, call, script);
      if (text !== null) texts.add(spaced(text));
    }
  }
  return texts;
}

/** Posted text is answered by its bare text, also beside actions. */
function allBareText(script: GenerationScript): string {
  const items = script.items.filter(({ type }) => type === 'bare');
  return textOf(0, 0, { ...script, items });
}

/** Null: the generation is no answer by its bare text. */
function bareAnswer(message: number, call: number, script: GenerationScript): string | null {
  const { cut, finish, reason } = script;
  // The reason is in the last chunk.
  if (cut === null ? reason !== null || !WHOLE.has(finish) : cut.cause !== 'length') return null;
  const written = isOfEndpoint(script)
    ? textSent(chunksOf(message, call, script), cut)
    : writtenOf(textOf(message, call, script), cut);
  const text = written?.replace(/<thought>.*?(<\/thought>|$)/gs, '').replace(/<[^>]*$/, '') ?? '<';
  return text.includes('<') ? null : text;
}

/** The text that an endpoint has sent; null: it has also sent a call. */
function textSent(chunks: readonly object[], cut: GenerationScript['cut']): string | null {
  const sent = chunks.slice(0, cut === null ? -1 : cut.chars % chunks.length) as readonly Chunk[];
  const deltas = sent.flatMap(({ choices }) => choices.map(({ delta }) => delta));
  return deltas.some(({ content }) => content === undefined) ? null : deltas.map(({ content }) => content).join('');
}

interface Chunk {
  readonly choices: readonly { readonly delta: { readonly content?: string } }[];
}

/** Whether the run says that its answer was cut off by the model's limit. */
function mayBeCut({ messages }: History, events: readonly SessionEvent[]): boolean {
  const isLong = messages.some(({ generations }) => generations.some(({ cut }) => cut?.cause === 'length'));
  return isLong && events.some((event) => event.type === 'warning' && event.data.code === 'generation_cut');
}

/** No script has a text, and no target a value, with the beginning of a tag. */
function* beginningsOfTags({ events, readers }: Observation): Generator<string> {
  for (const event of events) {
    if (event.type !== 'text_completed' && event.type !== 'response_completed') continue;
    const { content } = event.data;
    if (content.includes('<')) yield `block ${event.data.segment} ends with ${JSON.stringify(content.slice(-80))}`;
  }
  for (const { name, frames } of readers) {
    for (const { event } of frames) {
      if (!isTextPatch(event) || event.type === 'thought' || !event.data.delta.includes('<')) continue;
      yield `${name} was shown ${JSON.stringify(event.data.delta.slice(-80))}`;
    }
  }
}

function spaced(text: string): string {
  return text.trim().replace(/\s+/g, ' ');
}
