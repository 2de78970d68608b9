/** One clause of a message -> the steps that it asks for. */
import type { JsonObject } from '../../domain/json.ts';
import { readCall } from './imports.ts';
import { unmask } from './masking.ts';
import type { Masked } from './masking.ts';
import type { Capabilities, StepDraft } from './capabilities.ts';
import { findExpression, findNumberList, findPythonTask, numberListTask } from './python.ts';

/** Where a clause wants its work done. */
export type Place = 'python' | 'shell' | 'calculator';

interface ClauseContext {
  readonly means: Capabilities;
  readonly masked: Masked;
  readonly place: Place | null;
  /** The verb of this clause or of the last one that had any: "wait 2 seconds and 3 seconds". */
  readonly verb: string;
}

const PLACE = '(?:the |a )?(python3?|shell|bash|terminal|command line|calculator)';
const BEFORE = new RegExp(
  `^(?:(?:use|using|with|in|on|via)\\s+)?${PLACE}\\b(?: code| command)?(?:\\s+(?:to|for))?\\s*[:,]?\\s*`,
  'i',
);
const BEHIND = new RegExp(`\\s*\\b(?:in|on|with|using|via|by)\\s+${PLACE}(?: code)?\\s*[.:!?]*$`, 'i');

/** Takes "in python", "use the shell to …" and the like off a clause; what is left may be empty. */
export function placeOf(clause: string): { readonly place: Place | null; readonly rest: string } {
  for (const pattern of [BEHIND, BEFORE]) {
    const found = pattern.exec(clause);
    const word = found?.[1]?.toLowerCase();
    if (found === null || word === undefined) continue;
    const place = word.startsWith('python') ? 'python' : word === 'calculator' ? 'calculator' : 'shell';
    return { place, rest: clause.replace(pattern, '').trim() };
  }
  return { place: null, rest: clause };
}

