/**
 * Reads a person's message by patterns: which steps it asks for, in which order, and what it says
 * that nothing here understands. No language model, no state: the same message and the same agent
 * give the same reading (L3).
 */
import type { JsonObject } from '../domain/json.ts';
import type { ModelRequest } from '../domain/ports.ts';
import { findExpression, findNumberList, findPythonTask, numberListTask } from './demo-python.ts';
import { mask, unmask } from './demo-masking.ts';
import type { Masked } from './demo-masking.ts';

/** One thing to do. */
export interface Step {
  readonly id: string;
  /** The name under which its result is shown. */
  readonly key: string;
  /** What it is, for people. */
  readonly label: string;
  readonly type: 'python' | 'shell' | 'tool' | 'internal';
  readonly name: string | null;
  readonly parameters: JsonObject;
  /** How the result is shown in an answer, `$key` unless parts of it read better. */
  readonly shown: string;
}

/** A step before it has got its id and its unique key. */
type StepDraft = Omit<Step, 'id' | 'shown'> & { readonly shown?: (key: string) => string };

export interface Reading {
  readonly steps: readonly Step[];
  /** Sum up what the steps came to. */
  readonly summary: boolean;
  /** Say something before everything is done. */
  readonly progress: boolean;
  /** Variables and feeds that are asked for, and the reference that stands for each. */
  readonly recalls: readonly { readonly name: string; readonly shown: string }[];
  /** What was asked for and this agent has no means for. */
  readonly lacking: readonly string[];
  /** Parts of the message that were not understood. */
  readonly unread: readonly string[];
}

type Agent = NonNullable<ModelRequest['agent']>;

/** What an agent can do, as far as steps need it. */
class Means {
  readonly lacking = new Set<string>();
  readonly #agent: Agent;

  constructor(agent: Agent) {
    this.#agent = agent;
  }

  get python(): boolean {
    return this.#agent.capabilities.includes('python');
  }

  has(tool: string): boolean {
    return this.#agent.tools.some(({ name }) => name === tool);
  }

  runPython(key: string, label: string, code: string): StepDraft | 'lacking' {
    if (!this.python) return this.#lack('Python');
    return { key, label, type: 'python', name: null, parameters: { code } };
  }

  runShell(key: string, label: string, command: string): StepDraft | 'lacking' {
    if (!this.#agent.capabilities.includes('shell')) return this.#lack('a shell');
    return { key, label, type: 'shell', name: null, parameters: { command } };
  }

  call(
    tool: string,
    key: string,
    label: string,
    parameters: JsonObject,
    shown?: (key: string) => string,
  ): StepDraft | 'lacking' {
    if (!this.has(tool)) return this.#lack(`the tool ${tool}`);
    return { key, label, type: 'tool', name: tool, parameters, ...(shown === undefined ? {} : { shown }) };
  }

  #lack(what: string): 'lacking' {
    this.lacking.add(what);
    return 'lacking';
  }
}

/** A longer stretch without a separator is no request that anything here would know. */
const CLAUSE_CHARS = 1_000;

const SUM_UP =
  /\b(?:sum(?:s|med)? (?:it|them|this|these|both|everything|all)(?: all)? up|sum(?:ming)? up|summari[sz]e(?! of)|(?:add|total) (?:it|them|both|everything|all|these)(?: all)?(?: up| together)?|combine (?:it|them|both|the results)|put (?:it|them) together|report on (?:both|all))(?: (?:the )?results?)?\b/gi;
const PROGRESS =
  /\b(?:(?:with |show (?:me )?|report )?(?:your |the )?progress|step[ -]by[ -]step|as you go|partial (?:results?|answers?))\b/gi;
