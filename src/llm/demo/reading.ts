/**
 * Reads a person's message by patterns: which steps it asks for, in which order, and what it says
 * that nothing here understands. No language model, no state: the same message and the same agent
 * give the same reading (L3).
 */
import { limits } from '../../domain/limits.ts';
import { placeOf, readClause, runCode, showStats, unquoted } from './clause.ts';
import type { Place } from './clause.ts';
import { mask, unmask } from './masking.ts';
import { Capabilities } from './capabilities.ts';
import type { Agent, Step, StepDraft } from './capabilities.ts';

export interface Reading {
  readonly steps: readonly Step[];
  /** Sum up what the steps came to. */
  readonly summary: boolean;
  /** Say something before everything is done. */
  readonly progress: boolean;
  /** Variables and feeds that are asked for, and the reference that stands for each. */
  readonly recalls: readonly { readonly name: string; readonly shown: string }[];
  /** Ids of the feeds that the agent has before its eyes. */
  readonly feeds: readonly string[];
  /** What was asked for and this agent has no means for. */
  readonly lacking: readonly string[];
  /** Parts of the message that were not understood. */
  readonly unread: readonly string[];
}

/** A longer stretch without a separator is no request that anything here would know. */
const CLAUSE_CHARS = 1_000;

const SUM_UP =
  /\b(?:sum(?:s|med)? (?:it|them|this|these|both|everything|all)(?: all)? up|sum(?:ming)? up|summari[sz]e(?! of)|(?:add|total) (?:it|them|both|everything|all|these)(?: all)?(?: up| together)?|combine (?:it|them|both|the results)|put (?:it|them) together|report on (?:both|all)|(?:add|sum|total|combine)(?: up)? (?:the |both |all )?(?:the )?(?:results?|outputs?|values))(?: (?:the )?results?)?\b/gi;
const PROGRESS =
  /\b(?:(?:with |show (?:me )?|report )?(?:your |the )?progress|step[ -]by[ -]step|as you go|partial (?:results?|answers?))\b/gi;
const TOGETHER = /\b(?:all )?(?:at the same time|at once|in parallel|simultaneously|concurrently|meanwhile)\b/gi;
const PLEASANTRIES =
  /^(?:(?:run|do|start) (?:these|two|three|four|both|several|some|the following)(?: \w+)?\s*:|please|thanks?|thank you|hello|hi|hey|ok(?:ay)?|well|now|can you|could you|would you|i want you to|i'?d like (?:you )?to|let'?s|the results?|tell me|show me|answer|first|finally|it|them|both|report(?: back)?)(?:\b|(?<=:))[\s,!.:]*/i;
const SEPARATORS =
  /\s*(?:[;\n]|,|(?:[.?]|(?<!\d)!)(?=\s|$)|\b(?:and then|then|and also|and|also|as well as|while)\b)\s*/i;
const REMEMBER =
  /\b(?:remember|note)(?: that)?:? (?:my |the |our |that )?([a-z][\w -]{0,40}?) (?:is|are|=) ([^\n;,]{1,500}?)(?=\s*(?:[\n;,]|[.!?]?\s*$|\. |\b(?:and )?then\b|\band (?:also|tell|compute|calculate|list|run|what|show)\b))/gi;
const SET =
  /\bset (?:the variable |the |my )?([a-z]\w{0,40}) to ([^\n;,]{1,500}?)(?=\s*(?:[\n;,]|[.!?]?\s*$|\. |\b(?:and )?then\b|\band\b))/gi;

