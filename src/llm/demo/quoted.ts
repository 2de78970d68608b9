/** Extracts the parts of a message that must not be split: code, JSON, URLs, quoted words, lists of numbers. */

export interface Quoted {
  readonly type: 'code' | 'json' | 'url' | 'string' | 'numbers';
  readonly value: string;
  /** For a code block: the word after its backticks. */
  readonly language: string;
  /** As the user wrote it. */
  readonly written: string;
}

const FIRST_TOKEN = 0xe000;
const MOST_QUOTED = 1_000;
/** Maximum number of brackets that do not open JSON; each costs a scan of the rest of the text. */
const MOST_FALSE_STARTS = 20;

/** A text in which each quoted part is replaced by one private-use character. */
export class QuotedText {
  readonly text: string;
  readonly #quoted: Quoted[] = [];

  constructor(message: string) {
    const code = message
      .replace(/[\uE000-\uF8FF]/g, ' ')
      .replace(/```(\w*)[^\S\n]*\n?([\s\S]*?)```/g, (written, language: string, value: string) =>
        this.#hold({ type: 'code', value: value.replace(/\n$/, ''), language, written }),
      )
      .replace(/`([^`\n]+)`/g, (written, value: string) => this.#hold({ type: 'code', value, language: '', written }));
    const plain = (type: Quoted['type'], written: string, value = written): string =>
      this.#hold({ type, value, language: '', written });
    this.text = this.#holdJson(code.replace(/[^\S\n]+/g, ' '))
      .replace(/\bhttps?:\/\/[^\s"'<>]*[^\s"'<>.,;:!?)\]]/gi, (url) => plain('url', url))
      .replace(/"([^"\n]*)"/g, (written, value: string) => plain('string', written, value))
      .replace(/(?<=\b(?:average|mean|median|sum) of )\d[\d.]{0,15}(?:(?:, and |, ?| and )\d[\d.]{0,15})+/gi, (list) =>
        plain('numbers', list),
      );
  }

  /** The quoted parts in a part of the text. */
  in(part: string): Quoted[] {
    return [...part].flatMap((character) => this.#quoted[character.charCodeAt(0) - FIRST_TOKEN] ?? []);
  }

  /** A part of the text as the user wrote it. */
  written(part: string): string {
    return part
      .replace(/[\uE000-\uF8FF]/g, (token) => this.#quoted[token.charCodeAt(0) - FIRST_TOKEN]?.written ?? token)
      .trim();
  }

  #hold(quoted: Quoted): string {
    if (this.#quoted.length >= MOST_QUOTED) return quoted.written;
    return String.fromCharCode(FIRST_TOKEN + this.#quoted.push(quoted) - 1);
  }

  /** Replaces every JSON object, and every array of objects, in the text. */
  #holdJson(text: string): string {
    let rest = text;
    let done = '';
    for (let falseStarts = 0; falseStarts < MOST_FALSE_STARTS;) {
      const at = rest.search(/\{\s*["}]|\[\s*\{/);
      if (at === -1) break;
      const end = endOfJson(rest, at);
      if (end === null) falseStarts += 1;
      const json = rest.slice(at, end ?? at + 1);
      done +=
        rest.slice(0, at) +
        (end === null ? json : this.#hold({ type: 'json', value: json, language: '', written: json }));
      rest = rest.slice(at + json.length);
    }
    return done + rest;
  }
}

/** The index after the JSON value that opens at `start`, or null if there is none. */
function endOfJson(text: string, start: number): number | null {
  let depth = 0;
  for (const { 0: token, index } of text.slice(start).matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/g)) {
    if (token === '{' || token === '[') depth += 1;
    else if (token === '}' || token === ']') depth -= 1;
    if (depth > 0) continue;
    const end = start + index + 1;
    try {
      JSON.parse(text.slice(start, end));
      return end;
    } catch {
      return null;
    }
  }
  return null;
}