const TOGETHER = /\b(?:all )?(?:at the same time|at once|in parallel|simultaneously|concurrently|meanwhile)\b/gi;
const PLEASANTRIES =
  /^(?:please|thanks?|thank you|hello|hi|hey|ok(?:ay)?|well|now|can you|could you|would you|i want you to|i'?d like (?:you )?to|let'?s|the results?|tell me|show me|answer|first|finally|it|them|both|report(?: back)?)\b[\s,!.:]*/i;
const SEPARATORS = /\s*(?:[;\n]|,|[.!?](?=\s|$)|\b(?:and then|then|and also|and|also|as well as|while)\b)\s*/i;
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
  const means = new Means(agent);
  const drafts: StepDraft[] = [];
  const add = (draft: StepDraft | 'lacking'): void => {
    if (draft !== 'lacking') drafts.push(draft);
  };

  const stats = /\b(?:statistics?|stats|analy[sz]e|measure|count the words)\b[^:\n]{0,60}:\s*([\s\S]+)$/i.exec(message);
  if (stats?.[1] !== undefined && !stats[1].startsWith('```')) {
    add(means.call('text_stats', 'stats', 'statistics of the text', { text: unquoted(stats[1]) }, showStats));
  }
  const masked = mask(stats === null ? message : message.slice(0, stats.index));
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
  const unread: string[] = [];
  let verb = '';
  for (const part of splitOutsideBrackets(text)) {
    let clause = part.trim();
    for (let shorter = ''; shorter !== clause;) {
      shorter = clause;
      clause = clause.replace(PLEASANTRIES, '').trim();
    }
    if (clause === '') continue;
    verb =
      /^(?:wait|sleep|pause|delay|compute|calculate|evaluate|fetch|echo|say)\b/i.exec(clause)?.[0].toLowerCase() ??
      verb;
    const name = recalled(clause, new Set([...known, ...variables.keys()]), feeds);
    if (name !== null) {
      recalls.push({ name, shown: variables.has(name) ? `\${${savedKey(name)}.value}` : `\${${name}}` });
      continue;
    }
    const found = clause.length > CLAUSE_CHARS ? [] : readClause(clause, { means, masked, verb });
    if (found.length === 0) unread.push(unmask(masked, clause));
    for (const draft of found) add(draft);
  }
  return {
    steps: named(drafts),
    summary: summary.found,
    progress: progress.found,
    recalls,
    lacking: [...means.lacking],
    unread: unread.filter((rest) => /\w{2}/.test(rest)),
  };
}

/** The variables that a message asks to remember; for reading a conversation again. */
export function variablesIn(message: string): string[] {
  return [REMEMBER, SET].flatMap((pattern) =>
    [...message.matchAll(pattern)].flatMap((match) => variableName(match[1] ?? '') ?? []),
  );
}

interface ClauseContext {
  readonly means: Means;
  readonly masked: Masked;
  /** The verb of this clause or of the last one that had any: "wait 2 seconds and 3 seconds". */
  readonly verb: string;
}

