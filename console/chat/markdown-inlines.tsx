/**
 * The inside of a Markdown paragraph as elements: emphasis, code, links, images and line breaks. HTML is text.
 *
 * Invariants:
 *  1. The time is linear in the length of the text: a pattern looks no further than the next character that can begin it
 *     again. Only the end of code is looked for up to the end of the text, in vain once for each length of a run of backticks.
 *  2. Nesting is at most `limits.markdownDepth` deep; what is deeper is text.
 */
import type { ComponentChild, ComponentChildren } from 'preact';
import * as limits from '../parts/limits.ts';
import { decodeEntities, isMisleading, linkUrl, showReordering } from '../parts/safe-text.ts';
import { RemoteImage } from './markdown-parts.tsx';

/** What all parts of a text share. */
export interface Scope {
  /** Elements that may still be made. */
  left: number;
  /** Addresses of reference links, `[label]: address`, by `labelKey`. */
  readonly references: Map<string, string>;
}

/** Emphasis or a bracket that is open. */
interface Frame {
  readonly marker: string;
  readonly from: number;
  readonly children: ComponentChild[];
}

/** All that may begin or end something, in the order of the groups that `inlinesOf` reads. */
const SPECIAL = new RegExp(
  [
    /\\([!-/:-@[-`{-~])/,
    /(\\?\n|<br ?\/?>)/,
    // Code up to a run of as many backticks.
    /(?<!`)(?<ticks>`+)(?!`)([^]*?[^`])\k<ticks>(?!`)/,
    /(?<sign>[*_~])\k<sign>*/,
    // An address, without the punctuation of the sentence around it; brackets in it come in pairs.
    /<((?:https?:\/\/|mailto:)[^\s<>]+|[\w.+-]+@[\w.-]+)>/,
    /((?<![a-z\d])(?:https?:\/\/|www\.)(?:[^\s()<>[\]`]*(?:\([^\s()<>[\]`]*\)|[^\s()<>[\]`?!.,:;*_'"~]))+)/,
    /!?\[|\]|`+/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gi',
);
/** `(address "title")` after a link's text. */
const TARGET = /\(\s{0,9}(?:<([^<>\n]*)>|((?:[^\s()]|\([^\s()]*\))*))(?:\s{1,9}(?:"[^"]*"|'[^']*'))?\s{0,9}\)/y;
const REFERENCE = /\[([^[\]]*)\]/y;

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** A label is the same in any case, and with any white space. */
export function labelKey(label: string): string {
  return label.trim().replace(/\s+/g, ' ').toLowerCase();
}

export function inlinesOf(text: string, scope: Scope, isInLink = false): ComponentChildren {
  if (scope.left <= 0 || text.length > limits.markdownRunChars) return showReordering(text);
  const root: ComponentChild[] = [];
  const frames: Frame[] = [];
  const add = (...children: ComponentChild[]): void => void (frames.at(-1)?.children ?? root).push(...children);
  /** Makes text of the markers of all frames from this one on. */
  const flatten = (from: number): void => {
    for (const { marker, children } of frames.splice(from)) add(marker, ...children);
  };
  /** Ends a frame. @returns what it contains */
  const close = (index: number): ComponentChildren => {
    flatten(index + 1);
    return frames.pop()?.children;
  };
  const addLink = (href: string, raw: string, label: string, children: ComponentChildren): void => {
    const url = isInLink ? null : linkUrl(href);
    if (url === null) return add(showReordering(raw));
    return add(
      <a href={url.href} title={url.href} rel="noopener noreferrer nofollow" target="_blank">
        {children}
      </a>,
      isMisleading(decodeEntities(label), url) && <span class="quiet"> (leads to {url.host})</span>,
    );
  };

  /** @returns how much of the run is used */
  const emphasise = (run: string, sign: string, at: number): number => {
    const [before, after] = [text.charAt(at - 1), text.charAt(at + run.length)];
    // An underscore inside a word is text, as in `snake_case`; so is a single asterisk, as in `a*b`. Two are not: `**H**yper`.
    const isInWord = (char: string): boolean => (sign === '_' || run === '*') && /\w/.test(char);
    // Of three, the two are outside.
    const markers = run.length === 3 ? [sign + sign, sign] : [run];
    const index =
      /[^\s([]/.test(before) && !isInWord(after) ? frames.findLastIndex(({ marker }) => markers.includes(marker)) : -1;
    const frame = frames[index];
    if (frame !== undefined && frame.from + frame.marker.length < at) {
      const children = close(index);
      const Element = sign === '~' ? 'del' : frame.marker === sign ? 'em' : 'strong';
      add(<Element>{children}</Element>);
      return frame.marker.length;
    }
    const [marker = run] = markers;
    const isMarker = run.length < 4 && (sign === '~') === (run === '~~');
    if (isMarker && /\S/.test(after) && !isInWord(before) && open(marker, at)) return marker.length;
    add(run);
    return run.length;
  };

  const open = (marker: string, from: number): boolean => {
    const isRoom = frames.length < limits.markdownDepth;
    if (isRoom) frames.push({ marker, from, children: [] });
    return isRoom;
  };

  /** A link or image that ends with the bracket before this place. @returns where it ends */
  const closeBracket = (at: number): number => {
    const index = frames.findLastIndex(({ marker }) => marker.endsWith('['));
    const frame = frames[index];
    if (frame !== undefined) {
      const label = text.slice(frame.from + frame.marker.length, at - 1);
      const target = matchAt(TARGET, text, at);
      const reference = target ?? matchAt(REFERENCE, text, at);
      const href = target === null ? scope.references.get(labelKey(reference?.[1] || label)) : (target[1] ?? target[2]);
      const end = at + (reference?.[0].length ?? 0);
      if (href !== undefined) {
        close(index);
        const address = decodeEntities(href.replace(/\\([!-/:-@[-`{-~])/g, '$1'));
        if (frame.marker === '[') {
          // Read again: a link contains no link.
          addLink(address, text.slice(frame.from, end), label, inlinesOf(label, scope, true));
        } else add(isInLink ? showReordering(label) : <RemoteImage href={address} alt={label} />);
        return end;
      }
      flatten(index);
    }
    add(']');
    return at;
  };

  for (let at = 0; at < text.length;) {
    const found = matchAt(SPECIAL, text, at);
    const from = found?.index ?? text.length;
    if (from > at) add(showReordering(decodeEntities(text.slice(at, from))));
    if (found === null) break;
    const [all, escaped, lineBreak, ticks, code = '', sign, inAngles, bare] = found;
    const address = inAngles ?? bare;
    at = from + all.length;
    scope.left -= 1;
    if (escaped !== undefined) add(escaped);
    else if (lineBreak !== undefined) add(<br />);
    else if (ticks !== undefined) add(<code>{showReordering(code.trim())}</code>);
    else if (sign !== undefined) at = from + emphasise(all, sign, from);
    else if (address !== undefined) {
      const scheme = address.includes(':') ? '' : inAngles === undefined ? 'https://' : 'mailto:';
      addLink(scheme + address, all, address, showReordering(address));
    } else if (all === ']') at = closeBracket(at);
    else if (!all.endsWith('[') || (isInLink && all === '[') || !open(all, from)) add(all);
  }
  flatten(0);
  return root;
}
