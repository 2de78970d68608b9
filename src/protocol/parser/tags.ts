/** The closed set of tags (P1, P2): recognises the tag that begins at a `<`. tag-head.ts reads its attributes. */
import { GREATER, SLASH, UNDERSCORE, isSpace } from './characters.ts';

/** `reasoning`: `<think>` and `<thinking>`, where models draft (P9). `runtime`: no effect if a model writes it (P2). */
export type TagType = 'thought' | 'reasoning' | 'action' | 'response' | 'runtime';

/** A tag up to its name: `<name` or `</name`. There is one object per tag, so tags can be compared by identity. */
export interface Tag {
  readonly type: TagType;
  readonly name: string;
  readonly closing: boolean;
  /** Length of `<name` or `</name`. */
  readonly headChars: number;
}

const TYPES: Readonly<Record<string, TagType>> = {
  action: 'action',
  response: 'response',
  thought: 'thought',
  think: 'reasoning',
  thinking: 'reasoning',
  context_feed: 'runtime',
  action_result: 'runtime',
  results: 'runtime',
  system: 'runtime',
  attached_file: 'runtime',
};
const NAMES = Object.keys(TYPES);
const LONGEST_NAME = Math.max(...NAMES.map((name) => name.length));
const OPENING = tags(false);
const CLOSING = tags(true);

function tags(closing: boolean): readonly Tag[] {
  const sign = closing ? '</' : '<';
  return Object.entries(TYPES).map(([name, type]) => ({ type, name, closing, headChars: sign.length + name.length }));
}

/**
 * Decides whether the `<` at `at` begins a tag of the closed set. A name counts only together with its delimiter:
 * white space, `>`, or the `/` of a self-closing tag.
 *
 * @returns null if it is not a tag; `more` if the text ends before that is decided
 */
export function matchTag(text: string, at: number): Tag | 'more' | null {
  const closing = text.charCodeAt(at + 1) === SLASH;
  const start = closing ? at + 2 : at + 1;
  const stop = Math.min(text.length, start + LONGEST_NAME + 1);
  let index = start;
  while (index < stop && isNameCharacter(text.charCodeAt(index))) index += 1;
  if (index === text.length) return beginsName(text.slice(start)) ? 'more' : null;
  const tag = tagNamed(text, start, index, closing ? CLOSING : OPENING);
  if (tag === null) return null;
  const next = text.charCodeAt(index);
  return next === GREATER || isSpace(next) || (next === SLASH && !closing) ? tag : null;
}

function tagNamed(text: string, start: number, end: number, tags: readonly Tag[]): Tag | null {
  for (const tag of tags) {
    if (tag.name.length === end - start && text.startsWith(tag.name, start)) return tag;
  }
  const name = text.slice(start, end).toLowerCase();
  return tags.find((tag) => tag.name === name) ?? null;
}

function beginsName(written: string): boolean {
  const name = written.toLowerCase();
  return NAMES.some((known) => known.startsWith(name));
}

function isNameCharacter(code: number): boolean {
  const letter = code | 32;
  return (letter >= 97 && letter <= 122) || code === UNDERSCORE;
}

/** Both tags open the same kind of block: `</think>` closes a `<thought>`. */
export function isThought({ type }: Tag): boolean {
  return type === 'thought' || type === 'reasoning';
}
