/** Text and addresses from models, tools and other users: hidden characters are shown, and no address runs code. */
import * as limits from './limits.ts';

/** Characters that change the order of others, so that a text looks like another one. */
const REORDERING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
/** Also all that have no shape: an instruction can hide in them. */
const INVISIBLE = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Default_Ignorable_Code_Point}]/gu;

function named(char: string): string {
  return `[U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`;
}

/** Shows the characters that reorder text as `[U+202E]`. */
export function showReordering(text: string): string {
  return text.replace(REORDERING, named);
}

/** Shows each invisible character as `[U+200B]`, except tabs and line breaks: for what a person decides about. */
export function showInvisible(text: string): string {
  return text.replace(INVISIBLE, named);
}

/** The address that a link may lead to: http, https or mailto, absolute, as the browser reads it; null for all others. */
export function linkUrl(href: string): URL | null {
  if (href.length > limits.urlChars) return null;
  const url = URL.parse(href);
  return url !== null && /^(https?|mailto):$/.test(url.protocol) ? url : null;
}

/** The address of an image of another server; null for all others. */
export function imageUrl(href: string): URL | null {
  const url = linkUrl(href);
  return url?.protocol === 'mailto:' ? null : url;
}

/** Whether a text looks like an address on another host than the one that it leads to. */
export function isMisleading(text: string, { protocol, hostname }: URL): boolean {
  const shown = HOST.exec(text)?.[1];
  if (protocol === 'mailto:' || shown === undefined) return false;
  return withoutWww(URL.parse(`http://${shown}`)?.hostname) !== withoutWww(hostname);
}

/** A host in a text, after what an address may have before it. */
const HOST = /(?:^|[\s/@(])((?:[\p{L}\p{N}-]{1,63}\.){1,8}\p{L}{2,24})(?=$|[\s/:?#)])/u;

function withoutWww(host = ''): string {
  return host.replace(/^www\./, '');
}

/** No name of an object's own is that short. */
const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
  copy: '©',
  hellip: '…',
  mdash: '—',
  ndash: '–',
  larr: '←',
  rarr: '→',
  times: '×',
};

/** Replaces character references: all numbers, and the names that texts have. */
export function decodeEntities(text: string): string {
  return text.replace(/&(?:#(\d{1,7}|x[\da-f]{1,6})|([a-z]{2,6}));/gi, (all, digits?: string, name = '') => {
    if (digits === undefined) return ENTITIES[name] ?? all;
    const code = Number(`0${digits}`);
    return code > 0 && code < 0x110000 ? String.fromCodePoint(code).toWellFormed() : '\ufffd';
  });
}
