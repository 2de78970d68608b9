/**
 * Interprets a user's message by patterns: the requested steps, their order, and the parts that are not understood.
 * No language model and no state: the same message and agent always give the same result (L3).
 */
import { limits } from '../../domain/limits.ts';
import { Capabilities } from './capabilities.ts';
import type { Agent, Step, StepDraft } from './capabilities.ts';
import { QuotedText } from './quoted.ts';
import { isWait, measure, placeOf, readRequest, unquoted } from './requests.ts';
import type { Request } from './requests.ts';

export interface Reading {
  readonly steps: readonly Step[];
  /** A summary of the results is requested. */
  readonly summary: boolean;
  /** Intermediate output is requested. */
  readonly progress: boolean;
  /** Requested variables and feeds, with their references. */
  readonly recalls: readonly { readonly name: string; readonly shown: string }[];
  /** Descriptions of the message's images and files. */
  readonly files: readonly string[];
  /** Ids of the feeds in the prompt. */
  readonly feeds: readonly string[];
  /** What the agent would need for the rest but does not have. */
  readonly lacking: readonly string[];
  /** Parts of the message that were not understood. */
  readonly unread: readonly string[];
}

/** Longest request that any pattern recognises. */
const REQUEST_CHARS = 1_000;

const SUM_UP =
  /\b(?:(?:sum|add) (?:it|them|both|everything) up|sum up|summari[sz]e(?: (?:it|them|both|the results))?|combine the results)\b/gi;
const PROGRESS = /\b(?:(?:with|show) )?progress\b/gi;
const TOGETHER = /\b(?:at the same time|at once|in parallel|simultaneously)\b/gi;
const PLEASANTRIES = /^(?:please|hello|hi|can you|could you|tell me|show me|first|finally)\b[\s,!.:]*/i;
const SEPARATORS = /[;\n,]|[.?!](?=\s|$)|\b(?:and|then)\b/i;
const STATISTICS = /\bstatistics (?:of|for)\b[^:\n]{0,60}:\s*(\S[\s\S]*)$/i;
const REMEMBER =
  /\bremember(?: that)? (?:my |the |that )?([a-z][\w -]{0,40}?) is ([^\n;,.]{1,500}?)(?=\s*(?:[\n;,.]|$|\b(?:and|then)\b))/gi;

/** @param known names of session variables set earlier in the conversation */
export function readMessage(
  message: string,
  agent: Agent,
  known: ReadonlySet<string>,
  feeds: readonly string[],
): Reading {
  const capabilities = new Capabilities(agent);
  const drafts: (StepDraft | 'lacking')[] = [];
  const words = message.slice(0, limits.demoMessageChars);
  const statistics = STATISTICS.exec(words);
  if (statistics?.[1] !== undefined) drafts.push(measure(unquoted(statistics[1]), capabilities));

  const quoted = new QuotedText(statistics === null ? words : words.slice(0, statistics.index));
  const variables = new Set<string>();
  const rest = quoted.text.replace(REMEMBER, (whole, name: string, value: string) => {
    const key = variableName(name);
    if (key === null) return whole;
    variables.add(key);
    drafts.push({
      key: `saved_${key}`,
      label: `remember ${key}`,
      type: 'internal',
      name: 'set_variable',
      parameters: { key, value: unquoted(quoted.written(value)) },
      shown: (saved) => `\${${saved}.value}`,
    });
    return ';';
  });
  const recalls: { name: string; shown: string }[] = [];
  const unread: string[] = [];
  if (message.length > words.length) {
    unread.push(`everything after the first ${limits.demoMessageChars} characters of the message`);
  }
  let waits = false;
  let pending: Request['place'] = null;
  const requests = [SUM_UP, PROGRESS, TOGETHER].reduce((text, pattern) => text.replace(pattern, ' '), rest);
  for (const part of requests.replace(/(\d),(?=\d{3}\b)/g, '$1').split(SEPARATORS)) {
    let trimmed = part.trim();
    while (PLEASANTRIES.test(trimmed)) trimmed = trimmed.replace(PLEASANTRIES, '');
    const placed = placeOf(trimmed);
    if (placed.words === '') {
      // "in python, compute …": the place applies to the next request
      pending = placed.place ?? pending;
      continue;
    }
    const place = placed.place ?? pending;
    pending = null;
    const name = recalled(placed.words, new Set([...known, ...variables]), feeds);
    if (name !== null) {
      recalls.push({ name, shown: variables.has(name) ? `\${saved_${name}.value}` : `\${${name}}` });
      continue;
    }
    waits = isWait(placed.words) || (waits && /^\d/.test(placed.words));
    const request = { words: quoted.written(placed.words), quoted: quoted.in(placed.words), place, waits };
    const found = placed.words.length > REQUEST_CHARS ? [] : readRequest(request, capabilities);
    if (found.length === 0) unread.push(quoted.written(trimmed));
    drafts.push(...found);
  }
  return {
    steps: named(drafts.filter((draft) => draft !== 'lacking')),
    summary: rest.search(SUM_UP) !== -1,
    progress: rest.search(PROGRESS) !== -1,
    recalls,
    lacking: [...capabilities.lacking],
    files: [],
    feeds,
    unread: unread.filter((one) => /\w{2}/.test(one)),
  };
}

/** The variables that a message sets; used to read the conversation again. */
export function variablesIn(message: string): string[] {
  return [...message.slice(0, limits.demoMessageChars).matchAll(REMEMBER)].flatMap(
    ([, name = '']) => variableName(name) ?? [],
  );
}

/** Assigns ids by kind and number, and makes keys unique. */
function named(drafts: readonly StepDraft[]): Step[] {
  const counts = new Map<string, number>();
  const next = (name: string): number => {
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return count;
  };
  return drafts.map(({ shown, ...draft }) => {
    const kind = (draft.name ?? draft.type).replace(/\W+/g, '_');
    const nth = next(`key ${draft.key}`);
    const key = nth === 1 ? draft.key : `${draft.key}_${nth}`;
    return { ...draft, id: `${kind}_${next(kind)}`, key, shown: shown === undefined ? `$${key}` : shown(key) };
  });
}

/** The variable or feed that a request names, or null. */
function recalled(words: string, known: ReadonlySet<string>, feeds: readonly string[]): string | null {
  if (/^what(?:'s| is)? (?:the )?(?:time|date)\b/i.test(words)) {
    return feeds.find((id) => /time|date|clock/i.test(id)) ?? null;
  }
  const name = variableName(/^what(?:'s| is) (?:my |the )?(.+)$/i.exec(words)?.[1] ?? '');
  if (name === null) return null;
  return known.has(name) ? name : (feeds.find((id) => id.toLowerCase() === name) ?? null);
}

function variableName(words: string): string | null {
  const name = words
    .trim()
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')
    .slice(0, 40);
  return /^[a-z]/.test(name) ? name : null;
}
