import { expect, test } from 'vitest';
import { loadManifests } from '../../src/catalog/load.ts';
import { limits } from '../../src/domain/limits.ts';
import { DEFAULT_PROTOCOL } from '../../src/domain/manifests/agent.ts';
import { agent, filesOf, said, tool } from '../support/manifests.ts';

/** One file is given alone; several are a folder. */
const load = (files: Readonly<Record<string, string>>) => {
  const all = filesOf(files);
  return loadManifests(all.map((file) => ({ ...file, isAlone: all.length === 1 })));
};

/** The problems in the form that an author sees. */
const problemsOf = (files: Readonly<Record<string, string>>): string[] => said({ ...load(files), warnings: [] });

test('[M8] an agent with only the required fields gets every default', () => {
  const { catalog, problems, warnings } = load({ 'a.yaml': agent('helper') });
  expect(problems).toEqual([]);
  expect(warnings).toEqual([]);
  expect(catalog.agent('helper')?.agent).toMatchObject({
    kind: 'Agent',
    persona: { agent: 'You help.', user: '', examples: [] },
    engine: {
      primary: { provider: null, model: null, endpoint: null },
      fallbacks: [],
      routing: 'failover',
      parameters: {},
    },
    imports: { tools: [], agents: [], relics: [], workflows: [] },
    capabilities: [],
    internalActions: { enabled: true, allowed: null, blocked: [] },
    protocol: DEFAULT_PROTOCOL,
    loop: {
      mode: 'autonomous',
      maxIterations: limits.maxIterations,
      maxParallelActions: limits.maxParallelActions,
      maxParallelByType: {},
    },
    budgets: { seconds: limits.runSeconds, modelCalls: limits.modelCallsPerRun, tokens: null, cost: null },
    variables: {},
  });
});

test('[M8] every field of an agent reaches its definition', () => {
  const { catalog, problems } = load({
    'agents/full.yaml': agent(
      'full',
      `description: Long text
author: someone
tags: [a, b]
cognitive_engine:
  primary: {provider: openai, model: m1, endpoint: "https://models.example.org/v1"}
  fallback: [{model: m2}, {provider: groq, model: m3, api_key_secret: TOOL_GROQ_KEY}]
  router: {policy: lowest_cost}
  timeouts: {first_token: 2m, between_tokens: 20}
  parameters: {temperature: 0.2}
  prices: {m1: {input: 2, output: 8}, m2: {input: 1, output: 4, cached_input: 0.25}}
capabilities: [python, shell, python]
internal_actions: {enabled: true, allowed_actions: [set_variable], blocked_actions: [clear_context]}
protocol: {form: compact, dialect: protocol, json: strict, bare_text: reject, response_default: final, on_failed_final: end, act_in_reasoning: true, tool_tokens: 2000}
loop: {mode: supervised, iteration_cap: 4, max_parallel_by_type: {llm: 2, python: 1}, allow_parallel_actions: false, fail_fast: true, stream_thoughts: false, stream_action_results: false}
budgets: {seconds: 2m, model_calls: 7, tokens: 9000, cost: 0.5, actions: 11}
environment: {variables: {CITY: Ulm, COUNT: 3}}`,
    ),
  });
  expect(problems).toEqual([]);
  expect(catalog.agent('full')?.agent).toMatchObject({
    description: 'Long text',
    tags: ['a', 'b'],
    metadata: { author: 'someone' },
    engine: {
      primary: { provider: 'openai', model: 'm1', endpoint: 'https://models.example.org/v1' },
      fallbacks: [
        { provider: null, model: 'm2', keySecret: null },
        { provider: 'groq', model: 'm3', keySecret: 'TOOL_GROQ_KEY' },
      ],
      routing: 'lowest_cost',
      firstTokenMs: 120_000,
      betweenTokensMs: 20_000,
      parameters: { temperature: 0.2 },
      prices: { m1: { input: 2, output: 8, cachedInput: 2 }, m2: { input: 1, output: 4, cachedInput: 0.25 } },
    },
    capabilities: ['python', 'shell'],
    internalActions: { enabled: true, allowed: ['set_variable'], blocked: ['clear_context'] },
    protocol: {
      form: 'compact',
      dialect: 'protocol',
      json: 'strict',
      bareText: 'reject',
      responseDefault: 'final',
      onFailedFinal: 'end',
      actInReasoning: true,
      toolTokens: 2_000,
    },
    loop: {
      mode: 'supervised',
      maxIterations: 4,
      maxParallelActions: 1,
      maxParallelByType: { llm: 2, python: 1 },
      failFast: true,
      streamThoughts: false,
      streamActionResults: false,
    },
    budgets: { seconds: 120, modelCalls: 7, tokens: 9000, cost: 0.5, actions: 11 },
    variables: { CITY: 'Ulm', COUNT: '3' },
  });
});

