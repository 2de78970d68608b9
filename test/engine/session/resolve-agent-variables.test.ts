/** Variables in an agent's persona, feeds and tools (M5). */
import { describe, expect, test } from 'vitest';
import { bundled } from '../../support/bundled.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import type { ResolvedAgent } from '../../../src/domain/manifests/resolved.ts';
import type { ToolDefinition } from '../../../src/domain/manifests/tool.ts';
import type { SessionRecord } from '../../../src/domain/session.ts';
import { TOOL_DEFAULTS } from '../../../src/domain/tool-defaults.ts';
import { resolveAgentVariables } from '../../../src/engine/session/resolve-agent-variables.ts';
import { SESSION_ID, SESSION_RECORD } from '../../journal/journal-kit.ts';
import { feedOf } from '../../support/definitions.ts';

const RECORD: SessionRecord = { ...SESSION_RECORD, created_at: Date.UTC(2026, 0, 2, 3) };

function assistant(more: Partial<ResolvedAgent['agent']> = {}, tools: readonly ToolDefinition[] = []): ResolvedAgent {
  const resolved = bundled.agent('assistant');
  if (resolved === null) throw new Error('the bundled catalogue has no assistant');
  return {
    ...resolved,
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    agent: { ...resolved.agent, ...more },
  };
}

test('[M5] the variables of a persona come from the session and the agent, never from the process', () => {
  const persona = {
    agent: '${AGENT_NAME} on ${DATE} for ${USER_ID:-nobody}; ${TEAM}, ${PATH:-no path}',
    user: 'in ${SESSION_ID}',
    examples: ['of ${TEAM}', 'plain'],
  };
  const { agent } = resolveAgentVariables(assistant({ persona, variables: { TEAM: 'blue' } }), RECORD);
  expect(agent.persona).toEqual({
    agent: 'assistant on 2026-01-02 for nobody; blue, no path',
    user: `in ${SESSION_ID}`,
    examples: ['of blue', 'plain'],
  });
});

test('[M5] a manifest cannot replace the variables of the session', () => {
  const persona = { agent: '${USER_ID} ${DATE} ${SESSION_ID} ${AGENT_NAME}', user: '', examples: [] };
  const variables = { USER_ID: 'x', DATE: 'x', SESSION_ID: 'x', AGENT_NAME: 'x' };
  const resolve = (userId: string | null): string =>
    resolveAgentVariables(assistant({ persona, variables }), { ...RECORD, user_id: userId }).agent.persona.agent;
  expect(resolve('u1')).toBe(`u1 2026-01-02 ${SESSION_ID} assistant`);
  expect(resolve(null)).toBe(`x 2026-01-02 ${SESSION_ID} assistant`);
});

describe('[M5] [Z3] an agent', () => {
  const PLAIN = { persona: { agent: 'Plain.', user: '', examples: [] }, variables: { TEAM: 'blue' } };
  const feed = feedOf('f', { source: { type: 'internal', name: 'x', action: null, params: { of: '${TEAM}' } } });
  const { memory } = assistant().agent;
  const http = (more: object): ToolDefinition => ({
    ...TOOL_DEFAULTS,
    name: 't',
    summary: 't',
    parameters: {},
    implementation: { type: 'http', method: 'GET', url: 'https://x.example/', headers: {}, ...more },
  });

  test('that names no variable is shared by all sessions', () => {
    const plain = assistant(PLAIN, [http({})]);
    expect(resolveAgentVariables(plain, RECORD)).toBe(plain);
    expect(resolveAgentVariables(plain, { ...RECORD, user_id: 'u1' })).toBe(plain);
  });

  test.each([
    ['persona', { persona: { ...PLAIN.persona, agent: '${TEAM}' } }, []],
    ['user persona', { persona: { ...PLAIN.persona, user: '${TEAM}' } }, []],
    ['example', { persona: { ...PLAIN.persona, examples: ['${TEAM}'] } }, []],
    ['part of the prompt', { prompt: { rules: ['${TEAM}'] } }, []],
    ['summary', { memory: { ...memory, summary: { ...memory.summary, template: '${TEAM}' } } }, []],
    ['feed', { feeds: [feed] }, []],
    ['URL', {}, [http({ url: 'https://x.example/${TEAM}' })]],
    ['header', {}, [http({ headers: { team: '${TEAM}' } })]],
  ])('has the variable in its %s', (_place, more, tools) => {
    const given = assistant({ ...PLAIN, ...(more as object) }, tools);
    const resolved = resolveAgentVariables(given, RECORD);
    const { variables: _declared, ...agent } = resolved.agent;
    const text = JSON.stringify([agent, [...resolved.tools.values()]]);
    expect(text).toContain('blue');
    expect(text).not.toContain('TEAM');
  });
});