function readClause(clause: string, { means, masked, verb }: ClauseContext): (StepDraft | 'lacking')[] {
  const words = unmask(masked, clause);
  const held = masked.held.filter(({ token }) => clause.includes(token));
  const python = /\bpython\b/i.test(clause);
  const shell = /\b(?:shell|bash|terminal|command line)\b/i.test(clause);

  const data = held.find(({ kind }) => kind === 'json');
  if (data !== undefined && !python && !shell) {
    const written =
      held.find(({ kind }) => kind === 'code')?.value ??
      /\b(?:for|query|select|get|find)\s+([\w.[\]*?@]+)/i.exec(clause)?.[1];
    return [
      means.call('json_query', 'selection', `query ${written ?? 'the keys'} in the JSON`, {
        data: JSON.parse(data.value) as JsonObject,
        query: written ?? (data.value.startsWith('[') ? '@' : 'keys(@)'),
      }),
    ];
  }
  const code = held.filter(({ kind }) => kind === 'code' || kind === 'fence');
  if (code.length > 0) return code.map(({ value, language }) => runCode(value, language, { python, shell, means }));

  const urls = held.filter(({ kind }) => kind === 'url');
  if (urls.length > 0) return urls.map(({ value }) => readPage(value, clause, means));

  const waits = [...clause.matchAll(/(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|min|minutes?)\b/gi)];
  if (waits.length > 0 && /^(?:wait|sleep|pause|delay|echo|say)/.test(verb)) {
    const said = /^(?:echo|say)\s+(.+?)\s+(?:after|in|with)\b/i.exec(words)?.[1];
    return waits.map(([, amount, unit]) => wait(Number(amount), unit ?? 's', said, means));
  }
  if (/^(?:echo|say)\b/i.test(clause)) {
    const said = unquoted(words.replace(/^(?:echo|say):?\s*/i, ''));
    return [means.call('echo', 'echo', `echo "${said}"`, { message: said }, (key) => `$${key}.message`)];
  }
  if (/\b(?:fail(?:s|ing|ure)?|go wrong|raise an? (?:error|exception))\b/i.test(clause)) {
    return [
      means.python
        ? means.runPython(
            'failure',
            'something that fails on purpose',
            'raise RuntimeError("failed on purpose, as asked")',
          )
        : means.call('echo', 'failure', 'something that fails on purpose', { fail_times: 100 }),
    ];
  }
  const task = findPythonTask(clause);
  if (task !== null && !shell) return [means.runPython(task.key, `${task.label}, in Python`, task.code)];
  const command = findCommand(words, shell);
  if (command !== null) return [means.runShell(command.key, command.label, command.command)];
  return readSum(words, { python, means });
}

function readSum(
  words: string,
  { python, means }: { readonly python: boolean; readonly means: Means },
): (StepDraft | 'lacking')[] {
  const list = findNumberList(words);
  if (list !== null) {
    if (!python && means.has('calculator') && list.calculator !== null) {
      return [means.call('calculator', list.key, list.label, { expression: list.calculator })];
    }
    return [means.runPython(list.key, list.label, numberListTask(list))];
  }
  const sum = findExpression(words);
  if (sum === null) return [];
  const preferPython = python || (sum.power && means.python);
  if (!preferPython && means.has('calculator')) {
    return [
      means.call('calculator', sum.key, `\`${sum.calculator}\` with the calculator`, { expression: sum.calculator }),
    ];
  }
  return [means.runPython(sum.key, `\`${sum.label}\` in Python`, sum.code)];
}

