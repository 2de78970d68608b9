/** Short manifests with all required fields, and what loading them says. `rest` has the lines that a test is about, from line 5. */
import { formatProblem } from '../../src/catalog/check/problem.ts';
import { loadManifests } from '../../src/catalog/load.ts';
import type { LoadedManifests, LoadOptions } from '../../src/catalog/load.ts';

export const head = (kind: string, name: string, version = '1.0'): string =>
  `kind: ${kind}\nversion: "${version}"\nname: ${name}\nsummary: Something\n`;

/** Each kind has the simplest implementation, if `rest` has none. */
const IMPLEMENTED = /^implementation:/m;
const orUsual = (rest: string, usual: string): string =>
  IMPLEMENTED.test(rest) ? rest : [usual, rest].filter(Boolean).join('\n');

export const tool = (name: string, rest = ''): string =>
  `${head('Tool', name)}${orUsual(rest, 'implementation: {type: builtin, entrypoint: echo}')}\n`;
export const relic = (name: string, rest = ''): string =>
  `${head('Relic', name)}${orUsual(rest, 'implementation: {type: edge, store: kv}')}\n`;
export const workflow = (name: string, rest = 'steps: [{name: a, type: llm}]'): string =>
  `${head('Workflow', name)}${rest}\n`;
/** `rest` begins in line 6: the fifth is the persona. */
export const agent = (name: string, rest = ''): string => `${head('Agent', name)}persona: You help.\n${rest}\n`;

export const filesOf = (files: Readonly<Record<string, string>>): { path: string; text: string }[] =>
  Object.entries(files).map(([path, text]) => ({ path, text }));

export const load = (files: Readonly<Record<string, string>>, options: LoadOptions = {}): LoadedManifests =>
  loadManifests(filesOf(files), options);

/** The problems, in the form that an author sees. */
export const problemsOf = (files: Readonly<Record<string, string>>, options: LoadOptions = {}): string[] =>
  load(files, options).problems.map(formatProblem);

export const warningsOf = (files: Readonly<Record<string, string>>, options: LoadOptions = {}): string[] =>
  load(files, options).warnings.map(formatProblem);

/** Problems and warnings. */
export const said = ({ problems, warnings }: LoadedManifests): string[] =>
  [...problems, ...warnings].map(formatProblem);
