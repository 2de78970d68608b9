/** What protects, and fields that no schema knows, in manifests of the original (K10). */
import { expect, test } from 'vitest';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { migrated } from '../../support/migrated.ts';

const load = (text: string) => migrated([{ path: 'm.yaml', text, isAlone: true }]);
const problemsOf = (text: string): string[] => load(text).problems.map(formatProblem);
const warningsOf = (text: string): string[] => load(text).warnings.map(formatProblem);

const head = (kind: string): string => `kind: ${kind}\nversion: "1.0"\nname: one\nsummary: s\n`;
const agent = (rest: string): string => `${head('Agent')}persona: p\n${rest}\n`;
const tool = (rest: string): string => `${head('Tool')}implementation: {type: builtin, entrypoint: echo}\n${rest}\n`;
const flow = (rest: string): string => `${head('Workflow')}${rest}\n`;

test.each([
  ['runtime: {policies: [{do: deny}], max_iterations: 3}', 'm.yaml:6:11: runtime.policies'],
  ['config: {safety: {approval: always}}', 'config.safety.approval'],
  ['memory: {enabled: true, persistence: {redact: [a]}}', 'memory.persistence.redact'],
  ['environment: {workspace: {permissions: [read]}}', 'environment.workspace.permissions'],
])('[K10] rewriting a form of the original never drops what protects: %j', (rest, field) => {
  expect(problemsOf(agent(rest))).toEqual([
    expect.stringContaining(`${field}: has no effect here, and what protects is never ignored`),
  ]);
});

test('[K10] a sandbox of the original that allows only some commands does not go with capabilities', () => {
  const text = agent('sandbox: {allowed_commands: [ls], allowed_hosts: ["*"]}\ncapabilities: [shell]');
  expect(problemsOf(text)).toEqual([
    expect.stringMatching(/^m\.yaml:7:16: capabilities\[0\]: shell is not possible, because sandbox\.allowed_commands/),
  ]);
  const denied = agent('sandbox: {allowed_commands: ["*"], denied_commands: [rm]}\ncapabilities: [shell]');
  expect(problemsOf(denied)).toEqual([expect.stringContaining('because sandbox.denied_commands')]);
});

test.each([
  [flow('steps: [{id: a, tool: echo, aproval: always}]'), 'm.yaml:5:29: steps[0].aproval: unknown field.'],
  [flow('steps: [{id: a, type: parallel, steps: [{id: b, tool: echo, guard: deny}]}]'), 'steps[0].steps[0].guard'],
  [
    tool('parameters: [{name: n, type: integer, validation: {min: 1, maxx: 9}}]'),
    'parameters[0].validation: unknown field.',
  ],
  [
    flow(
      'trigger: {type: manual, parameters: {n: {type: integer, validation: {maxx: 9}}}}\nsteps: [{name: s, type: llm}]',
    ),
    'trigger.parameters: unknown field.',
  ],
  [agent('context_feeds: [{id: f, cache: {ttll: 9}, source: usage}]'), 'context_feeds[0].cache: unknown field.'],
])('[K10] the forms of the original have no unknown fields either: %j', (text, message) => {
  const found = problemsOf(text).filter((line) => !line.includes('does not exist'));
  expect(found).toEqual([expect.stringContaining(message)]);
});

test('[M1] fields of the original without an effect are kept under metadata, with a note', () => {
  expect(warningsOf(tool('category: demo\non_error: abort'))).toEqual([
    'm.yaml:6:1: category: category and on_error have no effect here, and are kept under metadata',
  ]);
  const { entries, problems } = load(agent('environment: {WORKSPACE_DIR: /w}'));
  expect(problems).toEqual([]);
  expect(entries[0]?.definition).toMatchObject({ variables: { WORKSPACE_DIR: '/w' } });
});
