/**
 * Runs the examples of a page of the documentation, in order, in one shell.
 *
 * A block marked `sh` contains commands. Variables that it sets exist in later blocks. The block after it, marked `json`
 * or `text`, is the expected output; without one, the commands print nothing. No other block may be in the page, so every
 * block is run.
 *
 * `…` in an expected output is a placeholder:
 *
 *  - within a JSON string: any characters
 *  - within a line of a text: any characters of the line
 *  - in place of a JSON value: any value
 *  - as the last item of a list or the last member of an object: any further ones, or none
 *  - alone on a line of a text: any lines, or none
 *
 * The output of a `json` block is one document, or several, each on a line of its own in both.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { isJsonObject } from '../../src/domain/json.ts';
import type { Json } from '../../src/domain/json.ts';

/** Commands of the page, and the output that they must print. */
export interface PageExample {
  /** Of the block in the page, from 1. */
  readonly line: number;
  /** `sh`, or a language that the test runs. */
  readonly form: string;
  readonly commands: string;
  readonly expected: { readonly form: 'json' | 'text'; readonly text: string } | null;
}

const BLOCK = /^( *)```([^\n]*)\n([\s\S]*?)^ *```$/gm;

/**
 * @param languages of programs in the page that the test runs itself
 * @throws Error for a block that would not be run or compared
 */
export function readExamples(page: string, languages: readonly string[] = []): PageExample[] {
  const examples: PageExample[] = [];
  let end = 0;
  for (const { 0: block, 1: indent = '', 2: form = '', 3: raw = '', index } of page.matchAll(BLOCK)) {
    const line = page.slice(0, index).split('\n').length;
    const text = raw.replaceAll(new RegExp(`^${indent}`, 'gm'), '').trimEnd();
    const last = examples.at(-1);
    if (form === 'sh' || languages.includes(form)) examples.push({ line, form, commands: text, expected: null });
    else if (form !== 'json' && form !== 'text') throw new Error(`line ${line}: a "${form}" block is never run`);
    else if (last === undefined || last.expected !== null || page.slice(end, index).includes('\n#'))
      throw new Error(`line ${line}: this output belongs to no commands`);
    else examples[examples.length - 1] = { ...last, expected: { form, text } };
    end = index + block.length;
  }
  return examples;
}

/** Runs blocks one after the other; variables carry over. */
export class PageShell {
  readonly #replaced: readonly (readonly [written: string, used: string])[];
  readonly #folder: string;
  readonly #variables: string;

  /**
   * @param address replaces `http://127.0.0.1:8787`
   * @param folder an empty folder; the commands run in it
   * @param sites addresses of public sites, and what replaces them: a test sends no requests to the internet
   */
  constructor(address: string, folder: string, sites: Readonly<Record<string, string>> = {}) {
    this.#replaced = [['http://127.0.0.1:8787', address], ...Object.entries(sites)];
    this.#folder = folder;
    this.#variables = join(folder, '.variables');
  }

  /** @returns what the commands print. @throws Error if the last one fails */
  async run(commands: string): Promise<string> {
    const own = this.#replaced.reduce((text, [written, used]) => text.replaceAll(written, used), commands);
    const script = `set -eo pipefail\ntouch "$VARIABLES"\n. "$VARIABLES"\nset -a\n${own}\nexport -p > "$VARIABLES"`;
    const child = spawn('bash', ['-c', script], {
      cwd: this.#folder,
      env: { PATH: process.env['PATH'], VARIABLES: this.#variables },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    let errors = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (errors += chunk));
    const [code] = (await once(child, 'close')) as [number | null];
    if (code !== 0) throw new Error(`the commands exit with ${code}: ${errors}${output}\n${commands}`);
    return output;
  }
}

/** Where an output differs from the expected one; null if it does not. */
export function difference(expected: PageExample['expected'], output: string): string | null {
  if (expected === null) return output === '' ? null : `prints ${output}`;
  if (expected.form === 'text') return matchesLines(expected.text, output.trimEnd()) ? null : `prints ${output}`;
  const wanted = documentsOf(withMarks(expected.text));
  const actual = documentsOf(output);
  if (wanted.length !== actual.length) return `prints ${actual.length} documents: ${output}`;
  const places = wanted.flatMap((one, index) => differing(one, actual[index], '$'));
  return places.length === 0 ? null : `${places.join('; ')} of ${output}`;
}

const MARK = '\u0000';

/** Every `…` outside of strings as a value: `"\0"`, or a member `"\0": null`. */
function withMarks(text: string): string {
  const open: string[] = [];
  let before = '';
  return text.replaceAll(/"(?:[^"\\]|\\.)*"|\S/g, (token) => {
    const previous = before;
    before = token;
    if (token === '{' || token === '[') open.push(token);
    if (token === '}' || token === ']') open.pop();
    if (token !== '…') return token;
    const isMember = open.at(-1) === '{' && previous !== ':';
    return isMember ? '"\\u0000": null' : '"\\u0000"';
  });
}

function documentsOf(text: string): Json[] {
  try {
    return [JSON.parse(text) as Json];
  } catch {
    return text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Json);
  }
}

function differing(wanted: Json, actual: Json | undefined, path: string): string[] {
  if (wanted === MARK && actual !== undefined) return [];
  if (typeof wanted === 'string' && typeof actual === 'string') {
    return matchesParts(wanted, '[\\s\\S]*', actual) ? [] : [`${path} is ${JSON.stringify(actual)}`];
  }
  if (Array.isArray(wanted) && Array.isArray(actual)) {
    const isOpen = wanted.at(-1) === MARK;
    const items = isOpen ? wanted.slice(0, -1) : wanted;
    const length = isOpen ? items.length : Math.max(items.length, actual.length);
    return Array.from({ length }, (_, at) => at).flatMap((at) => compared(items[at], actual[at], `${path}[${at}]`));
  }
  if (isJsonObject(wanted) && isJsonObject(actual)) {
    const isOpen = Object.hasOwn(wanted, MARK);
    const names = new Set([...Object.keys(wanted), ...(isOpen ? [] : Object.keys(actual))]);
    names.delete(MARK);
    return [...names].flatMap((name) => compared(wanted[name], actual[name], `${path}.${name}`));
  }
  return JSON.stringify(wanted) === JSON.stringify(actual) ? [] : [`${path} is ${JSON.stringify(actual)}`];
}

function compared(wanted: Json | undefined, actual: Json | undefined, path: string): string[] {
  return wanted === undefined ? [`${path} is not expected`] : differing(wanted, actual, path);
}

/** Whether the text is the template with any `gap` in place of each placeholder. */
function matchesParts(template: string, gap: string, text: string): boolean {
  const parts = template.split('…').map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&'));
  return new RegExp(`^${parts.join(gap)}$`).test(text);
}

function matchesLines(template: string, text: string): boolean {
  const gap = template.split('\n').indexOf('…');
  if (gap < 0) return matchesParts(template, '.*', text);
  const before = template.split('\n').slice(0, gap);
  const after = template
    .split('\n')
    .slice(gap + 1)
    .join('\n');
  const lines = text.split('\n');
  if (!matchesParts(before.join('\n'), '.*', lines.slice(0, gap).join('\n'))) return false;
  if (after === '') return true;
  return lines.slice(gap).some((_, at) => matchesLines(after, lines.slice(gap + at).join('\n')));
}
