/** What the demo model recognises: a row for each kind of request, within the agent's tools and capabilities (L3, X4). */
import type { Json, JsonObject } from '../../domain/json.ts';
import type { ModelRequest } from '../../domain/ports/model.ts';

export type Agent = NonNullable<ModelRequest['agent']>;

/** One action of the demo. */
export interface Step {
  /** Output key of its result. */
  readonly key: string;
  readonly type: string;
  readonly name: string | null;
  readonly parameters: JsonObject;
  /** How an answer shows the result, with `$` for its key; absent: all of it. */
  readonly shown?: string | undefined;
}

/** Where the user wants the work to be done. */
export type Place = 'python' | 'shell' | null;

/** `means` is a place or the name of a tool. In the code or the parameters, `$1` is what the pattern found. */
type Row = readonly [pattern: RegExp, means: string, key: string, work: string | JsonObject, shown?: string];

const STATISTICS =
  '$.words words, $.unique_words of them unique, $.sentences sentences, $.characters characters; reading time $.reading_time_seconds s; most frequent: $.top_words';
const PI = `unit = 10 ** ($1 + 10)
arctan = lambda x: sum((-1) ** k * unit // ((2 * k + 1) * x ** (2 * k + 1)) for k in range(2 * $1 + 20))
print("3." + str(4 * (4 * arctan(5) - arctan(239)) // 10 ** 10)[1:])`;
const PRIMES = 'print([n for n in range(2, 20 * $1) if all(n % p for p in range(2, int(n ** 0.5) + 1))][:$1])';
const FIBONACCI = 'a, b = 0, 1\nfor _ in range($1):\n    a, b = b, a + b\nprint(a)';
const AVERAGE =
  'numbers = [float(n) for n in "$1".replace(",", " ").split() if n != "and"]\nprint(sum(numbers) / len(numbers))';
const FAILURE = 'raise RuntimeError("failed on purpose, as asked")';

