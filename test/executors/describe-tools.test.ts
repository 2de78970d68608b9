/** `describe_tools` at its ports: names, searches, and its limits (L4). */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import type { ToolDefinition } from '../../src/domain/manifests/tool.ts';
import { describableTools } from '../../src/engine/actions/describable-tools.ts';
import { internalExecutor, internalPolicy } from '../../src/executors/internal.ts';
import { agentOf, largeTool, largeTools } from '../support/many-tools.ts';
import { callOf, contextOf, errorOf } from './support.ts';

const weather = largeTool(0, {
  name: 'get_weather',
  summary: 'The weather of a city.',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string', description: 'Its name.' }, days: { enum: [1, 7] } },
    required: ['city'],
  },
  returns: { type: 'object', properties: { celsius: { type: 'number' } } },
  examples: [{ city: 'Ulm' }],
  approval: 'always',
});
const MAIL = largeTool(0, { name: 'send_mail', summary: 'Sends a letter to a city or a person.' });

async function describeOf(parameters: JsonObject, tools: readonly ToolDefinition[]): Promise<JsonObject> {
  const context = contextOf({ tools: describableTools(agentOf(tools, { toolTokens: 100 })) });
  const outcome = await internalExecutor.execute(
    callOf(parameters, { action: { type: 'internal', name: 'describe_tools' } }),
    context,
  );
  if (!outcome.ok) throw new Error(errorOf(outcome).message);
  return outcome.output as JsonObject;
}
const namesOf = (output: JsonObject): unknown[] =>
  (output['tools'] as JsonObject[]).map(({ name, parameters }) =>
    parameters === undefined ? `(${String(name)})` : name,
  );

describe('[L4] describe_tools', () => {
  test('gives what the prompt would show of several tools, each once', async () => {
    const output = await describeOf({ names: ['get_weather', 'send_mail', 'get_weather'] }, [weather, MAIL]);
    expect(output).toMatchObject({ tools: [{}, { name: 'send_mail' }] });
    expect((output['tools'] as JsonObject[])[0]).toEqual({
      name: 'get_weather',
      summary: 'The weather of a city.',
      note: '(asks a person first)',
      parameters: '- city (string, required): Its name.\n- days (1|7)',
      returns: 'Returns {celsius: number}',
      example: 'Example: {"city":"Ulm"}',
    });
  });

  test('accepts one name as text', async () => {
    expect(namesOf(await describeOf({ names: 'send_mail' }, [weather, MAIL]))).toEqual(['send_mail']);
  });

  test('an unknown name is reported with similar ones, among thousands', async () => {
    const tools = [...largeTools(2_000), weather];
    expect(await describeOf({ names: ['thing_1', 'getWeather', 'weather_get', '__proto__'] }, tools)).toMatchObject({
      tools: [{ name: 'thing_1' }],
      unknown: [
        { name: 'getWeather', did_you_mean: [] },
        { name: 'weather_get', did_you_mean: ['get_weather'] },
        { name: '__proto__', did_you_mean: [] },
      ],
    });
  });

  test('a search finds words in names before words in summaries, and describes the first ones', async () => {
    const more = ['city_a', 'city_b', 'city_c'].map((name) => largeTool(0, { name, summary: 'Another.' }));
    const output = await describeOf({ search: 'Weather of a CITY!' }, [MAIL, ...more, weather]);
    // The word "a" is in all summaries or names.
    expect(namesOf(output)[0]).toBe('get_weather');
    expect(namesOf(output)).toHaveLength(5);
    expect(namesOf(output).slice(limits.foundToolsDescribed)).toEqual([
      expect.stringMatching(/^\(/),
      expect.stringMatching(/^\(/),
    ]);
    expect(await describeOf({ search: 'zeppelin ?!' }, [MAIL, weather])).toEqual({ tools: [] });
    expect(await describeOf({ search: '?!' }, [MAIL, weather])).toEqual({ tools: [] });
  });

  test('a search lists a bounded number of tools, and says how many more there are', async () => {
    const output = await describeOf({ search: 'thing' }, largeTools(10_000));
    expect(namesOf(output)).toHaveLength(limits.foundTools);
    expect(output['left_out']).toBe('9980 more tools match: use other words');
  });

  test('describes a bounded number of tools and characters, and names those that are left out', async () => {
    const output = await describeOf({ names: largeTools(40).map(({ name }) => name) }, largeTools(40));
    expect(JSON.stringify(output).length).toBeLessThan(limits.resultPromptChars);
    const count = namesOf(output).length;
    expect(count).toBeGreaterThan(3);
    expect(output['left_out']).toMatch(
      new RegExp(`^left out for length, describe them separately: thing_${count}, thing_${count + 1}, .*, …$`),
    );
    const small = Array.from({ length: 30 }, (_, index) =>
      largeTool(index, { parameters: { type: 'object' }, summary: '' }),
    );
    expect(
      namesOf(await describeOf({ names: small.map(({ name }) => name) }, [...small, ...largeTools(1)])),
    ).toHaveLength(limits.describedTools);
  });

  test('cuts the parameters of one tool at a line, and says so', async () => {
    const properties = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`p${at}`, { type: 'string' }]));
    const huge = largeTool(0, {
      parameters: { type: 'object', properties },
      summary: 's'.repeat(50_000),
      examples: ['e'.repeat(50_000)],
    });
    const output = await describeOf({ names: ['thing_0', 'send_mail'] }, [huge, MAIL]);
    expect(JSON.stringify(output).length).toBeLessThan(limits.resultPromptChars);
    const [first = {}] = output['tools'] as JsonObject[];
    expect(first['parameters']).toMatch(/\n- p\d+ \(string\)\n\[\d+ more lines are left out for length\]$/);
    expect(first).not.toHaveProperty('example');
  });

  test('rejects other parameters', async () => {
    for (const [parameters, message] of [
      [{}, 'parameters.names: expected a list of names of tools, or "search" with words, got nothing'],
      [{ names: [] }, 'parameters.names: expected a list of names of tools, or "search" with words, got []'],
      [{ names: [1] }, 'parameters.names: expected a list of names of tools, got [1]'],
      [{ search: 1 }, 'parameters.search: expected words, got 1'],
    ] as const) {
      await expect(describeOf(parameters as JsonObject, [weather, MAIL])).rejects.toThrow(message);
    }
  });

  test('is allowed if there are tools in short form, and only then; only blocked_actions forbids it', async () => {
    const open = { enabled: true, allowed: null, blocked: [] };
    const allowed = (policy: Parameters<typeof internalPolicy>[0], has = true): string | undefined =>
      internalPolicy(policy, 'describe_tools', { short_tools: has })?.message;
    expect(allowed({ ...open, enabled: false, allowed: [] })).toBeUndefined();
    expect(allowed({ ...open, blocked: ['describe_tools'] })).toContain('is blocked for this agent');
    expect(allowed({ ...open, allowed: ['describe_tools'] }, false)).toContain('the prompt describes all tools');
    expect(internalPolicy(open, 'describe')?.message).not.toContain('describe_tools');
    const outcome = internalExecutor.execute(
      callOf({ names: ['x'] }, { action: { type: 'internal', name: 'describe_tools' } }),
      contextOf({ tools: describableTools(agentOf([weather])) }),
    );
    expect(errorOf(await outcome)).toMatchObject({ code: 'not_allowed' });
  });
});
