/** Converts one request of a message to steps. */
import type { JsonObject } from '../../domain/json.ts';
import type { Capabilities, StepDraft } from './capabilities.ts';
import { readCall } from './abilities.ts';
import type { Quoted } from './quoted.ts';
import { findExpression, findPythonTask } from './python.ts';

export interface Request {
  /** As the user wrote it, without phrases such as "in python". */
  readonly words: string;
  /** Code, JSON, URLs and similar parts in it. */
  readonly quoted: readonly Quoted[];
  /** Where the work should be done. */
  readonly place: 'python' | 'shell' | null;
  /** The previous request was a wait: "wait 2 seconds and 3 seconds". */
  readonly waits: boolean;
}

const PLACE = '(?:the |a )?(python|shell|bash|terminal)';
const PLACES = [
  new RegExp(`\\s*\\b(?:in|with|using) ${PLACE}\\s*[.:!?]*$`, 'i'),
  new RegExp(`^(?:(?:use|using|with|in) )?${PLACE}\\b(?: (?:to|for))?\\s*[:,]?\\s*`, 'i'),
];

/** Removes phrases such as "in python" or "use the shell to" from a request; the rest may be empty. */
export function placeOf(words: string): Pick<Request, 'words' | 'place'> {
  for (const pattern of PLACES) {
    const found = pattern.exec(words)?.[1]?.toLowerCase();
    if (found === undefined) continue;
    return { place: found === 'python' ? 'python' : 'shell', words: words.replace(pattern, '').trim() };
  }
  return { place: null, words };
}

type Draft = StepDraft | 'lacking';

/** Empty if the request is not understood; `lacking` if the agent lacks the capability. */
export function readRequest({ words, quoted, place, waits }: Request, capabilities: Capabilities): Draft[] {
  const data = quoted.find(({ type }) => type === 'json');
  const call = readCall(words, data?.value ?? null, capabilities.agent);
  if (call !== null) return [call];
  if (data !== undefined && place === null) {
    const query = /\bfor ([\w.[\]*?@]+)/i.exec(words)?.[1] ?? '@';
    const parameters = { data: JSON.parse(data.value) as JsonObject, query };
    return [capabilities.call('json_query', 'selection', `query ${query} in the JSON`, parameters)];
  }
  const code = quoted.filter(({ type }) => type === 'code');
  if (code.length > 0) return code.map((one) => runCode(one, place, capabilities));

  const urls = quoted.filter(({ type }) => type === 'url');
  if (urls.length > 0) return urls.map(({ value }) => readPage(value, words, capabilities));

  if (waits || isWait(words)) {
    const delays = [...words.matchAll(/(\d+(?:\.\d+)?)\s*(ms|s|sec|seconds?|min|minutes?)\b/gi)];
    if (delays.length > 0) return delays.map(([, amount, unit = 's']) => wait(Number(amount), unit, capabilities));
  }
  const phrase = /^(?:echo|say):? (.+)$/i.exec(words)?.[1];
  if (phrase !== undefined && place === null) {
    const message = unquoted(phrase);
    return [capabilities.call('echo', 'echo', `echo "${message}"`, { message }, (key) => `$${key}.message`)];
  }
  if (/\bfail(?:s|ing|ure)?\b/i.test(words)) {
    const label = 'something that fails on purpose';
    return [
      capabilities.python
        ? capabilities.runPython('failure', label, 'raise RuntimeError("failed on purpose, as asked")')
        : capabilities.call('echo', 'failure', label, { fail_times: 100 }),
    ];
  }
  const text = quoted.find(({ type }) => type === 'string');
  if (text !== undefined && /\bhow many (?:words|characters|sentences)\b/i.test(words)) {
    return [measure(text.value, capabilities)];
  }
  const task = findPythonTask(words);
  if (task !== null && place !== 'shell')
    return [capabilities.runPython(task.key, `${task.label}, in Python`, task.code)];

  const folder = /\blist (?:the )?files\b(?:.*? (?:in|of) (\/[\w./-]*))?/i.exec(words);
  if (folder !== null) {
    const path = folder[1] ?? '/';
    return [capabilities.runShell('files', `list the files in ${path}, in the shell`, `ls -la ${path} | head -n 20`)];
  }
  const command = place === 'shell' ? /^(?:run|execute) (.+)$/i.exec(words)?.[1] : undefined;
  if (command !== undefined) return [capabilities.runShell('shell_output', `\`${command}\` in the shell`, command)];
  return calculate(words, place, capabilities);
}

export function isWait(words: string): boolean {
  return /^(?:wait|sleep)\b/i.test(words);
}

export function measure(text: string, capabilities: Capabilities): Draft {
  return capabilities.call(
    'text_stats',
    'stats',
    'statistics of the text',
    { text },
    (key) =>
      `$${key}.words words, $${key}.unique_words of them unique, $${key}.sentences sentences, $${key}.characters characters; reading time $${key}.reading_time_seconds s; most frequent: $${key}.top_words`,
  );
}

/** Powers run in Python, whose integers are exact at any size. */
function calculate(words: string, place: Request['place'], capabilities: Capabilities): Draft[] {
  const expression = findExpression(words);
  if (expression === null) return [];
  const isPower = expression.includes('**');
  const key = isPower ? 'power' : 'result';
  if (capabilities.has('calculator') && place !== 'python' && !(isPower && capabilities.python)) {
    const spelled = expression.replaceAll('**', '^');
    return [capabilities.call('calculator', key, `\`${spelled}\` with the calculator`, { expression: spelled })];
  }
  const imports = expression.includes('sqrt') ? 'from math import sqrt\n' : '';
  return [capabilities.runPython(key, `\`${expression}\` in Python`, `${imports}print(${expression})`)];
}

function runCode({ value, language }: Quoted, place: Request['place'], capabilities: Capabilities): Draft {
  const firstLine = value.trim().split('\n')[0] ?? '';
  if (/^(?:sh|bash|shell)$/i.test(language) || (place === 'shell' && language === '')) {
    return capabilities.runShell('shell_output', `\`${firstLine}\` in the shell`, value);
  }
  const prints = /\bprint\s*\(|\n|^\s*(?:import|from|raise)\b|[^=!<>]=[^=]/.test(value);
  return capabilities.runPython('python_output', `\`${firstLine}\` in Python`, prints ? value : `print(${value})`);
}

function readPage(url: string, words: string, capabilities: Capabilities): Draft {
  if (/\bheadings?\b/i.test(words)) {
    const parameters = { url, selectors: { headings: 'h1, h2, h3' } };
    return capabilities.call('web_extract', 'extract', `the headings of ${url}`, parameters);
  }
  const isText = !/json|\/api\//i.test(url);
  return capabilities.call('web_fetch', 'page', `the page ${url}`, { url, max_chars: 5000 }, (key) =>
    isText ? `$${key}.text` : `$${key}`,
  );
}

function wait(amount: number, unit: string, capabilities: Capabilities): Draft {
  const unitMs = unit.toLowerCase() === 'ms' ? 1 : /^m/i.test(unit) ? 60_000 : 1_000;
  // less than an action's timeout
  const delayMs = Math.min(Math.round(amount * unitMs), 50_000);
  const parameters = { message: `waited ${delayMs} ms`, delay_ms: delayMs };
  return capabilities.call('echo', 'waited', `wait ${delayMs} ms`, parameters, (key) => `$${key}.message`);
}

/** Removes surrounding quotes. */
export function unquoted(text: string): string {
  const trimmed = text.trim();
  return /^(["'`])([\s\S]*)\1$/.exec(trimmed)?.[2] ?? trimmed;
}