/** The first row that matches is taken. Those of code come first, so that nothing in it is a request. */
const ROWS: readonly Row[] = [
  [/```(?:sh|bash|shell)\n(.*?)\n?```/is, 'shell', 'shell_output', '$1'],
  [/^(?:run|execute) `([^`]+)`$/i, 'in shell', 'shell_output', '$1'],
  [
    /(?:`{3}\w*\s?|`)(?=[^`]*(?:print\s*\(|\S\n+\S|import|raise|[^=!<>]=[^=]))([^`]+?)\n?`/s,
    'python',
    'python_output',
    '$1',
  ],
  [/(?:`{3}\w*\s?|`)([^`]+?)\n?`/s, 'python', 'python_output', 'print($1)'],
  [/\bstatistics (?:of|for)\b[^:\n]{0,60}:\s*(\S.*)$/is, 'text_stats', 'stats', { text: '$1' }, STATISTICS],
  [/\bhow many (?:words|characters|sentences) .*"(.*)"/i, 'text_stats', 'stats', { text: '$1' }, STATISTICS],
  [/^(?:echo|say):? (?:"(.+)"|(.+))$/i, 'echo', 'echo', { message: '$1$2' }, '$.message'],
  [/^query ([[{].*?[}\]])(?: for ([\w.[\]*?@]+))?$/is, 'json_query', 'selection', { data: '$1', query: '$2' }],
  [/\bheadings? .*(https?:[^\s"')]+)/i, 'web_extract', 'extract', { url: '$1', selectors: { headings: 'h1, h2, h3' } }],
  [/(https?:[^\s"')]*(?:json|\/api\/)[^\s"')]*)/i, 'web_fetch', 'page', { url: '$1', max_chars: 5000 }],
  [/(https?:[^\s"')]+)/i, 'web_fetch', 'page', { url: '$1', max_chars: 5000 }, '$.text'],
  [/\bfail(?:s|ing|ure)?\b/i, 'python', 'failure', FAILURE],
  [/\b(\d{1,4})(?:st|nd|rd|th)? fibonacci\b/i, 'python', 'fibonacci', FIBONACCI],
  [/\bfactorial of (\d{1,3})\b/i, 'python', 'factorial', 'import math\nprint(math.factorial($1))'],
  [/\bfirst (\d{1,4}) primes?\b/i, 'python', 'primes', PRIMES],
  [/\bpi (?:to|with) (\d{1,3}) (?:digits|decimals|places)\b/i, 'python', 'pi', PI],
  [/\bsha256 of "?([\w .-]{1,100})/i, 'python', 'hash', 'import hashlib\nprint(hashlib.sha256(b"$1").hexdigest())'],
  [/\b(\d{1,5}) choose (\d{1,5})\b/i, 'python', 'combinations', 'import math\nprint(math.comb($1, $2))'],
  [/\b(?:average|mean) of (\d[\d., and]*)$/i, 'python', 'average', AVERAGE],
  [/\blist (?:the )?files\b.*? (?:in|of) (\/[\w./-]*)/i, 'shell', 'files', 'ls -la $1 | head -n 20'],
  [/\blist (?:the )?files\b/i, 'shell', 'files', 'ls -la / | head -n 20'],
  [/^(?:run|execute) (.+)$/i, 'in shell', 'shell_output', '$1'],
];

/** Words of arithmetic in Python's syntax. */
const OPERATORS: readonly (readonly [RegExp, string])[] = [
  [/^(?:(?:what(?:'s| is)|how much is|compute|calculate|evaluate|the (?:value|result) of|the)\s+)+|[\s?=.!:]+$/g, ''],
  [/\btimes\b/g, '*'],
  [/\^|\bto the power of\b/g, '**'],
  [/\bsquare root of (\d+(?:\.\d+)?)/g, 'sqrt($1)'],
  [/(\d+(?:\.\d+)?)\s*(?:%|percent) of\s+/g, '$1/100*'],
];

/** @returns null if the request is not understood, or the agent has not the means for it */
export function sceneOf(words: string, place: Place, agent: Agent): Step | null {
  const target = targetIn(words, agent);
  if (target !== null) return target;
  for (const [pattern, means, key, work, shown] of ROWS) {
    const found = pattern.exec(words);
    if (found === null || (means === 'in shell' && place !== 'shell')) continue;
    const fill = (text: string): string => text.replace(/\$(\d)/g, (_, group: number) => found[group] ?? '');
    if (typeof work === 'string') return step(means.replace('in ', ''), key, fill(work), agent, shown);
    const parameters = Object.entries(work).map(([name, value]) => {
      const text = typeof value === 'string' ? fill(value) : value;
      return [name, name === 'data' ? jsonIn(words) : text === '' ? '@' : text] as const;
    });
    return step(means, key, Object.fromEntries(parameters), agent, shown);
  }
  const [, amount, unit = ''] = /^(?:(?:wait|sleep)\s+)?(\d+(?:\.\d+)?)\s*(ms|m|s)[a-z]*$/i.exec(words) ?? [];
  if (amount === undefined) return calculation(words, place, agent);
  // Less than an action's timeout.
  const delay = Math.min(Math.round(Number(amount) * ({ ms: 1, s: 1_000 }[unit.toLowerCase()] ?? 60_000)), 50_000);
  return step('echo', 'waited', { message: `waited ${delay} ms`, delay_ms: delay }, agent, '$.message');
}

function step(means: string, key: string, work: string | JsonObject, agent: Agent, shown?: string): Step | null {
  if (typeof work === 'string') {
    const parameters = means === 'python' ? { code: work } : { command: work };
    return agent.capabilities.some((one) => one === means) ? { key, type: means, name: null, parameters } : null;
  }
  const isThere = agent.tools.some(({ name }) => name === means);
  return isThere ? { key, type: 'tool', name: means, parameters: work, shown } : null;
}

/** Powers run in Python, whose integers are exact at any size. */
function calculation(words: string, place: Place, agent: Agent): Step | null {
  const text = OPERATORS.reduce((rest, [word, sign]) => rest.replace(word, sign), words.toLowerCase());
  if (!/^[\d\s.+\-*/%()]+$/.test(text.replaceAll('sqrt(', '(')) || !/\d\s*[-+*/%]|sqrt/.test(text)) return null;
  const code = `${text.includes('sqrt') ? 'from math import sqrt\n' : ''}print(${text})`;
  const [isPower, key] = text.includes('**') ? [true, 'power'] : [false, 'result'];
  const inPython = step('python', key, code, agent);
  const inTool = step('calculator', key, { expression: text.replaceAll('**', '^') }, agent);
  if (place === 'python') return inPython;
  return isPower ? (inPython ?? inTool) : (inTool ?? inPython);
}

/** A request that names another agent, a tool, a workflow, or an endpoint of a relic. */
function targetIn(words: string, { agents = [], tools, workflows = [], relics = [] }: Agent): Step | null {
  const [, verb = '', called = '', rest = ''] =
    /^(ask |use |call |run )?(?:the )?(?:tool |workflow )?([\w-]+(?:\.[\w-]+)?)(?=\W|$)(?:\s*:|\s+to\b)?\s*(.*)$/is.exec(
      words,
    ) ?? [];
  const named = ({ name }: { readonly name: string }): boolean => name.toLowerCase() === called.toLowerCase();
  const agent = agents.map((name) => ({ name })).find(named)?.name;
  if (/ask/i.test(verb) && agent !== undefined) {
    return { key: `answer_of_${agent}`, type: 'agent', name: agent, parameters: { message: rest } };
  }
  const kinds = { tool: /use|call/i.test(verb) ? tools : [], workflow: workflows, relic: relics };
  for (const [type, all] of Object.entries(kinds)) {
    const target = all.find(named);
    if (target === undefined) continue;
    const parameters = (jsonIn(rest) ?? (type === 'tool' ? sampleOf(target.parameters) : {})) as JsonObject;
    return { key: target.name.replace(/\W+/g, '_').slice(0, 40), type, name: target.name, parameters };
  }
  return null;
}

function jsonIn(words: string): Json {
  try {
    return JSON.parse(/^[^[{]*(.*[\]}])/s.exec(words)?.[1]?.replace(/ for [^"]*$/, '') ?? 'null');
  } catch {
    return null;
  }
}

/** The required members of a schema: numbers, and for the rest their names. */
function sampleOf({ properties, required }: JsonObject): JsonObject {
  const schemas = (properties ?? {}) as Readonly<Record<string, JsonObject>>;
  const isNumber = (name: string): boolean => /^(?:integer|number)$/.test(String(schemas[name]?.['type']));
  const names = Array.isArray(required) ? required.map(String) : [];
  return Object.fromEntries(names.map((name) => [name, isNumber(name) ? 2 : name]));
}
