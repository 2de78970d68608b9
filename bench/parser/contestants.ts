/**
 * The readers that are compared. All read the same chunks and return the same: the text of the blocks as it arrives,
 * the tags with their attributes, and the parsed bodies of actions.
 */
import { Parser as HtmlParser } from 'htmlparser2';
import sax from 'sax';
import { SaxesParser } from 'saxes';
import type { ActionDeclaration, ActionMode, ActionType } from '../../src/domain/action.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { ProtocolEvent } from '../../src/domain/protocol-event.ts';
import { createParser } from '../../src/protocol/parser/parser.ts';

/** The output, so that no work can be optimised away. */
export interface Tally {
  text: number;
  actions: number;
}

export interface Contestant {
  readonly name: string;
  readonly read: (chunks: readonly string[]) => Tally;
}

function cortex(chunks: readonly string[]): Tally {
  const parser = createParser({ json: 'repair', actInReasoning: false });
  const tally = count(parser, chunks);
  parser.end();
  return tally;
}

function count(reader: { feed(chunk: string): readonly ProtocolEvent[] }, chunks: readonly string[]): Tally {
  const tally: Tally = { text: 0, actions: 0 };
  for (let index = 0; index < chunks.length; index += 1) {
    const events = reader.feed(chunks[index] ?? '');
    for (let at = 0; at < events.length; at += 1) {
      const event = events[at];
      if (event === undefined) continue;
      if (event.type === 'thought' || event.type === 'response' || event.type === 'text')
        tally.text += event.delta.length;
      else if (event.type === 'response_reference') tally.text += event.reference.raw.length;
      else if (event.type === 'action_declared') tally.actions += 1;
    }
  }
  return tally;
}

/**
 * The output of the bare scans: the text of each block as it arrives, the opening tags unchanged, and
 * actions with their parsed bodies. This is the minimum that a consumer needs.
 */
type Scanned =
  | { readonly type: 'thought' | 'response' | 'text'; readonly delta: string }
  | { readonly type: 'opened'; readonly tag: string }
  | { readonly type: 'closed' }
  | { readonly type: 'action'; readonly tag: string; readonly body: unknown };
type Block = 'thought' | 'response' | 'text';

function drain(events: readonly Scanned[], tally: Tally): void {
  for (let at = 0; at < events.length; at += 1) {
    const event = events[at];
    if (event === undefined) continue;
    if (event.type === 'action') tally.actions += 1;
    else if ('delta' in event) tally.text += event.delta.length;
  }
}

const CLOSE = '</action>';
const TAGS = ['<thought', '</thought>', '<response', '</response>', '<action'] as const;
const LONGEST = Math.max(...TAGS.map((tag) => tag.length));

/** The tag that begins at `at`; null for none; undefined if the text is too short to decide. */
function tagAt(text: string, at: number): (typeof TAGS)[number] | null | undefined {
  for (const tag of TAGS) if (text.startsWith(tag, at)) return tag;
  if (text.length - at >= LONGEST) return null;
  const rest = text.slice(at);
  return TAGS.some((tag) => tag.startsWith(rest)) ? undefined : null;
}

/** Handles a tag other than an action's. */
function blockAfter(tag: (typeof TAGS)[number], written: string, events: Scanned[]): Block {
  if (tag !== '<thought' && tag !== '<response') {
    events.push({ type: 'closed' });
    return 'text';
  }
  events.push({ type: 'opened', tag: written });
  return tag === '<thought' ? 'thought' : 'response';
}

/** Knows only the protocol's three tags. Scans each chunk separately and keeps a tail that may be a tag. */
class BareScan {
  #held = '';
  #block: Block = 'text';
  #tag: string | null = null;
  #body = '';

