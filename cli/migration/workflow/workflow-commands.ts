/**
 * Commands of the original's workflows, whose references become environment variables (P14): a value is always one word,
 * or a part of one, and never text of the shell.
 *
 * Owns the quotes around a reference. A command in which a value could become code, or whose quotes are read differently
 * by different shells, gets no values.
 */
import { pathOf, REFERENCE } from './workflow-references.ts';
import type { Names } from './workflow-references.ts';

/** A command whose references are environment variables. */
export interface Command {
  readonly command: string;
  readonly inputs: Readonly<Record<string, string>>;
}

/** Where a character stands: outside of quotes, in them, or in a part that holds no values. */
type Place = 'plain' | 'double' | 'single' | 'arithmetic' | 'backticks';

const AT_REFERENCE = new RegExp(REFERENCE.source, 'y');
/** An expansion of a variable without quotes in it. */
const EXPANSION = /\$\{[^{}"'`\\$]{0,256}\}/y;
/** Commands that run an argument as code. */
const RUNS_CODE =
  /\b(?:eval|let)\b|\b(?:sh|bash|dash|ash|zsh|ksh|python[\d.]*|node|deno|bun|perl|ruby|php)[ \t]+(?:-[\w-]+[ \t]+)*-\w*[cepr]\b/;

/** @returns the reason, if a reference is where no variable can be expanded */
export function translateCommand(written: string, names: Names): Command | { readonly reason: string } {
  const reader = new CommandReader(written, names);
  const reason = reader.read();
  if (Object.keys(reader.inputs).length === 0) return { command: written, inputs: {} };
  return reason === null ? { command: reader.command, inputs: reader.inputs } : { reason };
}

class CommandReader {
  command = '';
  readonly inputs: Record<string, string> = {};
  readonly #text: string;
  readonly #names: Names;
  readonly #variables = new Map<string, string>();
  readonly #places: Place[] = ['plain'];
  #at = 0;
  #reason: string | null = null;

  constructor(text: string, names: Names) {
    this.#text = text;
    this.#names = names;
  }

  /** @returns why values cannot be inserted, or null */
  read(): string | null {
    while (this.#at < this.#text.length) if (!this.#reference()) this.#character();
    if (this.#places.length > 1) this.#refuse('its quotes or brackets are not closed');
    if (RUNS_CODE.test(this.#text)) this.#refuse('a value must not become a part of code that a program runs');
    if (/\$\(/.test(this.#text) && /\bcase\b/.test(this.#text)) this.#refuse('"case" in a command with $(…)');
    return this.#reason;
  }

  get #place(): Place {
    return this.#places.at(-1) ?? 'plain';
  }

  #reference(): boolean {
    if (!this.#starts('${') && !this.#starts('{{')) return false;
    AT_REFERENCE.lastIndex = this.#at;
    const [whole, braces, double] = AT_REFERENCE.exec(this.#text) ?? [];
    const path = whole === undefined ? null : pathOf(braces ?? double ?? '', this.#names);
    if (whole === undefined || path === null) return false;
    const variable = this.#variables.get(path) ?? `value_${this.#variables.size + 1}`;
    this.#variables.set(path, variable);
    this.inputs[variable] = `$(${path})`;
    if (this.#places.includes('arithmetic')) this.#refuse('a value must not become a part of an arithmetic expression');
    if (this.#places.includes('backticks')) this.#refuse('backticks cannot hold references; write $(…)');
    const value = `\${${variable}}`;
    this.command += this.#place === 'double' ? value : this.#place === 'single' ? `'"${value}"'` : `"${value}"`;
    this.#at += whole.length;
    return true;
  }

  #character(): void {
    const place = this.#place;
    const char = this.#text[this.#at] ?? '';
    if (place === 'single') return this.#take(1, char === "'" ? 'leave' : null);
    if (char === '\\') return this.#take(2);
    if (char === '"') return this.#take(1, place === 'double' ? 'leave' : 'double');
    if (char === '`') return this.#take(1, place === 'backticks' ? 'leave' : 'backticks');
    if (this.#starts('$((')) return this.#take(3, 'arithmetic', 'arithmetic');
    if (this.#starts('$(')) return this.#take(2, 'plain');
    if (this.#starts('${')) return this.#expansion();
    if (place === 'double') return this.#take(1);
    if (char === "'") {
      if (this.#text[this.#at - 1] === '$') this.#refuse("quotes of the form $'…'");
      return this.#take(1, 'single');
    }
    if (char === '#' && /^[\s;&|()]?$/.test(this.#text[this.#at - 1] ?? '')) return this.#comment();
    if (this.#starts('<<<')) return this.#take(3);
    if (this.#starts('<<') && place !== 'arithmetic') this.#refuse('a here-document cannot hold references');
    if (this.#starts('((') && place === 'plain') return this.#take(2, 'arithmetic', 'arithmetic');
    if (char === '(') return this.#take(1, place);
    if (char === ')' && this.#places.length > 1) return this.#take(1, 'leave');
    this.#take(1);
  }

  /** `${NAME}`, or another expansion whose quotes shells read differently. */
  #expansion(): void {
    EXPANSION.lastIndex = this.#at;
    const [whole] = EXPANSION.exec(this.#text) ?? [];
    if (whole === undefined) this.#refuse('an expansion ${…} with quotes or other expansions in it');
    this.#take(whole?.length ?? 2);
  }

  #comment(): void {
    const end = this.#text.indexOf('\n', this.#at);
    this.#take((end === -1 ? this.#text.length : end) - this.#at);
  }

  #take(chars: number, ...places: ('leave' | Place | null)[]): void {
    this.command += this.#text.slice(this.#at, this.#at + chars);
    this.#at += chars;
    for (const place of places) {
      if (place === 'leave') this.#places.pop();
      else if (place !== null) this.#places.push(place);
    }
  }

  #starts(text: string): boolean {
    return this.#text.startsWith(text, this.#at);
  }

  #refuse(reason: string): void {
    this.#reason ??= reason;
  }
}
