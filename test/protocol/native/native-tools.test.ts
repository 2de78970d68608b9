import { describe, expect, test } from 'vitest';
import type { AgentDefinition } from '../../../src/domain/manifests/agent.ts';
import type { ResolvedAgent } from '../../../src/domain/manifests/resolved.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { INTERNAL_ACTIONS } from '../../../src/domain/internal-actions.ts';
import { limits } from '../../../src/domain/limits.ts';
import { bundled } from '../../support/bundled.ts';
import { agentOf, largeTool, largeTools } from '../../support/many-tools.ts';
import { nativeTools, nativeType } from '../../../src/protocol/native/native-tools.ts';
import { estimateTokens } from '../../../src/domain/tokens.ts';
import { buildSystemPrompt } from '../../../src/protocol/prompt/prompt.ts';

function assistant(change: (agent: AgentDefinition) => AgentDefinition = (agent) => agent): ResolvedAgent {
  const resolved = bundled.agent('assistant');
  if (resolved === null) throw new Error('the bundled catalogue has no assistant');
  return { ...resolved, agent: change(resolved.agent) };
}

describe('[P17] function declarations for the endpoint', () => {
  test('list everything that the agent can use, each with an object schema and a valid name', () => {
    const tools = nativeTools(
      assistant((agent) => ({
        ...agent,
        capabilities: ['python', 'shell', 'docker'],
        internalActions: { enabled: true, allowed: null, blocked: [] },
        imports: { ...agent.imports, agents: ['helper'], workflows: ['nightly'], skills: ['pdf'] },
        // Then it may recall earlier turns, and keep facts.
        memory: { maxTurns: 10, summarizeAfter: null, facts: { max: 50, maxTokens: 1_000 } },
        // Then some tools are in short form, and can be described.
        protocol: { ...agent.protocol, dialect: 'tool_calls', toolTokens: 100 },
      })),
    );
    const names = tools.map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining(['calculator', 'python', 'shell', 'docker', 'helper', 'nightly', ...INTERNAL_ACTIONS]),
    );
    expect(new Set(names).size).toBe(names.length);
    for (const { name, summary, parameters } of tools) {
      expect(name).toMatch(/^[\w-]{1,64}$/);
      expect(summary).not.toBe('');
      expect(parameters['type']).toBe('object');
    }
  });

  test('have a schema for code with its inputs', () => {
    const python = nativeTools(assistant((agent) => ({ ...agent, capabilities: ['python'] }))).find(
      ({ name }) => name === 'python',
    );
    expect(python?.parameters).toEqual({
      type: 'object',
      properties: {
        code: { type: 'string' },
        inputs: { type: 'object', description: 'Values passed to the code as data' },
      },
      required: ['code'],
    });
  });

  const text = { type: 'string' };
  const anything = {};
  const inputs = { type: 'object', description: 'Values passed to the code as data' };
  const feed = { id: text, type: text, interval: anything, source: { type: 'object' } };
  const schema = (properties: JsonObject, required: string[]): JsonObject => ({ type: 'object', properties, required });
  test.each<[name: string, parameters: JsonObject]>([
    ['shell', schema({ command: text, inputs }, ['command'])],
    [
      'docker',
      schema({ image: text, command: text, args: { type: 'array', items: text }, inputs }, ['image', 'command']),
    ],
    ['set_variable', schema({ key: text, value: anything }, ['key', 'value'])],
    ['delete_variable', schema({ key: text }, ['key'])],
    ['add_context_feed', schema(feed, ['id', 'type', 'source'])],
    ['update_context_feed', schema(feed, ['id'])],
    ['remove_context_feed', schema({ id: text }, ['id'])],
    ['clear_context', schema({}, [])],
    ['helper', schema({ message: text, context: anything }, ['message'])],
    ['nightly', { type: 'object', additionalProperties: true }],
  ])('the parameters of %s', (name, parameters) => {
    const tools = nativeTools(
      assistant((agent) => ({
        ...agent,
        capabilities: ['shell', 'docker'],
        internalActions: { enabled: true, allowed: null, blocked: [] },
        imports: { ...agent.imports, agents: ['helper'], workflows: ['nightly'] },
      })),
    );
    const listed = tools.find((tool) => tool.name === name)?.parameters;
    expect(listed).toMatchObject(parameters);
    expect(Object.keys((listed?.['properties'] ?? {}) as JsonObject)).toEqual(
      Object.keys((parameters['properties'] ?? {}) as JsonObject),
    );
  });

  test('[X4] omit what the agent cannot use', () => {
    const names = nativeTools(
      assistant((agent) => ({
        ...agent,
        capabilities: [],
        internalActions: { enabled: true, allowed: ['set_variable'], blocked: [] },
      })),
    ).map(({ name }) => name);
    expect(names).not.toContain('python');
    expect(names.filter((name) => (INTERNAL_ACTIONS as readonly string[]).includes(name))).toEqual(['set_variable']);
  });

  test('prefer a tool to a capability with the same name', () => {
    const resolved = assistant();
    const echo = resolved.tools.get('echo');
    if (echo === undefined) throw new Error('the assistant has no echo');
    const shadowed = { ...resolved, tools: new Map([...resolved.tools, ['python', { ...echo, name: 'python' }]]) };
    expect(nativeTools(shadowed).filter(({ name }) => name === 'python')).toMatchObject([
      { summary: `${echo.summary}\nReturns {…}. The parameters.` },
    ]);
    expect(nativeType(shadowed, 'python')).toBe('tool');
    expect(nativeType(resolved, 'python')).toBe('python');
  });
});

