/** Fields that no schema knows (K10): what is not understood never passes as if it were. */
import { expect, test } from 'vitest';
import { loadManifests } from '../../src/catalog/load.ts';
import { formatProblem } from '../../src/catalog/check/problem.ts';

const load = (text: string) => loadManifests([{ path: 'm.yaml', text, isAlone: true }]);
const problemsOf = (text: string): string[] => load(text).problems.map(formatProblem);

const head = (kind: string): string => `kind: ${kind}\nversion: "1.0"\nname: one\nsummary: s\n`;
const agent = (rest: string): string => `${head('Agent')}persona: p\n${rest}\n`;
const tool = (rest: string): string => `${head('Tool')}implementation: {type: builtin, entrypoint: echo}\n${rest}\n`;
const relic = (rest: string): string => `${head('Relic')}implementation: {type: edge, store: kv}\n${rest}\n`;
const flow = (rest: string): string => `${head('Workflow')}${rest}\n`;

test.each([
  [agent('policy: [{do: deny}]'), 'm.yaml:6:1: policy: unknown field. Did you mean policies?'],
  [agent('imports: {tools: []}'), 'm.yaml:6:1: imports: unknown field. Did you mean import?'],
  [agent('colour: blue'), 'm.yaml:6:1: colour: unknown field.'],
  [
    agent('loop: {max_paralel_actions: 3}'),
    'm.yaml:6:8: loop.max_paralel_actions: unknown field. Did you mean max_parallel_actions or allow_parallel_actions?',
  ],
  [agent('policies: [{wenn: "true", do: ask}]'), 'm.yaml:6:13: policies[0].wenn: unknown field. Did you mean when?'],
  [agent('cognitive_engine: {fallback: [{modell: m}]}'), 'cognitive_engine.fallback[0].modell: unknown field.'],
  [agent('cognitive_engine: {fallback: {modell: m}}'), 'cognitive_engine.fallback.modell: unknown field.'],
  [agent('memory: {facts: {maxx: 3}}'), 'memory.facts.maxx: unknown field. Did you mean max?'],
  [
    agent('mcp_servers: [{name: s, url: "https://s.example", aproval: always}]'),
    'mcp_servers[0].aproval: unknown field. Did you mean approval?',
  ],
  [tool('aproval: always'), 'm.yaml:6:1: aproval: unknown field. Did you mean approval?'],
  [tool('retry: {max_attemps: 1}'), 'm.yaml:6:9: retry.max_attemps: unknown field. Did you mean max_attempts?'],
  [tool('parameters: {n: {type: integer, maximun: 3}}'), 'parameters.n.maximun: unknown field. Did you mean maximum?'],
  [tool('parameters: [{name: n, type: integer, requird: true}]'), 'parameters[0].requird: unknown field.'],
  [
    tool('parameters: {type: object, properties: {n: {type: integer, maximun: 3}}}'),
    'parameters.properties.n.maximun: unknown field. Did you mean maximum?',
  ],
  [relic('endpoint: [get]'), 'm.yaml:6:1: endpoint: unknown field. Did you mean endpoints?'],
  [relic('endpoints: {get: {efects: pure}}'), 'endpoints.get.efects: unknown field. Did you mean effects?'],
  [
    flow('steps: [{name: s, type: llm, conditon: "false"}]'),
    'steps[0].conditon: unknown field. Did you mean condition',
  ],
  [
    flow('steps: [{name: s, type: parallel, steps: [{name: t, type: llm, conditon: "false"}]}]'),
    'steps[0].steps[0].conditon: unknown field. Did you mean condition',
  ],
  [
    flow('policis: [{do: deny}]\nsteps: [{name: s, type: llm}]'),
    'm.yaml:5:1: policis: unknown field. Did you mean policies?',
  ],
])('[K10] a field that no schema knows is an error with the nearest name: %j', (text, message) => {
  const { problems, entries } = load(text);
  expect(problems.map(formatProblem)).toEqual([expect.stringContaining(message)]);
  expect(entries).toEqual([]);
});

test('[K10] values beside an unknown field are checked too', () => {
  expect(problemsOf(agent('policy: []\nloop: {mode: Supervised}'))).toEqual([
    'm.yaml:6:1: policy: unknown field. Did you mean policies?',
    'm.yaml:7:14: loop.mode: "Supervised" is not allowed (allowed: autonomous, supervised). Did you mean supervised?',
  ]);
});

test.each([
  agent('x-team: a\nmetadata: {any: {thing: 1}}\nloop: {x-note: b}\npolicies: [{do: deny, x-ticket: 7}]'),
  tool('x-team: a\nretry: {max_attempts: 1, x-note: b}\nparameters: {n: {type: integer, x-unit: m, metadata: {a: 1}}}'),
  flow('x-team: a\nsteps: [{name: s, type: llm, metadata: {a: 1}}]'),
])('[K10] metadata and fields that begin with x- are free at every depth: %j', (text) => {
  const { problems, warnings, entries } = load(text);
  expect([problems, warnings]).toEqual([[], []]);
  expect(entries[0]?.definition.metadata).toMatchObject({ 'x-team': 'a' });
});

test('[K10] the front matter of a skill is a foreign format, whose other fields are kept', () => {
  const text = '---\nname: a\ndescription: d\nallowed-tools: Read\npolicy: x\n---\nDo it.\n';
  const { problems, entries } = loadManifests([{ path: 'a/SKILL.md', text }]);
  expect(problems).toEqual([]);
  expect(entries[0]?.definition.metadata).toMatchObject({ policy: 'x' });
});

test.each([
  [agent('loop: {mode: supervized}'), 'loop.mode: "supervized" is not allowed'],
  [agent('loop: {mode: "supervised "}'), 'loop.mode: "supervised " is not allowed'],
  [
    agent('policies: [{do: Deny}]'),
    'policies[0].do: "Deny" is not allowed (allowed: allow, ask, deny). Did you mean deny?',
  ],
  [agent('client_tools: Deny'), 'client_tools: "Deny" is not allowed'],
  [agent('internal_actions: {blocked_actions: [set_variabel]}'), 'internal_actions.blocked_actions[0]: "set_variabel"'],
  [tool('approval: requird'), 'approval: "requird" is not allowed (allowed: never, always)'],
  [tool('approval: Always'), 'approval: "Always" is not allowed (allowed: never, always). Did you mean always?'],
  [tool('effects: " unsafe"'), 'effects: " unsafe" is not allowed'],
  [agent('policies:'), 'policies: must be a list, found null'],
  [agent('redact:'), 'redact: must be a list, found null'],
])('[K10] a value that protects has exactly one spelling: %j', (text, message) => {
  expect(problemsOf(text)).toEqual([expect.stringContaining(message)]);
});