/** @param known names of session variables set earlier in the conversation */
export function readMessage(
  message: string,
  agent: Agent,
  known: ReadonlySet<string>,
  feeds: readonly string[],
): Reading {
  const means = new Capabilities(agent);
  const drafts: StepDraft[] = [];
  const add = (draft: StepDraft | 'lacking'): void => {
    if (draft !== 'lacking') drafts.push(draft);
  };

  const payload = findPayload(message);
  if (payload?.kind === 'text') {
    add(means.call('text_stats', 'stats', 'statistics of the text', { text: unquoted(payload.value) }, showStats));
  } else if (payload !== null) {
    add(runCode(payload.value, payload.kind, { python: payload.kind === 'python', shell: false, means }));
  }
  const words = payload === null ? message : message.slice(0, payload.start);
  const masked = mask(words.slice(0, limits.demoMessageChars));
  let text = masked.text;

  const variables = new Map<string, string>();
  for (const pattern of [REMEMBER, SET]) {
    text = text.replace(pattern, (whole, name: string, value: string) => {
      const key = variableName(name);
      if (key === null) return whole;
      variables.set(key, unquoted(unmask(masked, value)));
      return ';';
    });
  }
  for (const [key, value] of variables) {
    drafts.push({
      key: savedKey(key),
      label: `remember ${key}`,
      type: 'internal',
      name: 'set_variable',
      parameters: { key, value },
      shown: (saved) => `\${${saved}.value}`,
    });
  }

  const summary = replaced(text, SUM_UP);
  const progress = replaced(summary.text, PROGRESS);
  text = progress.text.replace(TOGETHER, ' ').replace(/\bbetween (\S+) and (\S+)/gi, 'from $1 to $2');
  const recalls: { name: string; shown: string }[] = [];
  const unread: string[] =
    words.length > limits.demoMessageChars
      ? [`everything behind the first ${limits.demoMessageChars} characters of the message`]
      : [];
  let verb = '';
  let pending: Place | null = null;
  for (const part of splitOutsideBrackets(text)) {
    let clause = part.trim();
    for (let shorter = ''; shorter !== clause;) {
      shorter = clause;
      clause = clause.replace(PLEASANTRIES, '').trim();
    }
    if (clause === '') continue;
    const { place, rest } = placeOf(clause);
    if (rest === '') {
      // "in python, compute …": the place of what comes next
      pending = place;
      continue;
    }
    clause = rest.replace(PLEASANTRIES, '');
    verb =
      /^(?:wait|sleep|pause|delay|compute|calculate|evaluate|fetch|echo|say)\b/i.exec(clause)?.[0].toLowerCase() ??
      verb;
    const name = recalled(clause, new Set([...known, ...variables.keys()]), feeds);
    if (name !== null) {
      recalls.push({ name, shown: variables.has(name) ? `\${${savedKey(name)}.value}` : `\${${name}}` });
      continue;
    }
    const found =
      clause.length > CLAUSE_CHARS ? [] : readClause(clause, { means, masked, verb, place: place ?? pending });
    pending = null;
    if (found.length === 0) unread.push(unmask(masked, clause));
    for (const draft of found) add(draft);
  }
  return {
    steps: named(drafts),
    summary: summary.found,
    progress: progress.found,
    recalls,
    lacking: [...means.lacking],
    feeds,
    unread: unread.filter((rest) => /\w{2}/.test(rest)),
  };
}

const PAYLOADS = [
  [
    'text',
    /\b(?:statistics?|stats|analy[sz]e|measure|(?:count|how many) (?:the )?(?:words|characters|sentences))\b[^:\n]{0,60}:\s*([\s\S]+)$/i,
  ],
  ['python', /\b(?:run|execute) (?:this |the following )?(?:in )?python(?: code| script)?:\s*([\s\S]+)$/i],
  [
    'shell',
    /\b(?:run|execute) (?:this |the following )?(?:in (?:the )?)?(?:shell|bash|terminal)(?: command| script)?:\s*([\s\S]+)$/i,
  ],
] as const;

/** What stands behind a colon to the end of the message and is data, not words: a text, or code. */
function findPayload(
  message: string,
): { readonly kind: (typeof PAYLOADS)[number][0]; readonly value: string; readonly start: number } | null {
  for (const [kind, pattern] of PAYLOADS) {
    const found = pattern.exec(message);
    // In backticks it says itself where it ends.
    if (found?.[1] !== undefined && !found[1].startsWith('`'))
      return { kind, value: found[1].trim(), start: found.index };
  }
  return null;
}

/** The variables that a message asks to remember; for reading a conversation again. */
export function variablesIn(message: string): string[] {
  return [REMEMBER, SET].flatMap((pattern) =>
    [...message.slice(0, limits.demoMessageChars).matchAll(pattern)].flatMap(
      (match) => variableName(match[1] ?? '') ?? [],
    ),
  );
}

/** Ids by kind and number; keys made unique. */
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

/** The variable or feed that a clause asks for, or null. */
function recalled(clause: string, known: ReadonlySet<string>, feeds: readonly string[]): string | null {
  if (/^what(?:'s| is)? (?:the )?(?:current )?(?:time|date|day)\b/i.test(clause)) {
    return feeds.find((id) => /time|date|clock|now/i.test(id)) ?? null;
  }
  const asked =
    /^(?:what(?:'s| is| are| was| were)|recall|do you remember|who is|where is|when is)\s+(?:my |the |our )?(.+)$/i.exec(
      clause,
    )?.[1];
  if (asked === undefined) return null;
  const name = variableName(asked.replace(/\b(?:again|now|today)\b/gi, ''));
  if (name === null) return null;
  if (known.has(name)) return name;
  return feeds.find((id) => id.toLowerCase() === name) ?? null;
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

function savedKey(variable: string): string {
  return `saved_${variable}`;
}

function replaced(text: string, pattern: RegExp): { text: string; found: boolean } {
  let found = false;
  const rest = text.replace(pattern, () => {
    found = true;
    return ' ';
  });
  return { text: rest, found };
}

/** Cuts at separators that stand in no bracket: `gcd(12, 18)` stays whole. */
function splitOutsideBrackets(text: string): string[] {
  const parts: string[] = [];
  let part = '';
  let depth = 0;
  for (const piece of text.split(/([()])/)) {
    if (piece === '(') depth += 1;
    else if (piece === ')') depth = Math.max(0, depth - 1);
    if (depth > 0 || piece === ')') {
      part += piece;
      continue;
    }
    const [first = '', ...rest] = piece.split(SEPARATORS);
    part += first;
    for (const next of rest) {
      parts.push(part);
      part = next;
    }
  }
  return [...parts, part];
}