describe('[P17] the target of a called name', () => {
  const resolved = assistant((agent) => ({
    ...agent,
    capabilities: ['python'],
    imports: { ...agent.imports, agents: ['helper'], workflows: ['nightly'] },
  }));

  test.each([
    ['calculator', 'tool'],
    ['python', 'python'],
    ['shell', 'tool'],
    ['set_variable', 'internal'],
    ['helper', 'agent'],
    ['nightly', 'workflow'],
    ['nothing', 'tool'],
    ['__proto__', 'tool'],
  ])('%s: %s', (name, type) => {
    expect(nativeType(resolved, name)).toBe(type);
  });
});

describe('[P17] the prompt of a model that calls functions', () => {
  const speaking = (dialect: 'auto' | 'tool_calls', bareText: 'answer' | 'reject' = 'answer'): string =>
    buildSystemPrompt(assistant((agent) => ({ ...agent, protocol: { ...agent.protocol, dialect, bareText } })));

  test('teaches no tags, and is much shorter', () => {
    expect(speaking('tool_calls')).not.toMatch(/<(?:action|thought|response)/);
    expect(estimateTokens(speaking('tool_calls'))).toBeLessThan(estimateTokens(speaking('auto')) / 3);
  });

  test('[P11] says how to answer if bare text does not count as the answer', () => {
    expect(speaking('tool_calls', 'reject')).toContain('<response final="true">');
  });
});

describe('[P17] functions of tools in short form', () => {
  const functionsOf = (count: number, toolTokens?: number): ReturnType<typeof nativeTools> =>
    nativeTools(
      agentOf(largeTools(count), { dialect: 'tool_calls', ...(toolTokens === undefined ? {} : { toolTokens }) }),
    );

  test('have a short summary and accept any object; describe_tools is one', () => {
    const tools = functionsOf(60);
    expect(tools.find(({ name }) => name === 'thing_0')?.parameters).toEqual(largeTool(0).parameters);
    expect(tools.find(({ name }) => name === 'thing_59')).toEqual({
      name: 'thing_59',
      summary: largeTool(59).summary,
      parameters: { type: 'object' },
    });
    expect(tools.find(({ name }) => name === 'describe_tools')).toMatchObject({
      parameters: { properties: { names: { type: 'array' }, search: { type: 'string' } }, required: [] },
    });
    expect(tools.filter(({ name }) => name.startsWith('thing_'))).toHaveLength(60);
  });

  test.each([
    ['if there is room for all schemas', 300, 1_000_000],
    ['if there is not', 10_000, undefined],
  ])('are at most 128, %s', (_, count, toolTokens) => {
    const tools = functionsOf(count, toolTokens);
    expect(tools).toHaveLength(limits.nativeFunctions);
    expect(new Set(tools.map(({ name }) => name)).size).toBe(limits.nativeFunctions);
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['describe_tools', 'set_variable', 'python']));
  });

  test('tools without a function are listed in the prompt; others are not listed twice', () => {
    const resolved = agentOf(largeTools(200), { dialect: 'tool_calls' });
    const functions = new Set(nativeTools(resolved).map(({ name }) => name));
    const lines = new Set(
      buildSystemPrompt(resolved)
        .split('\n')
        .flatMap((line) => /^- (thing_\d+)/.exec(line)?.[1] ?? []),
    );
    for (const { name } of largeTools(200)) expect([name, functions.has(name)]).toEqual([name, !lines.has(name)]);
  });

  test('the functions of a conversation with calls are bounded in other dialects as well', () => {
    expect(nativeTools(agentOf(largeTools(1_000)))).toHaveLength(limits.nativeFunctions);
    expect(nativeTools(agentOf(largeTools(1_000), { toolTokens: 1_000_000 }))).toHaveLength(limits.nativeFunctions);
  });

  test('a tool of the message keeps its schema and comes last', () => {
    const passed = largeTool(5_000, { implementation: { type: 'client', passed: true } });
    expect(nativeTools(agentOf([...largeTools(1_000), passed], { dialect: 'tool_calls' })).at(-1)).toEqual({
      name: passed.name,
      summary: expect.stringContaining(passed.summary),
      parameters: passed.parameters,
    });
  });
});
