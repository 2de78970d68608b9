/** What a model is given, over HTTP: the prompt and the grammar of an agent (L4). */
import { describe, expect, test } from 'vitest';
import { bundled } from '../support/bundled.ts';
import { estimateTokens } from '../../src/domain/tokens.ts';
import { buildGrammar } from '../../src/protocol/grammar/grammar.ts';
import { checkedFetch } from '../support/response-check.ts';
import { edgeApp, noManifests } from './edge-app.ts';

const assistant = bundled.agent('assistant');
if (assistant === null) throw new Error('no assistant');
const persona = { agent: 'Day ${DATE}, session ${SESSION_ID}, ${USER_ID}, ${LANGUAGE}.', user: '', examples: [] };
const agent = { ...assistant.agent, persona, variables: { LANGUAGE: 'Norwegian' } };
const resolved = { ...assistant, agent };

const listed = {
  kind: 'agent' as const,
  version: '1',
  revision: 1,
  summary: '',
  tags: [],
  common: false,
  updatedAt: 0,
};
const app = edgeApp({
  now: () => Date.UTC(2031, 4, 4),
  agent: async (name) => (name === 'assistant' ? resolved : null),
  manifests: { ...noManifests, list: async () => [{ ...listed, name: 'assistant' }] },
});
const fetch = checkedFetch(app);
const get = async (path: string, accept?: string): Promise<Response> =>
  await fetch(new Request(`http://127.0.0.1:8787${path}`, accept === undefined ? {} : { headers: { accept } }));

describe('[L4] GET /agents/{name}/prompt', () => {
  test('is the prompt of a new session, as text; values of a session or its user stay as written', async () => {
    const response = await get('/agents/assistant/prompt');
    expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
    const prompt = await response.text();
    expect(prompt).toContain('Day 2031-05-04, session ${SESSION_ID}, ${USER_ID}, Norwegian.');
  });

  test('has the tokens of each section, as JSON', async () => {
    const prompt = await (await get('/agents/assistant/prompt')).text();
    const document = await (await get('/agents/assistant/prompt', 'application/json')).json();
    expect(document).toMatchObject({
      agent: 'assistant',
      prompt,
      tokens: estimateTokens(prompt),
      characters: prompt.length,
    });
    const { sections } = document as { sections: { title: string; tokens: number }[] };
    expect(sections.map(({ title }) => title)).toEqual([
      'Who the agent is',
      'How you act',
      'Examples (their names are made up; use only those listed further down)',
      'Tools (type="tool")',
      expect.stringMatching(/^Code/),
      expect.stringMatching(/^Internal actions/),
    ]);
    const { parts } = document as { parts: { id: string }[] };
    expect(parts).toHaveLength(9);
    expect(parts[4]).toEqual({ id: 'rules', state: 'built_in', tokens: expect.any(Number), share: expect.any(Number) });
    const sum = sections.reduce((total, { tokens }) => total + tokens, 0);
    expect(Math.abs(sum - estimateTokens(prompt))).toBeLessThanOrEqual(sections.length);
  });
});

describe('[P18] GET /agents/{name}/grammar', () => {
  test('is the grammar of the agent, in each format and form', async () => {
    const response = await get('/agents/assistant/grammar');
    expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
    expect(await response.text()).toBe(buildGrammar(resolved, { format: 'gbnf' }).text);
    const lark = await get('/agents/assistant/grammar?format=lark&protocol_form=compact', 'application/json');
    const { text, notes } = buildGrammar(resolved, { format: 'lark', form: 'compact' });
    expect(await lark.json()).toEqual({ grammar: text, notes });
    expect((await get('/agents/assistant/grammar?format=ebnf')).status).toBe(400);
  });
});

test.each(['prompt', 'grammar'])('[M3] the %s of an unknown agent is 404, with the nearest name', async (document) => {
  const response = await get(`/agents/asistant/${document}`);
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({
    code: 'unknown_agent',
    detail: 'No agent is called "asistant" (did you mean "assistant"? known: assistant)',
  });
});
