/** What is measured against each other: every one reads the same chunks, hands out text deltas and parses the bodies of actions. */
import { Parser as HtmlParser } from 'htmlparser2';
import sax from 'sax';
import { SaxesParser } from 'saxes';
import { createParser } from '../../src/protocol/parser.ts';

/** What came out, so that no work can be left out. */
export interface Tally {
  text: number;
  actions: number;
}

export interface Contestant {
  readonly name: string;
  readonly read: (chunks: readonly string[]) => Tally;
}

function cortex(chunks: readonly string[]): Tally {
  const tally: Tally = { text: 0, actions: 0 };
  const parser = createParser({ json: 'repair', actInReasoning: false });
  for (let index = 0; index < chunks.length; index += 1) {
    const events = parser.feed(chunks[index] ?? '');
    for (let at = 0; at < events.length; at += 1) {
      const event = events[at];
      if (event === undefined) continue;
      if (event.type === 'thought' || event.type === 'response' || event.type === 'text')
        tally.text += event.delta.length;
      else if (event.type === 'action_declared') tally.actions += 1;
    }
  }
  parser.end();
  return tally;
}

const OPEN = '<action';
const CLOSE = '</action>';

interface Delta {
  readonly type: 'text';
  readonly delta: string;
}
interface Body {
  readonly type: 'body';
  readonly body: unknown;
}

function drain(events: readonly (Delta | Body)[], tally: Tally): void {
  for (const event of events) {
    if (event.type === 'text') tally.text += event.delta.length;
    else tally.actions += 1;
  }
}

/** No rule of the protocol but the action's two tags: the least that a streaming reader can do. Looks at each chunk by itself. */
class BareScan {
  #held = '';
  #body: string | null = null;

  feed(chunk: string): (Delta | Body)[] {
    const events: (Delta | Body)[] = [];
    const text = this.#held === '' ? chunk : this.#held + chunk;
    this.#held = '';
    let from = 0;
    for (;;) {
      const less = text.indexOf('<', from);
      if (less === -1) {
        this.#take(text.slice(from), events);
        return events;
      }
      const tag = this.#body === null ? OPEN : CLOSE;
      if (text.startsWith(tag, less)) {
        const end = text.indexOf('>', less);
        if (end === -1) {
          this.#take(text.slice(from, less), events);
          this.#held = text.slice(less);
          return events;
        }
        this.#take(text.slice(from, less), events);
        if (this.#body === null) this.#body = '';
        else {
          events.push({ type: 'body', body: JSON.parse(this.#body) });
          this.#body = null;
        }
        from = end + 1;
      } else if (text.length - less < tag.length && tag.startsWith(text.slice(less))) {
        this.#take(text.slice(from, less), events);
        this.#held = text.slice(less);
        return events;
      } else {
        this.#take(text.slice(from, less + 1), events);
        from = less + 1;
      }
    }
  }

  #take(text: string, events: (Delta | Body)[]): void {
    if (text === '') return;
    if (this.#body === null) events.push({ type: 'text', delta: text });
    else this.#body += text;
  }
}

/** The same, on a buffer that grows until a tag is complete. */
class BufferedScan {
  #buffer = '';
  #at = 0;
  #inBody = false;

  feed(chunk: string): (Delta | Body)[] {
    const events: (Delta | Body)[] = [];
    this.#buffer += chunk;
    for (;;) {
      const tag = this.#inBody ? CLOSE : OPEN;
      const found = this.#buffer.indexOf(tag, this.#at);
      if (found === -1) {
        // The tag may have begun at the end of the chunk.
        const safe = Math.max(this.#at, this.#buffer.length - tag.length + 1);
        if (this.#inBody) this.#at = safe;
        else {
          if (safe > 0) events.push({ type: 'text', delta: this.#buffer.slice(0, safe) });
          this.#buffer = this.#buffer.slice(safe);
          this.#at = 0;
        }
        return events;
      }
      const end = this.#buffer.indexOf('>', found);
      if (end === -1) {
        this.#at = found;
        return events;
      }
      const before = this.#buffer.slice(0, found);
      if (this.#inBody) events.push({ type: 'body', body: JSON.parse(before) });
      else if (before !== '') events.push({ type: 'text', delta: before });
      this.#buffer = this.#buffer.slice(end + 1);
      this.#at = 0;
      this.#inBody = !this.#inBody;
    }
  }
}

function scan(make: () => { feed(chunk: string): (Delta | Body)[] }): Contestant['read'] {
  return (chunks) => {
    const tally: Tally = { text: 0, actions: 0 };
    const scanner = make();
    for (const chunk of chunks) drain(scanner.feed(chunk), tally);
    return tally;
  };
}

/** Collects what a markup parser calls back. */
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
      onopentagname: (name) => sink.open(name),
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
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a field of the parser, no event target
  parser.ontext = (text) => sink.text(text);
  parser.onclosetag = (name) => sink.close(name);
  for (const chunk of chunks) parser.write(chunk);
  parser.close();
  return sink.tally;
}

export const CONTESTANTS: readonly Contestant[] = [
  { name: 'Cortex Edge', read: cortex },
  { name: 'bare scan by chunk', read: scan(() => new BareScan()) },
  { name: 'bare scan of a buffer', read: scan(() => new BufferedScan()) },
  { name: 'htmlparser2', read: htmlparser2 },
  { name: 'saxes', read: saxes },
  { name: 'sax', read: saxJs },
];