test('[P17] the dialect can be set at the model or at the protocol, which has precedence', () => {
  const { catalog, problems } = load({
    'agents/a.yaml': agent('a', 'cognitive_engine: {dialect: tool_calls}'),
    'agents/b.yaml': agent('b', 'cognitive_engine: {dialect: tool_calls}\nprotocol: {dialect: protocol}'),
    'agents/c.yaml': agent('c', 'cognitive_engine: {dialect: morse}'),
  });
  expect(catalog.agent('a')?.agent.protocol.dialect).toBe('tool_calls');
  expect(catalog.agent('b')?.agent.protocol.dialect).toBe('protocol');
  expect(problems).toMatchObject([{ field: 'cognitive_engine.dialect' }]);
});

test('[M8] persona texts can be files beside the manifest', () => {
  const { catalog, problems } = load({
    'agents/a.yaml':
      'kind: Agent\nversion: "1"\nname: a\nsummary: s\npersona: {agent: {file: ../prompts/a.md}, examples: [{file: ../prompts/e.md}]}\n',
    'prompts/a.md': 'You are A.',
    'prompts/e.md': 'An example.',
  });
  expect(problems).toEqual([]);
  expect(catalog.agent('a')?.agent.persona).toEqual({ agent: 'You are A.', user: '', examples: ['An example.'] });
});

test('[M3] a script tool carries its source, its runtime and its limits', () => {
  const { catalog, problems } = load({
    'tools/s.yaml': tool(
      's',
      'implementation: {type: script, entrypoint: ./s/run.py, resources: {memory: 512Mi, timeout: 5s}}\neffects: pure\nconcurrency: 2\nretry: {max_attempts: 4, backoff: linear, delay: 250ms}\ncache_ttl: 1h\napproval: always\ndispatch: after_generation',
    ),
    'tools/s/run.py': 'print(1)',
  });
  expect(problems).toEqual([]);
  expect(catalog.tool('s')).toMatchObject({
    implementation: { type: 'script', runtime: 'python3', source: 'print(1)', memoryMb: 512 },
    effects: 'pure',
    concurrency: 2,
    timeoutMs: 5_000,
    retry: { maxAttempts: 4, backoff: 'linear', delayMs: 250, maxDelayMs: limits.retryMaxDelayMs },
    cacheTtlMs: 3_600_000,
    approval: 'always',
    dispatch: 'after_generation',
  });
});

test.each([
  ['python', 'python3'],
  ['python3', 'python3'],
  ['node', 'node'],
  ['shell', 'shell'],
])('[M3] an inline script with runtime %s runs with %s', (runtime, expected) => {
  const { catalog } = load({ 's.yaml': tool('s', `implementation: {type: script, runtime: ${runtime}, script: "x"}`) });
  expect(catalog.tool('s')?.implementation).toMatchObject({ type: 'script', runtime: expected, source: 'x' });
});

test('[S7] a tool that does not declare its effects is unsafe', () => {
  expect(load({ 't.yaml': tool('t') }).catalog.tool('t')?.effects).toBe('unsafe');
});

test.each([
  ['no field', '', 'a.yaml:1:1: kind: is missing (allowed: Agent, Tool, Relic, Workflow, Monument)'],
  [
    'a wrong kind',
    'kind: Toool\n',
    'a.yaml:1:7: kind: "Toool" is not a manifest kind (allowed: Agent, Tool, Relic, Workflow, Monument). Did you mean Tool?',
  ],
  ['a list', '- a\n', 'a.yaml:1:1: a manifest is a map of fields, such as "kind: Agent"'],
  ['a broken flow list', 'kind: Tool\nname: [a\n', 'a.yaml:3:1: not valid YAML: '],
  ['a duplicate key', 'kind: Tool\nname: a\nname: b\n', 'a.yaml:3:1: not valid YAML: Map keys must be unique'],
])('[M1] %s is reported with its position', (_what, text, expected) => {
  const [problem] = problemsOf({ 'a.yaml': text === '' ? 'name: x\n' : text });
  expect(problem?.startsWith(expected)).toBe(true);
});

test.each(['', '   \n\n', '# only a comment\n', '---\n'])(
  '[M1] a file without a manifest (%j) gives an error that names the cause',
  (text) => {
    const [problem, ...rest] = load({ 'empty.yaml': text }).problems;
    expect(problem).toMatchObject({ file: 'empty.yaml', line: 1, column: 1 });
    expect(problem?.message).toMatch(/empty|only comments/);
    expect(rest).toEqual([]);
  },
);

