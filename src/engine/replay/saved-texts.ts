/**
 * The texts of the blocks that a run left open, as far as they were saved (J4): for a run that ends without being replayed.
 *
 * Only the text of the model is read again, by the parser. What else a replay does may be what ended the hosts.
 */
import type { Redaction } from '../../bounded/redaction.ts';
import type { EventOf } from '../../domain/event.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { ProtocolEvent } from '../../domain/protocol-event.ts';
import type { RunRecord } from '../../domain/session.ts';
import type { Journal } from '../../journal/journal.ts';
import { GenerationBlocks } from '../generation/generation-blocks.ts';
import type { Blocks } from '../generation/generation-blocks.ts';
import { GenerationReader } from '../generation/generation-reader.ts';
import type { UnwrittenText } from '../generation/segments.ts';
import type { RunSource } from '../run/run-context.ts';
import type { StreamPiece } from '../run/run-input.ts';
import { Replay } from './replay.ts';

interface SavedRun {
  readonly resolved: ResolvedAgent;
  /** The type of its source, and its posted text. */
  readonly type: RunSource['type'];
  readonly text: string;
  readonly outgoingText: Redaction | null;
}

type Opening = EventOf<'thought_started' | 'text_started' | 'response_started'>;

/** @throws EngineError `not_recoverable` if the run has no record */
export function savedTexts(journal: Journal, run: RunRecord, saved: SavedRun): UnwrittenText[] {
  const { resolved, text, outgoingText } = saved;
  const texts = new SavedTexts();
  const blocks = new GenerationBlocks(texts);
  const newReader = (): GenerationReader => new GenerationReader(resolved, 1);
  let reader = newReader();
  const read = (events: readonly ProtocolEvent[]): void => {
    for (const event of events) follow(event, blocks, texts);
  };
  const feed = (piece: StreamPiece): void => {
    blocks.endReasoning();
    read(reader.feed(piece));
  };
  for (const input of new Replay(journal, run).inputs) {
    if (input.type === 'text' || input.type === 'declared') feed(input);
    else if (input.type === 'posted_text') feed({ text: text.slice(reader.chars, reader.chars + input.chars) });
    else if (input.type === 'tool_call') feed(input);
    else if (input.type === 'reasoning') blocks.reasoning(input.text);
    else if (input.type === 'generation_ended') {
      blocks.end();
      read(reader.end(input.finish).events);
      reader = newReader();
    }
  }
  return openingsOf(journal, run).flatMap(({ seq, type }, index) => {
    const found = texts.all[index];
    if (found === undefined || `${found.type}_started` !== type) return [];
    if (found.type === 'thought' && !resolved.agent.loop.streamThoughts) return [];
    const stream = outgoingText?.stream();
    const content = stream === undefined ? found.content : stream.feed(found.content) + stream.end();
    return [{ segment: seq, content, written: found.isWhole ? null : found.content }];
  });
}

/** In the order in which the text opens its blocks. Those that replace others have no text of the model. */
function openingsOf(journal: Journal, run: RunRecord): Opening[] {
  const openings: Opening[] = [];
  for (const { event } of journal.eventsOf(run)) {
    if (event.type === 'thought_started' || event.type === 'text_started') openings.push(event);
    if (event.type === 'response_started' && event.data.completes === undefined) openings.push(event);
  }
  return openings;
}

function follow(event: ProtocolEvent, blocks: GenerationBlocks, texts: SavedTexts): void {
  switch (event.type) {
    case 'action_declared':
    case 'action_rejected':
    case 'action_opened':
    case 'warning':
      return;
    case 'response_completed':
      return texts.close();
    case 'response_reference':
      return texts.refer();
    default:
      return blocks.text(event);
  }
}

interface SavedText {
  readonly type: 'thought' | 'text' | 'response';
  content: string;
  /** No reference in it: a value, and what follows it, may not have been sent. */
  isWhole: boolean;
}

class SavedTexts implements Blocks {
  /** In the order in which they were opened. */
  readonly all: SavedText[] = [];
  readonly #open: SavedText[] = [];

  beginGeneration(): void {}

  open(type: SavedText['type']): void {
    const text = { type, content: '', isWhole: true };
    this.all.push(text);
    this.#open.push(text);
  }

  write(text: string): void {
    const last = this.#open.at(-1);
    if (last?.isWhole === true) last.content += text;
  }

  refer(): void {
    const last = this.#open.at(-1);
    if (last !== undefined) last.isWhole = false;
  }

  close(): void {
    this.#open.pop();
  }
}
