/** Agents of the original: prompts, models and limits. */
import { describe, expect, test } from 'vitest';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { migrated } from '../../support/migrated.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { AgentDefinition } from '../../../src/domain/manifests/agent.ts';

interface Loaded {
  readonly agent: AgentDefinition | undefined;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

const HEAD = 'kind: Agent\nversion: "1.0"\nname: helper\nsummary: Somebody who helps\n';

function load(yaml: string, files: Readonly<Record<string, string>> = {}, head = HEAD): Loaded {
  const all = { 'a/agent.yml': `${head}${yaml}\n`, ...files };
  const loaded = migrated(Object.entries(all).map(([path, text]) => ({ path, text })));
  const own = (problem: { readonly file: string }): boolean => problem.file === 'a/agent.yml';
  return {
    agent: loaded.catalog.agent('helper')?.agent,
    problems: loaded.problems.map(formatProblem),
    warnings: loaded.warnings.filter(own).map((one) => `${one.field}: ${one.message}`),
  };
}

describe('[M1] the persona of an agent of the original', () => {
  const files = { 'a/p.md': 'I am a cook.\n', 'a/s.md': 'Answer in rhymes.', 'shared/u.md': 'A hungry person' };

  test('paths in persona are files; system and knowledge are parts of it', () => {
    const { agent, problems, warnings } = load(
      'persona:\n  agent: "./p.md"\n  user: ../shared/u.md\n  system: ./s.md\n  knowledge: ./none.md',
      files,
    );
    expect(problems).toEqual([]);
    expect(agent?.persona).toEqual({
      agent: 'I am a cook.\n\nAnswer in rhymes.',
      user: 'A hungry person',
      examples: [],
    });
    expect(warnings).toEqual([
      'persona.agent: understood as a file that is part of the persona',
      'persona.user: understood as a file',
      'persona.system: understood as a file that is part of the persona',
      'persona.knowledge: understood as a file that is part of the persona',
      'persona.knowledge: there is no file "./none.md", so this part of the persona is empty',
    ]);
  });

  test('context has the persona, the system prompt and the user; the harness is replaced', () => {
    const { agent, problems, warnings } = load(
      'context:\n  harness: ../harness.md\n  persona: ./p.md\n  system: ./s.md\n  operator: ../shared/u.md',
      files,
    );
    expect(problems).toEqual([]);
    expect(agent?.persona).toEqual({
      agent: 'I am a cook.\n\nAnswer in rhymes.',
      user: 'A hungry person',
      examples: [],
    });
    expect(warnings).toEqual([
      'context: understood: persona and system as parts of the persona, operator as persona.user; harness is not used, because the prompt of this system teaches its own protocol',
    ]);
  });

  test('a file that is named twice is one part', () => {
    expect(load('context: {persona: p.md, system: p.md}', files).agent?.persona.agent).toBe('I am a cook.');
  });

  test('modules and skills of one file are added to a persona in our own form; the other skills are imported', () => {
    const { agent, problems, warnings } = load(
      'persona: I am here.\nimport:\n  files: [./p.md]\n  skills: [rhyme, ../skills/long.md, ./none.md]',
      {
        ...files,
        'a/skills/rhyme/SKILL.md': '---\nname: rhyme\ndescription: d\n---\nWrite pairs.',
        'skills/long.md': 'x'.repeat(9_000),
      },
    );
    expect(problems).toEqual([]);
    expect(agent?.persona.agent).toBe(`I am here.\n\n## p\n\nI am a cook.\n\n## Skill: long\n\n${'x'.repeat(4_000)}…`);
    expect(agent?.imports.skills).toEqual(['rhyme']);
    expect(warnings).toEqual([
      'import.files: understood as parts of the persona',
      'import.skills: understood as parts of the persona',
      'import.skills[1]: has 9000 characters, of which the first 4000 are part of the persona',
      'import.skills[2]: there is no file "./none.md", so it is not part of the persona',
    ]);
  });

  test.each([
    ['', 'Somebody who helps', ['summary: there is no persona: the summary is used']],
    ['description: I am long', 'I am long', ['description: there is no persona: the description is used']],
    ['system_prompt: You count things.', 'You count things.', ['system_prompt: understood as part of the persona']],
    [
      'context: {persona: ./none.md}',
      'Somebody who helps',
      [
        'context: understood: persona as parts of the persona',
        'context: none of its parts has text, so the summary is the persona',
        'context.persona: there is no file "./none.md", so this part of the persona is empty',
      ],
    ],
  ])('%j', (yaml, persona, warnings) => {
    const loaded = load(yaml);
    expect(loaded.problems).toEqual([]);
    expect(loaded.agent?.persona.agent).toBe(persona);
    expect(loaded.warnings).toEqual(warnings);
  });

  test.each([
    'persona: You help.',
    'persona: {agent: "Read the file ./p.md first"}',
    'persona: {agent: {file: p.md}, user: {file: ../shared/u.md}}',
    'persona: {file: p.md}',
    'persona: {agent: [You help., {file: p.md}]}',
  ])('our own form stays as it is: %s', (yaml) => {
    expect(load(yaml, files)).toMatchObject({ problems: [], warnings: [] });
  });

  test('a missing file is an error in our own form', () => {
    expect(load('persona: {agent: {file: none.md}}').problems).toEqual([
      expect.stringContaining('there is no a/none.md'),
    ]);
  });
});

describe('[M1] the models of an agent of the original', () => {
  const engineOf = (yaml: string): Loaded => load(`persona: p\ncognitive_engine:\n${yaml}`);

  test.each([
    ['google', 'gemini'],
    ['Google', 'gemini'],
    ['x-ai', 'xai'],
    ['grok', 'xai'],
    ['OpenAI', 'openai'],
  ])('the provider %s is %s', (written, provider) => {
    const { agent, problems, warnings } = engineOf(`  primary: {provider: ${written}, model: m}`);
    expect(problems).toEqual([]);
    expect(agent?.engine.primary).toMatchObject({ provider, model: 'm', keySecret: null });
    expect(warnings).toEqual([`cognitive_engine.primary.provider: understood as the provider ${provider}`]);
  });

  test.each(['xai', 'deepseek', 'openai', 'ollama'])('%s is a preset', (provider) => {
    expect(engineOf(`  primary: {provider: ${provider}}`)).toMatchObject({ problems: [], warnings: [] });
  });

  test.each([
    ['zen', '', "the deployment's endpoint decides (docs/models.md)."],
    ['openrouterr', '', "the deployment's endpoint decides (docs/models.md). Did you mean openrouter?"],
    ['together', ', endpoint: "https://m.example/v1"', 'the endpoint decides (docs/models.md).'],
  ])('the provider %s is unknown', (written, more, end) => {
    const { agent, problems, warnings } = engineOf(`  primary: {provider: ${written}, model: m${more}}`);
    expect(problems).toEqual([]);
    expect(agent?.engine.primary).toMatchObject({ provider: null, model: 'm' });
    expect(warnings).toEqual([`cognitive_engine.primary.provider: "${written}" is not a known provider: ${end}`]);
  });

  test('parameters of the primary model are those of the engine', () => {
    const { agent, problems, warnings } = engineOf(
      `  primary: {provider: deepseek, model: m, parameters: {temperature: "0.2", top_p: 0.9}, thinking: true, thinking_level: low}
  fallback: {model: n, parameters: {temperature: 0.4}}
  parameters: {top_p: 0.5, stream: true, extra_params: {seed: 3}, stop_sequences: [END]}`,
    );
    expect(problems).toEqual([]);
    expect(agent?.engine.parameters).toEqual({ temperature: 0.2, top_p: 0.5, seed: 3, stop: ['END'] });
    expect(agent?.engine.fallbacks).toMatchObject([{ model: 'n' }]);
    expect(warnings).toEqual([
      'cognitive_engine.primary.parameters: understood as cognitive_engine.parameters, which apply to all models',
      'cognitive_engine.primary.parameters.temperature: understood as a number',
      'cognitive_engine.primary.thinking: has no effect here; if the model supports it, write parameters: {reasoning_effort: low}',
      'cognitive_engine.primary.thinking_level: has no effect here; if the model supports it, write parameters: {reasoning_effort: low}',
      'cognitive_engine.fallback.parameters: has no effect: cognitive_engine.parameters apply to all models',
      'cognitive_engine.parameters.stream: has no effect here: answers are always streamed',
      'cognitive_engine.parameters.extra_params: understood as parameters',
      'cognitive_engine.parameters.stop_sequences: understood as stop',
    ]);
  });

  test('fallbacks inside one another are a list', () => {
    const { agent, problems, warnings } = engineOf(
      '  primary: {model: a, fallback: {model: d}}\n  fallback: {model: b, fallback: {provider: google, model: c}}',
    );
    expect(problems).toEqual([]);
    expect(agent?.engine.primary).toMatchObject({ model: 'a' });
    expect(agent?.engine.fallbacks).toMatchObject([{ model: 'b' }, { provider: 'gemini', model: 'c' }, { model: 'd' }]);
    expect(warnings).toHaveLength(2);
  });

  test('a model directly under the engine, or as text, is the primary one', () => {
    expect(engineOf('  provider: google\n  model: m').agent?.engine.primary).toMatchObject({
      provider: 'gemini',
      model: 'm',
    });
    expect(engineOf('  primary: m').agent?.engine.primary).toMatchObject({ provider: null, model: 'm' });
  });
});

describe('[M1] the limits of an agent of the original', () => {
  const limitsOf = (yaml: string): Loaded => load(`persona: p\n${yaml}`);

  test.each([
    ['iteration_cap: 3', 3],
    ['iteration_cap: "4"', 4],
    ['iteration_cap: 0', 1],
    ['runtime: {max_iterations: 6}', 6],
    ['runtime: {max_iterations: 0}', 1],
    ['context: {max_iterations: 7}', 7],
    ['context: {max_iterations: 7}\nruntime: {max_iterations: 6}', 6],
    ['loop: {max_iterations: 2}\niteration_cap: 3', 2],
    ['loop: {iteration_cap: 2}\niteration_cap: 3', 2],
  ])('%j means %d iterations', (yaml, iterations) => {
    const { agent, problems, warnings } = limitsOf(yaml);
    expect(problems).toEqual([]);
    expect(agent?.loop.maxIterations).toBe(iterations);
    expect(warnings.length).toBe(yaml.split('\n').filter((line) => !line.startsWith('loop')).length);
  });

  test('a wrong value of loop is still an error', () => {
    expect(limitsOf('loop: fast\niteration_cap: 3').problems).toEqual([expect.stringContaining('loop: must be a map')]);
  });

  test('more iterations than the default number of model calls raise that', () => {
    expect(limitsOf('runtime: {max_iterations: 400}').agent?.budgets.modelCalls).toBe(401);
    expect(limitsOf('runtime: {max_iterations: 400}\nbudgets: {model_calls: 9}').agent?.budgets.modelCalls).toBe(9);
    expect(limitsOf('loop: {max_iterations: 400}')).toMatchObject({
      agent: { budgets: { modelCalls: limits.modelCallsPerRun } },
      warnings: [],
    });
  });

  test('each limit in runtime gives one warning, and what was not understood another one', () => {
    const { agent, problems, warnings } = limitsOf(`runtime:
  max_iterations: 5
  mode: normal
  timeout: 300
  subagents: {persistence: session}
  throttling: {stall_timeout_sec: 20}
  trim: {enabled: true, tail: {cap: 1700, every_turns: 15}}
  compaction: {enabled: true, profile: light, trigger: {turns: 15, context_tokens: 50k}}`);
    expect(problems).toEqual([]);
    expect(agent).toMatchObject({
      memory: { maxTurns: limits.historyTurns, summarizeAfter: 15 },
      budgets: { seconds: 300 },
      engine: { betweenTokensMs: 20_000 },
    });
    expect(warnings).toEqual([
      'runtime: without effect here: mode, subagents, trim and compaction',
      'runtime.max_iterations: understood as loop.max_iterations',
      'runtime.timeout: understood as budgets.seconds',
      'runtime.throttling.stall_timeout_sec: understood as cognitive_engine.timeouts.between_tokens',
      'runtime.trim.tail.cap: understood as memory.max_turns 200',
      'runtime.compaction.trigger.turns: understood as memory.summarize_after',
    ]);
  });

  test('conversation limits of memory', () => {
    const { agent, problems } = limitsOf(
      'memory: {enabled: true, type: hybrid, conversation: {max_turns: 8, summarize_after: 5}, persistence: {enabled: true}}',
    );
    expect(problems).toEqual([]);
    expect(agent?.memory).toMatchObject({ maxTurns: 8, summarizeAfter: 5, summary: { by: 'model' } });
  });

  test('blocks without a counterpart give one warning each', () => {
    const { agent, problems, warnings } = limitsOf(`agency_level: autonomous
grade: rare
category: agent
compaction: {enabled: true, trigger: {turns: 4}}
prompt_building: {runtime_capabilities: {usage_examples: true}}
sandbox: {mode: process, allowed_commands: [ls]}
environment: {env_file: [.env], resources: {limits: {cpu: "1"}}, variables: {A: b}}`);
    expect(problems).toEqual([]);
    expect(warnings).toHaveLength(6);
    expect(warnings).toContain(
      'agency_level: agency_level, grade and category have no effect here, and are kept under metadata',
    );
    expect(agent).toMatchObject({
      metadata: { agency_level: 'autonomous', grade: 'rare', category: 'agent' },
      variables: { A: 'b' },
    });
  });

  test('fields without a value are ignored; version and summary have defaults', () => {
    const loaded = load(
      'import:\n  agents:\n  tools: []\ncontext:',
      {},
      'kind: Agent\nname: helper\ndescription: |\n  One.\n  Two.\n',
    );
    expect(loaded.problems).toEqual([]);
    expect(loaded.agent).toMatchObject({ version: '1.0', summary: 'One.', persona: { agent: 'One.\nTwo.\n' } });
    expect(loaded.warnings).toEqual([
      'name: there is no version: 1.0 is used',
      'name: there is no summary: the first line of the description is used',
      'description: there is no persona: the description is used',
      'import.agents: has no value and is ignored',
      'context: has no value and is ignored',
    ]);
  });

  test('an agent may have nothing but a name', () => {
    const { agent, problems, warnings } = load('', {}, 'kind: Agent\nname: helper\n');
    expect(problems).toEqual([]);
    expect(agent).toMatchObject({
      version: '1.0',
      summary: 'The agent helper.',
      persona: { agent: 'The agent helper.' },
    });
    expect(warnings).toHaveLength(3);
  });

  test('in our own form, version and summary are required', () => {
    expect(load('persona: p', {}, 'kind: Agent\nname: helper\n').problems).toHaveLength(2);
  });
});
