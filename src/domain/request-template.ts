/**
 * Requests with placeholders: `{id}` in the URL and headers of an HTTP tool, and in the path of a relic's endpoint, is
 * replaced by the parameter `id` at each call (M3, R5).
 *
 * A value is data: it is percent-encoded, so it stays inside its path segment or its part of the query. `{{` is a
 * literal `{`; other braces have no meaning. `${NAME}` is a context variable, which is replaced earlier (M5).
 */
import type { Json, JsonObject } from './json.ts';
import { limits } from './limits.ts';

const TOKEN = /\{\{|(?<!\$)\{([\w$][\w.$-]{0,63})\}/g;
/** Scheme and authority of an absolute URL, without placeholders. */
const ORIGIN = /^https?:\/\/[^/?#\\{}]+(?=[/?#]|$)/i;
const HEADER_TEXT = /^[\t\u0020-\u007e\u00a0-\u00ff]*$/;
/** Segments that the parser of URLs removes, in all spellings. */
const DOTS = /^(?:\.|%2e){1,2}$/i;

export interface Placeholder {
  readonly name: string;
  /** Offset in the template, in UTF-16 code units. */
  readonly at: number;
}

export type Filled<T = string> =
  | { readonly ok: true; readonly text: T }
  /** Why the parameters do not fit; for the model. */
  | { readonly ok: false; readonly reason: string };

export function placeholdersOf(template: string): Placeholder[] {
  if (!template.includes('{')) return [];
  return [...template.matchAll(TOKEN)].flatMap(({ 1: name, index: at }) => (name === undefined ? [] : [{ name, at }]));
}

/** Escapes a value that becomes part of a template, so that it contains no placeholders. */
export function escapeBraces(value: string): string {
  return value.replaceAll('{', '{{');
}

/** Text of a parameter in a URL or header: a string as it is, other values as JSON. */
export function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Percent-encodes a value. A lone surrogate, which is invalid in a URL, becomes U+FFFD. */
export function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

/** Fills the templates of one request. */
export class RequestTemplate {
  readonly #parameters: JsonObject;
  readonly #used = new Set<string>();
  #left: number = limits.filledRequestChars;

  constructor(parameters: JsonObject) {
    this.#parameters = parameters;
  }

  /** The parameters that no filled template contains: they are sent in the query or the body. */
  get rest(): [string, Json][] {
    return Object.entries(this.#parameters).filter(([name]) => !this.#used.has(name));
  }

  /**
   * Fills an absolute URL. Its placeholders are in the path and the query only.
   *
   * @returns a URL with the same scheme, authority and number of path segments for all values
   */
  url(template: string): Filled {
    if (placeholdersOf(template).length === 0) return { ok: true, text: unescaped(template) };
    const [origin] = ORIGIN.exec(template) ?? [];
    if (origin === undefined) return refused('the URL has a placeholder in its scheme, user name, host or port');
    const written = template.slice(origin.length);
    const target = this.target(written);
    if (!target.ok) return target;
    const templates = pathOf(written).split('/');
    const wrong = pathOf(target.text)
      .split('/')
      .findIndex((segment, at) => DOTS.test(segment) && placeholdersOf(templates[at] ?? '').length > 0);
    if (wrong === -1) return { ok: true, text: origin + target.text };
    return refused(`${templates[wrong]} in the path becomes "." or "..", which would name another path`);
  }

  /**
   * Fills a path with an optional query. A value must not leave its path segment empty. A pair `name={parameter}` of the
   * query is omitted if the parameter has no value, and repeated for each item of a list.
   */
  target(template: string): Filled {
    if (placeholdersOf(template.slice(template.indexOf('#') + 1 || template.length)).length > 0) {
      return refused('the URL has a placeholder after "#", which is never sent');
    }
    const path = pathOf(template);
    const segments: string[] = [];
    for (const segment of path.split('/')) {
      const filled = this.#fill(segment, encoded);
      if (!filled.ok) return filled;
      if (filled.text === '' && segment !== '') {
        return refused(`${segment} in the path is empty, which would name another path`);
      }
      // dots alone name another directory, but a relic's service gets them as a name
      const isDots = /^\.{1,2}$/.test(filled.text) && placeholdersOf(segment).length > 0;
      segments.push(isDots ? filled.text.replaceAll('.', '%2E') : filled.text);
    }
    const rest = template.slice(path.length);
    if (!rest.startsWith('?')) return { ok: true, text: segments.join('/') + unescaped(rest) };
    const query = this.#query(rest.slice(1));
    if (!query.ok) return query;
    return { ok: true, text: segments.join('/') + (query.text === '' ? '' : `?${query.text}`) };
  }

  /** Fills a header's value. The text is null if one of its parameters has no value: the header is then not sent. */
  header(name: string, template: string): Filled<string | null> {
    const names = placeholdersOf(template).map((one) => one.name);
    if (names.some((one) => this.#valueOf(one) === null)) {
      for (const one of names) this.#used.add(one);
      return { ok: true, text: null };
    }
    const wrong = names.find((one) => !HEADER_TEXT.test(textOf(this.#valueOf(one))));
    if (wrong === undefined) return this.#fill(template, (text) => text);
    return refused(
      `the parameter "${wrong}" cannot be sent in the header "${name}": it has a line break, a control character or a character outside Latin-1`,
    );
  }

  #query(template: string): Filled {
    const pairs: string[] = [];
    for (const pair of template.split('&')) {
      const [, key, name] = /^([^={}]*=)\{([^{}]+)\}$/.exec(pair) ?? [];
      if (key === undefined || name === undefined || placeholdersOf(pair)[0]?.name !== name) {
        const filled = this.#fill(pair, encoded, '');
        if (!filled.ok) return filled;
        pairs.push(filled.text);
        continue;
      }
      this.#used.add(name);
      for (const value of [this.#valueOf(name)].flat()) {
        if (value === null) continue;
        const text = textOf(value);
        if (!this.#take(key.length + text.length)) return tooLong(name);
        pairs.push(key + encoded(text));
      }
    }
    return { ok: true, text: pairs.join('&') };
  }

  /** @param missing the text for a parameter without a value; default: it is an error */
  #fill(template: string, encode: (text: string) => string, missing: string | null = null): Filled {
    if (!template.includes('{')) return { ok: true, text: template };
    let reason: Filled | null = null;
    const text = template.replaceAll(TOKEN, (_token, name: string | undefined) => {
      if (name === undefined) return '{';
      this.#used.add(name);
      const value = this.#valueOf(name);
      const plain = value === null ? missing : textOf(value);
      if (plain === null) reason ??= refused(`the parameter "${name}" is missing, but the request needs it`);
      else if (!this.#take(plain.length)) reason ??= tooLong(name);
      return plain === null || reason !== null ? '' : encode(plain);
    });
    return reason ?? { ok: true, text };
  }

  /** Null if the call has no such parameter, or null for it. */
  #valueOf(name: string): Json {
    return (Object.hasOwn(this.#parameters, name) ? this.#parameters[name] : undefined) ?? null;
  }

  /** Whether the request may contain this many more characters of values. */
  #take(chars: number): boolean {
    this.#left -= chars;
    return this.#left >= 0;
  }
}

function pathOf(target: string): string {
  return /^[^?#]*/.exec(target)?.[0] ?? '';
}

/** A text without placeholders as it is sent. */
function unescaped(template: string): string {
  return template.replaceAll('{{', '{');
}

function tooLong(name: string): Filled {
  return refused(
    `the parameter "${name}" is too long: the URL and headers may contain ${limits.filledRequestChars} characters of parameters`,
  );
}

function refused(reason: string): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason };
}
