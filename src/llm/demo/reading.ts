/** The requests in a user's message. The same message and agent always give the same result (L3). */
import { limits } from '../../domain/limits.ts';
import { sceneOf } from './scenes.ts';
import type { Agent, Place, Step } from './scenes.ts';

export interface Asked extends Step {
  readonly id: string;
  /** The request, as the user wrote it. */
  readonly label: string;
}

export interface Reading {
  readonly steps: readonly Asked[];
  /** A summary of the results is requested. */
  readonly summary: boolean;
  /** Intermediate output is requested. */
  readonly progress: boolean;
  /** Requested variables and feeds, with their references. */
  readonly recalls: readonly string[];
  readonly unread: readonly string[];
}

/** Longest request that any pattern recognises. */
const REQUEST_CHARS = 1_000;
/** What is not split: the text of statistics, code, JSON, addresses, quoted words, lists of numbers. */
const WHOLE =
  /\bstatistics (?:of|for)\b[^:\n]{0,60}:[^]*$|```[^]*?```|`[^`\n]+`|[[{]\s*["{}](?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}\]?|\bhttps?:\/\/[^\s"'<>]*[^\s"'<>.,;:!?)\]]|"[^"\n]*"|\b(?:average|mean) of (?:\d[\d.]{0,15}(?:, and |, ?| and )?)+/gi;
const SUM_UP =
  /\b(?:(?:sum|add) (?:it|them|both|everything) up|sum up|summari[sz]e(?: (?:it|both|the results))?|combine the results)\b/gi;
const PROGRESS = /\b(?:(?:with|show) )?progress\b/gi;
const NOISE = /\b(?:at the same time|at once|in parallel|simultaneously)\b|(?<=\d),(?=\d{3}\b)/gi;
const PLEASANTRIES =
  /^(?:(?:please|hello|hi|help|can you|could you|(?:what|who)\b.{0,20}\byou\b(?: do)?|tell me|show me|first|finally)\b[\s,!.:?]*)+/i;
const SEPARATORS = /[;\n,]|[.?!](?=\s|$)|\b(?:and|then)\b/i;
const PLACE =
  /\b(?:in|with|using) (?:the |a )?(python|shell|bash|terminal)\s*[.:!?]*$|^(?:(?:use|using|with|in) )?(?:the |a )?(python|shell|bash|terminal)\b(?: (?:to|for))?\s*[:,]?\s*/i;

/** @param known session variables that earlier messages have set @param feeds ids of the feeds in the prompt */
export function readMessage(
  message: string,
  agent: Agent,
  known: readonly string[],
  feeds: readonly string[],
): Reading {
  const { requests, ...wishes } = requestsIn(message);
  const steps: Asked[] = [];
  const recalls: string[] = [];
  const unread: string[] = [];
  const counts = new Map<string, number>();
  const nth = (name: string): number => (counts.set(name, (counts.get(name) ?? 0) + 1), counts.get(name) ?? 0);
  const add = (step: Step, label: string): void => {
    const [kind, count] = [(step.name ?? step.type).replace(/\W+/g, '_'), nth(`key ${step.key}`)];
    steps.push({ ...step, id: `${kind}_${nth(kind)}`, key: count === 1 ? step.key : `${step.key}_${count}`, label });
  };
  let pending: Place = null;
  for (const request of requests) {
    const [all = '', first, second = first] = PLACE.exec(request) ?? [];
    const place: Place = second === undefined ? pending : /python/i.test(second) ? 'python' : 'shell';
    const words = request.replace(all, '').trim();
    // "in python, compute …": the place is that of the next request.
    pending = words === '' ? place : null;
    const saved = variableIn(words);
    const asked = nameOf(/^what(?:'s| is) (?:my |the )?(.+)$/i.exec(words)?.[1]);
    const isTime = /^what(?:'s| is)? (?:the )?(?:time|date)\b/i.test(words);
    const here = steps.find(({ parameters }) => parameters['key'] === asked && asked !== '');
    const name = [...known, ...feeds].find((one) =>
      isTime ? /time|date|clock/i.test(one) : one.toLowerCase() === asked,
    );
    const step = words.length > REQUEST_CHARS ? null : sceneOf(words, place, agent);
    if (saved !== null) {
      const how = { type: 'internal', name: 'set_variable', parameters: saved, shown: '$.value' };
      add({ key: `saved_${saved.key}`, ...how }, words);
    } else if (here !== undefined) recalls.push(`**${asked}:** $${here.key}.value`);
    else if (name !== undefined) recalls.push(`**${name}:** \${${name}}`);
    else if (step !== null) add(step, request);
    else if (/\w{2}/.test(words)) unread.push(request);
  }
  if (message.length > limits.demoMessageChars) {
    unread.push(`everything after the first ${limits.demoMessageChars} characters of the message`);
  }
  return { steps, recalls, unread, ...wishes };
}

/** The variables that a message sets; used to read the conversation again. */
export function variablesIn(message: string): string[] {
  return requestsIn(message).requests.flatMap((request) => variableIn(request)?.key ?? []);
}

/** Splits a message at commas, "and" and the like. What is whole is one private-use character meanwhile. */
function requestsIn(message: string): { readonly requests: string[] } & Pick<Reading, 'summary' | 'progress'> {
  const wholes: string[] = [];
  const text = message
    .slice(0, limits.demoMessageChars)
    .replace(/[\uE000-\uF8FF]/g, ' ')
    .replace(WHOLE, (whole) => String.fromCharCode(0xe000 + wholes.push(whole) - 1))
    .replace(NOISE, '');
  const restored = (token: string): string => wholes[token.charCodeAt(0) - 0xe000] ?? '';
  const requests = text.replace(SUM_UP, ' ').replace(PROGRESS, ' ').split(SEPARATORS);
  return {
    requests: requests.map((one) =>
      one
        .trim()
        .replace(PLEASANTRIES, '')
        .replace(/[\uE000-\uF8FF]/g, restored),
    ),
    summary: text.search(SUM_UP) !== -1,
    progress: text.search(PROGRESS) !== -1,
  };
}

function variableIn(words: string): { readonly key: string; readonly value: string } | null {
  const [, name, value = ''] =
    /^remember(?: that)? (?:my |the |that )?([a-z][\w -]{0,40}?) is (.{1,500})$/i.exec(words) ?? [];
  return name === undefined ? null : { key: nameOf(name), value: value.replace(/^(["'`])(.*)\1$/, '$2') };
}

/** The name of a variable or a feed, as it is written in words. */
function nameOf(words = ''): string {
  return (words.toLowerCase().match(/[a-z0-9]+/g) ?? []).join('_').slice(0, 40);
}
