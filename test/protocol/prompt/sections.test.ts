/** Sections of the system prompt, part by part (L4). */
import { describe, expect, test } from 'vitest';
import { bundled } from '../../../src/catalog/bundled.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { AgentDefinition, ResolvedAgent } from '../../../src/domain/manifest.ts';
import { buildSystemPrompt } from '../../../src/protocol/prompt/prompt.ts';

const assistant = bundled.agent('assistant');
if (assistant === null) throw new Error('the bundled catalog has no assistant');
const { agent, tools } = assistant;
const echo = tools.get('echo');
if (echo === undefined) throw new Error('the assistant has no echo');

/** The prompt of the assistant with these changes. */
function promptOf(changes: Partial<AgentDefinition>, resolved: Partial<ResolvedAgent> = {}): string {
  return buildSystemPrompt({ ...assistant, agent: { ...agent, ...changes }, ...resolved } as ResolvedAgent);
}

/** The section of a tool with these parameters. */
function toolSection(parameters: JsonObject, examples: readonly JsonObject[] = []): string[] {
  const tool = { ...echo, name: 'probe', summary: 'Probes.', parameters, examples };
  const prompt = promptOf({ capabilities: [] }, { tools: new Map([['probe', tool]]) } as Partial<ResolvedAgent>);
  const start = prompt.indexOf('## probe\n');
  return prompt.slice(start, prompt.indexOf('\n\n', start)).split('\n').slice(2);
}

describe('[L4] the parameters of a tool', () => {
  test.each<[what: string, parameters: JsonObject, lines: string[]]>([
    ['none', { type: 'object' }, ['No parameters.']],
    ['any', { type: 'object', additionalProperties: true }, ['No parameters.']],
    [
      'with further ones',
      { properties: { a: { type: 'string' } }, additionalProperties: true },
      ['- a (string)', '- any further parameters'],
    ],
    [
      'required, described in one line',
      { properties: { a: { type: 'string', description: ' one\n  two ' }, b: {} }, required: ['a'] },
      ['- a (string, required): one two', '- b (any)'],
    ],
    ['without a schema', { properties: { a: true } }, ['- a']],
    [
      'of every type',
      {
        properties: {
          choice: { enum: ['a', 1, null] },
          list: { type: 'array' },
          texts: { type: 'array', items: { type: 'string' } },
          counts: { type: 'object', additionalProperties: { type: 'integer' } },
          either: { type: ['string', 'null'] },
        },
      },
      [
        '- choice ("a"|1|null)',
        '- list (array)',
        '- texts (array of string)',
        '- counts (object of integer)',
        '- either (string|null)',
      ],
    ],
    [
      'nested, two levels deep',
      {
        properties: {
          a: {
            type: 'object',
            additionalProperties: true,
            properties: {
              b: {
                type: 'object',
                properties: { c: { type: 'object', properties: { d: { type: 'string' } } } },
              },
            },
          },
          e: { type: 'object' },
          f: { type: 'string', properties: { g: {} } },
        },
      },
      ['- a (object)', '  - b (object)', '    - c (object)', '- e (object)', '- f (string)'],
    ],
  ])('%s', (_what, parameters, lines) => {
    expect(toolSection(parameters)).toEqual(lines);
  });

  test('are followed by the first example', () => {
    expect(toolSection({ type: 'object' }, [{ a: 1 }, { a: 2 }])).toEqual(['No parameters.', 'Example: {"a":1}']);
  });
});

describe('[L4] who the agent is', () => {
  test('its name, its summary and its persona', () => {
    const persona = { agent: ' Be brief.\n', user: ' Likes tea.\n', examples: ['One.', 'Two.'] };
    const prompt = promptOf({ name: 'probe', summary: 'It probes.', persona });
    expect(prompt.startsWith('You are probe. It probes.\n\nBe brief.\n\n#')).toBe(true);
    expect(prompt.endsWith('\n\n# About the user\nLikes tea.\n\n# Further examples\nOne.\n\nTwo.')).toBe(true);
  });

  test('parts that are empty are left out', () => {
    const prompt = promptOf({ name: 'probe', summary: '', persona: { agent: ' ', user: '\n', examples: [] } });
    expect(prompt.startsWith('You are probe.\n\n#')).toBe(true);
    expect(prompt).not.toContain('# About the user');
    expect(prompt).not.toContain('# Further examples');
    expect(prompt).not.toContain('\n\n\n');
  });
});

describe('[L4] what the agent may use', () => {
  test('other agents, with their summary in one line if they have one', () => {
    const summaries = new Map([
      ['writer', { ...agent, summary: ' Writes\n well. ' }],
      ['silent', { ...agent, summary: '' }],
    ]);
    const prompt = promptOf({ imports: { ...agent.imports, agents: ['writer', 'silent', 'unknown'] } }, {
      agents: summaries,
    } as unknown as Partial<ResolvedAgent>);
    const title = '# Agents (type="agent", {message, context?}): they work on their own and answer';
    expect(`${prompt}\n\n`).toContain(`\n\n${title}\n- writer: Writes well.\n- silent\n- unknown\n\n`);
  });

  test.each<[allowed: string[], titles: string[]]>([
    [[], []],
    [['set_variable'], ['an internal action']],
    [['add_context_feed'], ['feeds']],
    [
      ['set_variable', 'add_context_feed'],
      ['an internal action', 'feeds'],
    ],
  ])('examples of %j only where they are allowed', (allowed, titles) => {
    const internalActions = { enabled: true, allowed, blocked: [] } as AgentDefinition['internalActions'];
    const shown = promptOf({ internalActions })
      .split('\n')
      .flatMap((line) => /^## Example: (an internal action|feeds)/.exec(line)?.[1] ?? []);
    expect(shown).toEqual(titles);
  });

  test('nothing: there is no section for it', () => {
    const prompt = promptOf(
      { capabilities: [], internalActions: { enabled: false, allowed: null, blocked: [] } },
      { tools: new Map() },
    );
    for (const title of ['# Tools', '# Code', '# Internal actions', '# Agents', '# Relics', '# Workflows']) {
      expect(prompt).not.toContain(`\n${title}`);
    }
  });
});