/** Empty when nothing in the clause is understood; `lacking` for what the agent has no means for. */
export function readClause(clause: string, { means, masked, place, verb }: ClauseContext): (StepDraft | 'lacking')[] {
  const words = unmask(masked, clause);
  const held = masked.held.filter(({ token }) => clause.includes(token));
  const python = place === 'python' || /\bpython\b/i.test(clause);
  const shell = place === 'shell' || /\b(?:shell|bash|terminal|command line)\b/i.test(clause);

  const data = held.find(({ kind }) => kind === 'json');
  const call = readCall(words, data?.value ?? null, means.agent);
  if (call !== null) return [call];
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
  if (/^(?:echo|say)\b/i.test(clause) && place === null) {
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
  if (/\b(?:how many|count|number of) (?:the )?(?:words|characters|letters|sentences)\b/i.test(clause)) {
    const text =
      held.find(({ kind }) => kind === 'quote')?.value ??
      /\b(?:in|of):?\s+(?:this text|the text|the sentence)?:?\s*(.+)$/i.exec(words)?.[1];
    if (text !== undefined)
      return [means.call('text_stats', 'stats', 'statistics of the text', { text: unquoted(text) }, showStats)];
  }
  const source = place === 'shell' ? null : findSource(words, python);
  if (source !== null) return [runCode(source, 'python', { python: true, shell: false, means })];
  const task = findPythonTask(words);
  if (task !== null && !shell) return [means.runPython(task.key, `${task.label}, in Python`, task.code)];
  const command = findCommand(words, shell);
  if (command !== null) return [means.runShell(command.key, command.label, command.command)];
  return readSum(words, { place, means });
}

function readSum(
  words: string,
  { place, means }: { readonly place: Place | null; readonly means: Capabilities },
): (StepDraft | 'lacking')[] {
  const list = findNumberList(words);
  if (list !== null) {
    if (place !== 'python' && means.has('calculator') && list.calculator !== null) {
      return [means.call('calculator', list.key, list.label, { expression: list.calculator })];
    }
    return [means.runPython(list.key, list.label, numberListTask(list))];
  }
  const sum = findExpression(words);
  if (sum === null) return [];
  const preferPython = place === 'python' || (place !== 'calculator' && sum.power && means.python);
  if (!preferPython && means.has('calculator')) {
    return [
      means.call('calculator', sum.key, `\`${sum.calculator}\` with the calculator`, { expression: sum.calculator }),
    ];
  }
  return [means.runPython(sum.key, `\`${sum.label}\` in Python`, sum.code)];
}

/** @param language the word behind a fence's backticks, or empty */
export function runCode(
  source: string,
  language: string,
  { python, shell, means }: { readonly python: boolean; readonly shell: boolean; readonly means: Capabilities },
): StepDraft | 'lacking' {
  const inShell =
    /^(?:sh|bash|shell|zsh|console)$/i.test(language) ||
    (!python && language === '' && (shell || COMMAND_LINE.test(source)));
  const firstLine = source.trim().split('\n')[0] ?? '';
  if (inShell) return means.runShell('shell_output', `\`${firstLine}\` in the shell`, source);
  const printed = /\bprint\s*\(|\n|^\s*(?:import|from|raise|def|class|for|while|if)\b|[^=!<>]=[^=]/.test(source)
    ? source
    : `print(${source})`;
  return means.runPython('python_output', `\`${firstLine}\` in Python`, printed);
}

function readPage(url: string, clause: string, means: Capabilities): StepDraft | 'lacking' {
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

function wait(amount: number, unit: string, said: string | undefined, means: Capabilities): StepDraft | 'lacking' {
  const factor = /^m(?:s|illi)/i.test(unit) ? 1 : /^m/i.test(unit) ? 60_000 : 1_000;
  // An action ends at its time-out, and this shows waiting, not time-outs.
  const delayMs = Math.min(Math.round(amount * factor), 50_000);
  const message = said === undefined ? `waited ${delayMs} ms` : unquoted(said);
  return means.call('echo', 'waited', `wait ${delayMs} ms`, { message, delay_ms: delayMs }, (key) => `$${key}.message`);
}

const COMMANDS =
  'ls|cat|echo|pwd|uname|df|du|find|grep|head|tail|wc|date|whoami|hostname|env|seq|sort|mkdir|touch|printf|id|uptime|ps';
const COMMAND_LINE = new RegExp(`^(?:${COMMANDS})\\b(?!\\s*[=(])`);

/** Python source that stands in the clause without backticks: `print(1 + 1)`, `x = 3`. */
function findSource(words: string, python: boolean): string | null {
  const source = /^(?:(?:run|execute|evaluate)(?: the code)?:?\s+)?(.+)$/i.exec(words)?.[1] ?? '';
  if (/^(?:print\s*\(|import \w|from \w+ import|[a-z_]\w*\s*=[^=])/i.test(source)) return source;
  if (!python) return null;
  const said = /^(?:print|say|output)\s+([^\d(].*)$/i.exec(source)?.[1];
  if (said !== undefined) return `print(${JSON.stringify(unquoted(said))})`;
  return /^[a-z_][\w.]*\(.*\)$/i.test(source) && findExpression(source) === null && findPythonTask(source) === null
    ? source
    : null;
}

function findCommand(words: string, shell: boolean): { key: string; label: string; command: string } | null {
  const asked = unquoted(/^(?:(?:run|execute)(?: the command)?:?\s+)?(.+)$/i.exec(words)?.[1] ?? '');
  if (
    COMMAND_LINE.test(asked) ? shell || /^(?:run|execute)\b/i.test(words) : shell && /^(?:run|execute)\b/i.test(words)
  ) {
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
  if (
    /\b(?:list|show|what|which|see|display|print|get)\b.*\b(?:files?|director(?:y|ies)|folders?)\b|^ls\b/i.test(
      words,
    ) ||
    /\b(?:directory|folder|file) (?:listing|list|contents?)\b/i.test(words) ||
    (shell && /\b(?:files?|director(?:y|ies)|folders?)\b/i.test(words))
  ) {
    const here = /\b(?:current|working|this) (?:directory|folder)\b|\bhere\b/i.test(words);
    return here
      ? { key: 'files', label: 'list the files of the working directory, in the shell', command: 'pwd; ls -la' }
      : { key: 'files', label: `list the files in ${place}, in the shell`, command: `ls -la ${place} | head -n 20` };
  }
  if (/\b(?:environment variables?|env)\b/i.test(words))
    return { key: 'environment', label: 'show the environment', command: 'env | sort' };
  if (shell && /\b(?:date|time)\b/i.test(words))
    return { key: 'date', label: 'ask the shell for the date', command: 'date' };
  if (/\b(?:disk|free) (?:usage|space)\b/i.test(words))
    return { key: 'disk', label: 'show the disk usage, in the shell', command: 'df -h 2>/dev/null || du -sh /tmp' };
  if (/\b(?:kernel|operating system|os|system) (?:version|name|info(?:rmation)?)\b/i.test(words))
    return { key: 'system', label: 'ask the shell for the system', command: 'uname -a 2>/dev/null || hostname' };
  if (/\bworking directory\b/i.test(words))
    return { key: 'directory', label: 'ask the shell for the working directory', command: 'pwd' };
  if (shell && /\b(?:who am i|user)\b/i.test(words))
    return { key: 'user', label: 'ask the shell for the user', command: 'whoami' };
  return null;
}

export function showStats(key: string): string {
  return `$${key}.words words, $${key}.unique_words of them different, $${key}.sentences sentences, $${key}.characters characters; reading time $${key}.reading_time_seconds s; most frequent: $${key}.top_words`;
}

/** Without the quotes around it. */
export function unquoted(text: string): string {
  const trimmed = text.trim();
  return /^(["'`])([\s\S]*)\1$/.exec(trimmed)?.[2] ?? /^“([\s\S]*)”$/.exec(trimmed)?.[1] ?? trimmed;
}