test('[M1] each problem names file, line, column, field, what was found and what is allowed', () => {
  const text = `kind: Agent
version: "1.0"
name: my agent
persona:
  agent: hi
  examples: [1]
loop:
  max_iterations: ten
  mode: auto
  max_parallel_actions: 0
capabilities: [pyton]
`;
  expect(problemsOf({ 'agents/a.yaml': text })).toEqual([
    'agents/a.yaml:1:1: summary: is missing; it must be text',
    'agents/a.yaml:3:7: name: must be a letter followed by up to 63 letters, digits, "_" or "-", found string "my agent"',
    'agents/a.yaml:6:14: persona.examples[0]: must be text, or a map {file: path}, found number 1',
    'agents/a.yaml:8:19: loop.max_iterations: must be a number, found string "ten"',
    'agents/a.yaml:9:9: loop.mode: "auto" is not allowed (allowed: autonomous, supervised). Did you mean autonomous?',
    'agents/a.yaml:10:25: loop.max_parallel_actions: must be at least 1, found number 0',
    'agents/a.yaml:11:16: capabilities[0]: "pyton" is not allowed (allowed: python, shell, docker). Did you mean python?',
  ]);
});

test('[M1] a version written as a number keeps its digits', () => {
  const text = 'kind: Tool\nversion: 1.10\nname: t\nsummary: s\nimplementation: {type: builtin, entrypoint: echo}\n';
  expect(load({ 't.yaml': text }).catalog.tool('t')?.version).toBe('1.10');
});

test('[M1] a manifest that fails is reported, and all others load', () => {
  const { catalog, problems } = load({
    'good.yaml': tool('good'),
    'bad.yaml': tool('bad', 'implementation: {type: builtin, entrypoint: nothing}'),
    'two.yaml': `${tool('first')}---\nkind: Tooll\n---\n${tool('second')}`,
  });
  expect(catalog.list('tool').map(({ name }) => name)).toEqual(['first', 'good', 'second']);
  expect(problems.map(({ file, line }) => `${file}:${line}`)).toEqual(['bad.yaml:5', 'two.yaml:7']);
});

test('[M1] a duplicate name is an error that names the other file', () => {
  expect(problemsOf({ 'x/a.yaml': tool('twin'), 'x/b.yaml': tool('twin') })).toEqual([
    'x/b.yaml:3:7: name: another tool is already called "twin", in x/a.yaml:3',
  ]);
});

test('[M1] the fields of a monument are kept as written', () => {
  const { catalog, problems, warnings } = load({
    'm.yaml': 'kind: monument\nversion: 2\nname: m\nsummary: s\nparts: [{agent: a}]\n',
  });
  expect([problems, warnings]).toEqual([[], []]);
  expect(catalog.list('monument')).toMatchObject([
    { kind: 'Monument', version: '2', body: { parts: [{ agent: 'a' }] } },
  ]);
});

test.each([
  ['not a number', 'kind: Tool\na: .nan\n', /not a valid JSON number/],
  ['a binary tag', 'kind: Tool\na: !!binary aGk=\n', /not supported|not valid YAML|unresolved/i],
  ['an unknown tag of a list', 'kind: Tool\ntags: !mine [a]\n', /Unresolved tag: !mine/],
])('[M1] %s is reported as a problem of the file, without a crash', (_what, text, message) => {
  const { problems } = load({ 'x.yaml': text });
  expect(problems.map((problem) => problem.message).join('\n')).toMatch(message);
});

test('[M2] imports work by bare name, by relative path, across kinds and in cycles', () => {
  const { catalog, problems } = load({
    'agents/a.yaml': agent('a', 'import: {tools: [one, ../tools/two.yaml, one], agents: [b]}'),
    'agents/b.yaml': agent('b', 'import: {agents: [./a.yaml], workflows: [flow], relics: [store]}'),
    'tools/one.yaml': tool('one'),
    'tools/two.yaml': tool('second_tool'),
    'flow.yaml': 'kind: Workflow\nversion: 1\nname: flow\nsummary: s\nsteps: [{name: a, type: tool, target: one}]\n',
    'store.yaml': 'kind: Relic\nversion: 1\nname: store\nsummary: s\nimplementation: {type: edge, store: kv}\n',
  });
  expect(problems).toEqual([]);
  expect(catalog.agent('a')?.agent.imports).toEqual({
    tools: ['one', 'second_tool'],
    agents: ['b'],
    relics: [],
    workflows: [],
  });
  expect([...(catalog.agent('a')?.tools.keys() ?? [])]).toEqual(['one', 'second_tool']);
  expect(catalog.agent('b')?.agent.imports).toMatchObject({ agents: ['a'], relics: ['store'], workflows: ['flow'] });
});

