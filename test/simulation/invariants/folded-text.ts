import { isTextPatch } from '../../../src/domain/event.ts';
import type { SessionEvent } from '../../../src/domain/event.ts';
import type { Observation } from '../observation.ts';
import { words } from '../script.ts';
import { byRun } from './invariant.ts';
import type { Invariant } from './invariant.ts';

type Closing = Extract<SessionEvent, { type: 'thought_completed' | 'text_completed' | 'response_completed' }>;

function closes(event: SessionEvent): event is Closing {
  return event.type === 'thought_completed' || event.type === 'text_completed' || event.type === 'response_completed';
}

export const foldedText: Invariant = {
  name: 'folded text',
  holds:
    'The patches of a block, applied in order, give its stored text; only a crash leaves one without an end; what a crash or a broken generation cut off is marked, and nothing else.',
  *check(seen) {
    const { history, readers, events, isWhole, facts } = seen;
    for (const { name, frames } of readers) {
      const texts = new Map<number, string>();
      for (const { event } of frames) {
        if (isTextPatch(event)) {
          const { segment, offset, delta } = event.data;
          const text = texts.get(segment) ?? '';
          if (offset > text.length)
            yield `${name}: a patch of block ${segment} begins at ${offset}, after ${text.length}`;
          texts.set(segment, text.slice(0, offset) + delta);
        } else if (closes(event)) {
          const { segment, content } = event.data;
          // A reader without a patch of the block takes its text from the closing event.
          const text = texts.get(segment) ?? content;
          if (text !== content)
            yield `${name}: block ${segment} was read as ${quote(text)} and is stored as ${quote(content)}`;
        }
      }
    }
    if (!isWhole) return;
    const wasLost =
      facts.some((fact) => fact.type === 'host_ended' && fact.why !== 'replaced') ||
      history.faults.some(({ type }) => type === 'write' || type === 'statement' || type === 'sync');
    const cutRuns = new Set(
      events.flatMap((event) =>
        event.type === 'warning' && event.data.code === 'generation_cut' ? [event.run_id] : [],
      ),
    );
    const open = new Set<number | null>();
    const items = history.messages.flatMap(({ generations }) => generations.flatMap(({ items: all }) => all));
    const thoughts = new Set(items.flatMap((item) => (item.type === 'thought' ? [words(item.words)] : [])));
    for (const event of events) {
      if (event.type === 'thought_started' || event.type === 'text_started' || event.type === 'response_started') {
        open.add(event.seq);
      }
      if (!closes(event)) continue;
      if (!isMarked(event) && !isWholeText(event, thoughts)) {
        yield `block ${event.data.segment} is not marked as cut, and its text is ${quote(event.data.content)}`;
      }
      if (!open.delete(event.data.segment)) yield `block ${event.data.segment} was closed and was not open`;
      if (event.data.cut === true && !wasLost && !cutRuns.has(event.run_id))
        yield `block ${event.data.segment} is marked as cut, and neither a host nor the rest of its generation was lost`;
    }
    for (const segment of open) yield `block ${segment} has no end`;
    yield* unmarked(seen);
  },
};

/** A thought or bare text that the model was writing when its host was lost is cut off. */
function* unmarked({ events, history, messageOf }: Observation): Generator<string> {
  for (const [run, ofRun] of byRun(events)) {
    if (history.messages[messageOf.get(run) ?? -1]?.type !== 'message') continue;
    const open = new Set<number>();
    let interrupted = new Set<number>();
    for (const event of ofRun) {
      if (event.type === 'thought_started' || event.type === 'text_started') open.add(event.seq);
      if (event.type === 'warning' && event.data.code === 'run_recovered') interrupted = new Set(open);
      if (event.type !== 'thought_completed' && event.type !== 'text_completed') continue;
      const { segment, cut } = event.data;
      open.delete(segment);
      if (interrupted.has(segment) && cut !== true) yield `block ${segment} was cut off by a crash and is not marked`;
    }
  }
}

const quote = (text: string): string => JSON.stringify(text.length > 120 ? `${text.slice(0, 120)}…` : text);

const isMarked = ({ data: { cut, unclosed } }: Closing): boolean => cut === true || unclosed === true;

/** Whether the text is one that the script writes as a whole. Bare text has no end, so it may stop anywhere. */
function isWholeText({ type, data: { content } }: Closing, thoughts: ReadonlySet<string>): boolean {
  if (type === 'text_completed') return isCounted(content);
  if (type === 'response_completed') return content.startsWith('The values') && content.endsWith(' are here.');
  return /^#m\d+#$/.test(content) || thoughts.has(content);
}

/** Whether bare texts follow one another, each with its words in order. */
function isCounted(content: string): boolean {
  // The beginning of a tag is text, if the generation ends in it.
  const all = content
    .replace(/<[^<>]*$/, '')
    .split(/\s+/)
    .filter((word) => word !== '');
  let next = 0;
  return all.every((word, at) => {
    if (word === 'word0') next = 0;
    const expected = `word${next}`;
    next += 1;
    return word === expected || (at === all.length - 1 && expected.startsWith(word));
  });
}