  feed(chunk: string): Scanned[] {
    const events: Scanned[] = [];
    const text = this.#held === '' ? chunk : this.#held + chunk;
    this.#held = '';
    let from = 0;
    let at = text.indexOf('<');
    while (at !== -1) {
      let end = -1;
      if (this.#tag !== null) {
        if (text.startsWith(CLOSE, at)) {
          events.push({ type: 'action', tag: this.#tag, body: JSON.parse(this.#body + text.slice(from, at)) });
          this.#tag = null;
          this.#body = '';
          end = at + CLOSE.length;
        } else if (text.length - at < CLOSE.length && CLOSE.startsWith(text.slice(at))) {
          return this.#keep(text, from, at, events);
        }
      } else {
        const tag = tagAt(text, at);
        if (tag === undefined) return this.#keep(text, from, at, events);
        if (tag !== null) {
          const close = text.indexOf('>', at);
          if (close === -1) return this.#keep(text, from, at, events);
          end = close + 1;
          this.#take(text, from, at, events);
          const written = text.slice(at, end);
          if (tag === '<action') this.#tag = written;
          else this.#block = blockAfter(tag, written, events);
        }
      }
      if (end !== -1) from = end;
      at = text.indexOf('<', end === -1 ? at + 1 : end);
    }
    this.#take(text, from, text.length, events);
    return events;
  }

  #keep(text: string, from: number, at: number, events: Scanned[]): Scanned[] {
    this.#take(text, from, at, events);
    this.#held = text.slice(at);
    return events;
  }

  #take(text: string, from: number, to: number, events: Scanned[]): void {
    if (from === to) return;
    const piece = from === 0 && to === text.length ? text : text.slice(from, to);
    if (this.#tag === null) events.push({ type: this.#block, delta: piece });
    else this.#body += piece;
  }
}

/**
 * The scan by chunk with the output that an engine needs: opening tags with their attributes, actions as
 * declarations, references apart. Checks, repairs, counts and refuses nothing: its cost is the price of the
 * same objects, without any rule.
 */
class DeclaringScan {
  readonly #scan = new BareScan();
  #ordinal = 0;
  #offset = 0;

  feed(chunk: string): ProtocolEvent[] {
    const events: ProtocolEvent[] = [];
    const found = this.#scan.feed(chunk);
    for (let at = 0; at < found.length; at += 1) {
      const event = found[at];
      if (event !== undefined) this.#hand(event, events);
    }
    this.#offset += chunk.length;
    return events;
  }

  #hand(event: Scanned, events: ProtocolEvent[]): void {
    switch (event.type) {
      case 'thought':
      case 'text':
        events.push({ type: event.type, delta: event.delta });
        return;
      case 'response':
        return splitReferences(event.delta, events);
      case 'opened':
        events.push(
          event.tag.startsWith('<thought')
            ? { type: 'thought_started', offset: this.#offset, reasoning: false }
            : { type: 'response_started', offset: this.#offset, final: event.tag.includes('true') },
        );
        return;
      case 'closed':
        events.push({ type: 'response_completed', unclosed: false });
        return;
      case 'action':
        this.#declare(event.tag, event.body as JsonObject, events);
    }
  }

  #declare(tag: string, body: JsonObject, events: ProtocolEvent[]): void {
    const given: Record<string, string> = {};
    for (let at = tag.indexOf(' '); at !== -1;) {
      const equals = tag.indexOf('="', at);
      if (equals === -1) break;
      const end = tag.indexOf('"', equals + 2);
      given[tag.slice(at + 1, equals)] = tag.slice(equals + 2, end);
      at = tag.indexOf(' ', end);
    }
    const type = (given['type'] ?? 'tool') as ActionType;
    const mode = (given['mode'] ?? 'sync') as ActionMode;
    const name = given['name'] ?? (body['name'] as string);
    events.push({ type: 'action_opened', actionType: type, name: given['name'] ?? null, mode });
    // A literal instead of `plainDeclaration`: copying the defaults would add a cost that is not the scan's.
    const action: ActionDeclaration = {
      ordinal: this.#ordinal,
      id: given['id'] ?? `auto_${this.#ordinal}`,
      type,
      mode,
      name,
      parameters: given['name'] === undefined ? (body['parameters'] as JsonObject) : body,
      outputKey: (body['output_key'] as string | undefined) ?? null,
      dependsOn: given['depends_on']?.split(',') ?? null,
      waitForAll: true,
      timeoutMs: given['timeout'] === undefined ? null : Number(given['timeout']) * 1_000,
      retry: null,
      onError: null,
      when: null,
      priority: 0,
      idempotencyKey: null,
      cacheTtlMs: null,
      references: [],
      embeddedInThought: false,
      repaired: false,
      span: { start: this.#offset, end: this.#offset + tag.length },
    };
    this.#ordinal += 1;
    events.push({ type: 'action_declared', action });
  }
}

const REFERENCE = /\$(?:\{([^}]+)\}|([\w.]+))/g;

function splitReferences(text: string, events: ProtocolEvent[]): void {
  let from = 0;
  if (text.includes('$')) {
    for (const { 0: raw, 1: braced, 2: plain, index } of text.matchAll(REFERENCE)) {
      if (index > from) events.push({ type: 'response', delta: text.slice(from, index) });
      const [name = '', ...path] = (braced ?? plain ?? '').split('.');
      events.push({ type: 'response_reference', reference: { name, path, raw } });
      from = index + raw.length;
    }
  }
  if (from < text.length) events.push({ type: 'response', delta: from === 0 ? text : text.slice(from) });
}

/** The scan of a buffer: text is returned as it arrives, an action's body when its `</action>` has arrived. */
class BufferedScan {
  #buffer = '';
  #at = 0;
  #block: Block = 'text';
  #tag: string | null = null;