function runCode(
  source: string,
  language: string,
  { python, shell, means }: { readonly python: boolean; readonly shell: boolean; readonly means: Means },
): StepDraft | 'lacking' {
  const looksLikeShell =
    /^(?:ls|cat|echo|pwd|uname|df|du|find|grep|head|tail|wc|date|whoami|env|seq|sort|mkdir|touch)\b(?!\s*[=(])/;
  const inShell =
    /^(?:sh|bash|shell|zsh|console)$/i.test(language) ||
    (!python && language === '' && (shell || looksLikeShell.test(source)));
  const firstLine = source.trim().split('\n')[0] ?? '';
  if (inShell) return means.runShell('shell_output', `\`${firstLine}\` in the shell`, source);
  const printed = /\bprint\s*\(|\n|^\s*(?:import|from|raise|def|class|for|while|if)\b|[^=!<>]=[^=]/.test(source)
    ? source
    : `print(${source})`;
  return means.runPython('python_output', `\`${firstLine}\` in Python`, printed);
}

function readPage(url: string, clause: string, means: Means): StepDraft | 'lacking' {
  const selectors: JsonObject = {};
  if (/\b(?:headings?|headlines?|titles?)\b/i.test(clause)) selectors['headings'] = 'h1, h2, h3';
  if (/\bparagraphs?\b/i.test(clause)) selectors['paragraphs'] = 'p';
  const links = /\blinks?\b/i.test(clause);
  const extract = links || Object.keys(selectors).length > 0 || /\bextract\b/i.test(clause);
  if (extract && (means.has('web_extract') || !means.has('web_fetch'))) {
    const parameters = {
      url,
      ...(Object.keys(selectors).length > 0 ? { selectors } : {}),
      ...(links ? { links } : {}),
    };
    return means.call('web_extract', 'extract', `what the page ${url} holds`, parameters);
  }
  const isText = !/json|\/api\//i.test(url);
  return means.call('web_fetch', 'page', `the page ${url}`, { url, max_chars: 5000 }, (key) =>
    isText ? `$${key}.text` : `$${key}`,
  );
}

function wait(amount: number, unit: string, said: string | undefined, means: Means): StepDraft | 'lacking' {
  const factor = /^m(?:s|illi)/i.test(unit) ? 1 : /^m/i.test(unit) ? 60_000 : 1_000;
  // An action ends at its time-out, and this shows waiting, not time-outs.
  const delayMs = Math.min(Math.round(amount * factor), 50_000);
  const message = said === undefined ? `waited ${delayMs} ms` : unquoted(said);
  return means.call('echo', 'waited', `wait ${delayMs} ms`, { message, delay_ms: delayMs }, (key) => `$${key}.message`);
}

function findCommand(words: string, shell: boolean): { key: string; label: string; command: string } | null {
  const asked =
    /^(?:run|execute)\s+(.+?)\s+(?:in|on|with|using)\s+(?:the |a )?(?:shell|bash|terminal)$/i.exec(words)?.[1] ??
    /^(?:in|using|with) (?:the |a )?(?:shell|bash|terminal)[:,]?\s*(?:run|execute)?:?\s+(.+)$/i.exec(words)?.[1];
  if (asked !== undefined && !/\b(?:command|files)\b/i.test(asked)) {
    return { key: 'shell_output', label: `\`${asked}\` in the shell`, command: asked };
  }
  const place = /\b(?:in|of|under)\s+(\/[\w./-]*)/.exec(words)?.[1] ?? '/';
  if (/\bhow many files|\bcount (?:the |all )?files\b/i.test(words)) {
    return {
      key: 'file_count',
      label: `count the files in ${place}, in the shell`,
      command: `find ${place} -maxdepth 2 -type f | wc -l`,
    };
  }
  if (/\b(?:list|show|what|which|see|display)\b.*\b(?:files?|director(?:y|ies)|folders?)\b|^ls\b/i.test(words)) {
    const here = /\b(?:current|working|this) (?:directory|folder)\b|\bhere\b/i.test(words);
    return here
      ? { key: 'files', label: 'list the files of the working directory, in the shell', command: 'pwd; ls -la' }
      : { key: 'files', label: `list the files in ${place}, in the shell`, command: `ls -la ${place} | head -n 20` };
  }
  if (/\b(?:environment variables?|env)\b/i.test(words))
    return { key: 'environment', label: 'show the environment', command: 'env | sort' };
  if (shell && /\b(?:date|time)\b/i.test(words))
    return { key: 'date', label: 'ask the shell for the date', command: 'date' };
  return null;
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
    const kind = draft.name ?? draft.type;
    const nth = next(`key ${draft.key}`);
    const key = nth === 1 ? draft.key : `${draft.key}_${nth}`;
    return { ...draft, id: `${kind}_${next(kind)}`, key, shown: shown === undefined ? `$${key}` : shown(key) };
  });
}

function showStats(key: string): string {
  return `$${key}.words words, $${key}.unique_words of them different, $${key}.sentences sentences, $${key}.characters characters; reading time $${key}.reading_time_seconds s; most frequent: $${key}.top_words`;
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

function unquoted(text: string): string {
  const trimmed = text.trim();
  return /^(["'`])([\s\S]*)\1$/.exec(trimmed)?.[2] ?? /^“([\s\S]*)”$/.exec(trimmed)?.[1] ?? trimmed;
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