test('[F1] [M5] variables in the parameters of feeds are replaced at any depth; member names are unchanged', () => {
  const params: JsonObject = {
    '${TEAM}': 'of ${TEAM}',
    list: ['${TEAM}', 1, null, { deep: '${USER_ID}' }],
    flag: true,
  };
  const feed = feedOf('f', {
    source: { type: 'internal', name: '${TEAM}', action: null, params },
    defaultValue: '${TEAM}',
  });
  const resolved = resolveAgentVariables(assistant({ feeds: [feed], variables: { TEAM: 'blue' } }), {
    ...RECORD,
    user_id: 'u1',
  });
  const expected: Json = { '${TEAM}': 'of blue', list: ['blue', 1, null, { deep: 'u1' }], flag: true };
  expect(resolved.agent.feeds).toEqual([{ ...feed, source: { ...feed.source, params: expected } }]);
});

test.each([
  ['${FLAG}', {}, true],
  ['${FLAG:-no}', {}, false],
  ['${FLAG:-yes}', {}, true],
  ['${FLAG:-yes}', { FLAG: 'false' }, false],
  ['${FLAG}', { FLAG: ' On ' }, true],
  ['${FLAG}', { FLAG: '' }, false],
  ['${FLAG}', { FLAG: 'maybe' }, false],
])('[F1] [M5] a feed that is enabled by %s with %j: %s', (enabledBy, variables, enabled) => {
  const feed = feedOf('f', { enabledBy });
  const [resolved] = resolveAgentVariables(assistant({ feeds: [feed], variables }), RECORD).agent.feeds;
  expect(resolved?.enabled).toBe(enabled);
  expect(resolved).not.toHaveProperty('enabledBy');
});

describe('[X3] [M5] the request of an http tool', () => {
  const echo = bundled.tool('echo');
  if (echo === null) throw new Error('the bundled catalogue has no echo');
  const tool = (sealed: boolean | undefined): ToolDefinition => ({
    ...echo,
    name: 'ask',
    implementation: {
      type: 'http',
      url: 'https://${HOST:-example.com}/of/${USER_ID:-nobody}/${TEAM:-none}',
      method: 'GET',
      headers: { user: '${USER_ID:-nobody}', team: '${TEAM:-none}' },
      ...(sealed === undefined ? {} : { sealed }),
    },
  });
  const request = (userId: string | null, sealed?: boolean): unknown => {
    const given = assistant({ variables: { TEAM: 'blue' } }, [tool(sealed), echo]);
    const { tools } = resolveAgentVariables(given, { ...RECORD, user_id: userId });
    expect(tools.get('echo')).toBe(echo);
    const { implementation } = tools.get('ask') ?? echo;
    return implementation.type === 'http' ? [implementation.url, implementation.headers] : null;
  };

  const cases: readonly (readonly [userId: string | null, inUrl: string, inHeader: string])[] = [
    ['u1', 'u1', 'u1'],
    [null, 'nobody', 'nobody'],
    ['a/../b?c#d', 'a%2F..%2Fb%3Fc%23d', 'a/../b?c#d'],
    ['a.b', 'a.b', 'a.b'],
    ['\ud800', '%EF%BF%BD', '\ud800'],
  ];
  test.each(cases)('the user %j is escaped as %s in the URL', (userId, inUrl, inHeader) => {
    expect(request(userId)).toEqual([`https://example.com/of/${inUrl}/blue`, { user: inHeader, team: 'blue' }]);
  });

  test.each(['a/../b?c#d', '..', 'evil.example/'])(
    'the user %j is escaped under its other name, and in a variable of the agent',
    (userId) => {
      const address = 'https://${USER}.example.com/${WHO}/${USER_ID}';
      const asked = { ...tool(undefined), implementation: { type: 'http', url: address, method: 'GET', headers: {} } };
      const given = assistant({ variables: { WHO: '$USER_ID/${USER}' } }, [asked as ToolDefinition]);
      const { tools } = resolveAgentVariables(given, { ...RECORD, user_id: userId });
      const { implementation } = tools.get('ask') ?? echo;
      const safe = userId === '..' ? '' : encodeURIComponent(userId);
      expect(implementation).toMatchObject({ url: `https://${safe}.example.com/${safe}/${safe}/${safe}` });
    },
  );

  test.each(['.', '..', '...'])('the user %s is removed from the URL', (userId) => {
    expect(request(userId)).toEqual([expect.not.stringContaining('/./'), { user: userId, team: 'blue' }]);
    expect(String((request(userId) as string[])[0])).not.toContain('..');
  });

  test('a sealed request ignores the variables of the importing agent', () => {
    expect(request('u1', true)).toEqual(['https://example.com/of/u1/none', { user: 'u1', team: 'none' }]);
    expect(request('u1', false)).toEqual(['https://example.com/of/u1/blue', { user: 'u1', team: 'blue' }]);
  });
});