  feed(chunk: string): Scanned[] {
    const events: Scanned[] = [];
    this.#buffer += chunk;
    for (;;) {
      if (this.#tag !== null) {
        const found = this.#buffer.indexOf(CLOSE, this.#at);
        if (found === -1) {
          // It may have begun at the end of the chunk.
          this.#at = Math.max(0, this.#buffer.length - CLOSE.length + 1);
          return events;
        }
        events.push({ type: 'action', tag: this.#tag, body: JSON.parse(this.#buffer.slice(0, found)) });
        this.#tag = null;
        this.#drop(found + CLOSE.length);
        continue;
      }
      const less = this.#buffer.indexOf('<', this.#at);
      if (less === -1) {
        this.#emit(this.#buffer.length, events);
        return events;
      }
      const tag = tagAt(this.#buffer, less);
      const close = tag === null ? less : this.#buffer.indexOf('>', less);
      if (tag === undefined || close === -1) {
        this.#emit(less, events);
        return events;
      }
      if (tag === null) {
        this.#at = less + 1;
        continue;
      }
      const written = this.#buffer.slice(less, close + 1);
      this.#emit(less, events);
      this.#drop(written.length);
      if (tag === '<action') this.#tag = written;
      else this.#block = blockAfter(tag, written, events);
    }
  }

  #emit(to: number, events: Scanned[]): void {
    if (to > 0) events.push({ type: this.#block, delta: this.#buffer.slice(0, to) });
    this.#drop(to);
  }

  #drop(to: number): void {
    this.#buffer = this.#buffer.slice(to);
    this.#at = 0;
  }
}

function scan(make: () => { feed(chunk: string): Scanned[] }): Contestant['read'] {
  return (chunks) => {
    const tally: Tally = { text: 0, actions: 0 };
    const scanner = make();
    for (let index = 0; index < chunks.length; index += 1) drain(scanner.feed(chunks[index] ?? ''), tally);
    return tally;
  };
}

/** Collects the callbacks of a markup parser. */
class MarkupSink {
  readonly tally: Tally = { text: 0, actions: 0 };
  #body: string | null = null;

  open(name: string): void {
    if (name === 'action') this.#body = '';
  }

  text(text: string): void {
    if (this.#body === null) this.tally.text += text.length;
    else this.#body += text;
  }

  close(name: string): void {
    if (name !== 'action' || this.#body === null) return;
    JSON.parse(this.#body);
    this.#body = null;
    this.tally.actions += 1;
  }
}

function htmlparser2(chunks: readonly string[]): Tally {
  const sink = new MarkupSink();
  const parser = new HtmlParser(
    {
      onopentag: (name) => sink.open(name),
      ontext: (text) => sink.text(text),
      onclosetag: (name) => sink.close(name),
    },
    { xmlMode: true, decodeEntities: false },
  );
  for (const chunk of chunks) parser.write(chunk);
  parser.end();
  return sink.tally;
}

function saxes(chunks: readonly string[]): Tally {
  const sink = new MarkupSink();
  const parser = new SaxesParser({ fragment: true });
  parser.on('opentag', (tag) => sink.open(tag.name));
  parser.on('text', (text) => sink.text(text));
  parser.on('closetag', (tag) => sink.close(tag.name));
  for (const chunk of chunks) parser.write(chunk);
  parser.close();
  return sink.tally;
}

function saxJs(chunks: readonly string[]): Tally {
  const sink = new MarkupSink();
  const parser = sax.parser(false, { lowercase: true });
  parser.onopentag = (tag) => sink.open(tag.name);
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a callback field of the parser, which is not an EventTarget
  parser.ontext = (text) => sink.text(text);
  parser.onclosetag = (name) => sink.close(name);
  // After the end of its root element, this parser reads every tag as text.
  parser.write('<root>');
  for (const chunk of chunks) parser.write(chunk);
  parser.write('</root>');
  parser.close();
  return sink.tally;
}

export const DECLARING = 'scan by chunk, with declarations';

export const CONTESTANTS: readonly Contestant[] = [
  { name: 'Cortex Edge', read: cortex },
  { name: 'bare scan by chunk', read: scan(() => new BareScan()) },
  { name: 'bare scan of a buffer', read: scan(() => new BufferedScan()) },
  { name: DECLARING, read: (chunks) => count(new DeclaringScan(), chunks) },
  { name: 'htmlparser2', read: htmlparser2 },
  { name: 'saxes', read: saxes },
  { name: 'sax', read: saxJs },
];