test('[M2] a missing import names the importer, the place and the nearest names', () => {
  expect(
    problemsOf({
      'agents/a.yaml': agent('a', 'import:\n  tools: [serch, ../tools/none.yaml, ../tools/two.yaml, ./b.yaml]'),
      'agents/b.yaml': agent('b'),
      'tools/search.yaml': tool('search'),
      'tools/two.yaml': `${tool('x')}---\n${tool('y')}`,
    }),
  ).toEqual([
    'agents/a.yaml:7:11: import.tools[0]: agent "a" imports the tool "serch", which does not exist (nearest: search)',
    'agents/a.yaml:7:18: import.tools[1]: agent "a" imports the tool "../tools/none.yaml", but there is no file tools/none.yaml',
    'agents/a.yaml:7:38: import.tools[2]: agent "a" imports the tool "../tools/two.yaml", but tools/two.yaml contains several (x, y); import one by name',
    'agents/a.yaml:7:57: import.tools[3]: agent "a" imports the tool "./b.yaml", but agents/b.yaml contains no tool',
  ]);
});

test('[M2] a manifest cannot include files outside the folder', () => {
  const text = tool('t', 'implementation: {type: script, runtime: shell, entrypoint: ../../../etc/passwd}');
  expect(problemsOf({ 'tools/t.yaml': text })).toEqual([
    'tools/t.yaml:5:60: implementation.entrypoint: names the file "../../../etc/passwd", but there is no ../../etc/passwd',
  ]);
});

test.each([
  ['neither source nor path', '{type: script, runtime: node}', 'needs exactly one of'],
  ['both source and path', '{type: script, runtime: node, script: x, entrypoint: a.js}', 'needs exactly one of'],
  ['no runtime and no file extension', '{type: script, script: x}', 'is missing (allowed: python3, node, shell)'],
  [
    'an unknown type',
    '{type: skript}',
    '"skript" is not allowed (allowed: builtin, script, http, container, code, client). Did you mean script?',
  ],
  ['an unknown built-in', '{type: builtin, entrypoint: webfetch}', 'Did you mean web_fetch?'],
  ['a url without a scheme', '{type: http, url: example.org/x}', 'must be an http:// or https:// URL'],
  ['a memory size in words', '{type: container, image: x, resources: {memory: lots}}', 'must be a number of MiB'],
])('[M3] an implementation with %s is refused', (_what, implementation, message) => {
  const { problems } = load({ 't.yaml': tool('t', `implementation: ${implementation}`), 'a.js': '' });
  expect(problems.map((problem) => problem.message).join('\n')).toContain(message);
});

test('[S8] a time limit above the ceiling is refused', () => {
  const [problem] = load({
    't.yaml': tool('t', 'implementation: {type: builtin, entrypoint: echo}\ntimeout: 2h'),
  }).problems;
  expect(problem).toMatchObject({ line: 6, field: 'timeout' });
  expect(problem?.message).toBe('must be between 1 ms and 3600 s, found 2h');
});

test('[M3] the schemas of one manifest share one work limit', () => {
  const withPatterns = (count: number): string => {
    const patterns = Array.from(
      { length: count },
      (_, index) => `  p${index}: {type: string, pattern: "^[a-z]{${index % 60}}x*$"}`,
    );
    return tool('t', `implementation: {type: builtin, entrypoint: echo}\nparameters:\n${patterns.join('\n')}`);
  };
  expect(problemsOf({ 't.yaml': withPatterns(60) })).toEqual([]);
  expect(problemsOf({ 't.yaml': withPatterns(600) })[0]).toContain(`allowed: ${limits.manifestSchemaSteps} steps`);
});

const long = (index: number): string => `n${String(index).padStart(4, '0')}`.padEnd(60, 'abcdefghij');

test('[M2] a folder of mistyped imports loads in bounded time with few suggestions', () => {
  const names = Array.from({ length: 200 }, (_, index) => `x${long(index)}`).join(', ');
  const files = Array.from({ length: 20 }, (_, index) => [
    `a${index}.yaml`,
    agent(long(index), `import:\n  agents: [${names}]`),
  ]);
  const { problems } = load(Object.fromEntries(files) as Record<string, string>);
  expect(problems).toHaveLength(20 * limits.manifestProblems);
  expect(problems[0]?.message).toContain('nearest: ');
  const suggesting = problems.filter(({ message }) => message.includes('nearest: '));
  expect(suggesting.length).toBeLessThan(200);
});
