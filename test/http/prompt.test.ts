/** `GET …/runs/{run}/prompt`: the messages as they were sent, and who may read them (H1, H5). */
import { describe, expect, test } from 'vitest';
import type { ChatMessage } from '../../src/domain/ports/model.ts';
import { Tokens } from '../../src/http/tokens.ts';
import { runText, say, sessionKit } from '../support/session-kit.ts';
import type { SessionKit } from '../support/session-kit.ts';
import { edgeApp } from './edge-app.ts';
import { apiOf } from './session-api.ts';

interface Prompt {
  readonly generations: readonly { readonly iteration: number; readonly messages: readonly ChatMessage[] }[];
  readonly dropped: number;
}

const ACT = '<action type="tool" mode="async" id="a">{"name":"echo","parameters":{"x":1}}</action>';
const ANSWER = '<response final="true">done</response>';

async function promptOf(kit: SessionKit, run: string): Promise<Prompt> {
  const response = await apiOf(kit).load(`/runs/${run}/prompt`);
  expect(response.status).toBe(200);
  return (await response.json()) as Prompt;
}

describe('[L5] the messages of a run', () => {
  test('are exactly those of its model calls', async () => {
    const kit = await sessionKit({ script: [ACT, ANSWER, ANSWER] });
    const first = await say(kit, 'one');
    const second = await say(kit, 'two');
    const sent = kit.requests.map(({ messages }) => messages);
    const one = await promptOf(kit, first.run_id);
    expect(one.generations.map(({ messages }) => messages)).toEqual(sent.slice(0, 2));
    expect(one).toMatchObject({ dropped: 0, generations: [{ iteration: 1, model: 'scripted' }, { iteration: 2 }] });
    const two = await promptOf(kit, second.run_id);
    expect(two.generations.map(({ messages }) => messages)).toEqual(sent.slice(2));
  });

  test('have no secrets', async () => {
    const kit = await sessionKit({ secrets: ['token-12345'], script: [ANSWER] });
    const { run_id: run } = await say(kit, 'my token-12345 is secret');
    expect(kit.requests[0]?.messages.at(-1)?.content).toContain('token-12345');
    const text = JSON.stringify(await promptOf(kit, run));
    expect(text).toContain('my [secret] is secret');
    expect(text).not.toContain('token-12345');
  });

  test('include native calls and their answers', async () => {
    const call = { type: 'tool_call', index: 0, id: 'c1', name: 'echo', argumentsDelta: '{"x":1}' } as const;
    const kit = await sessionKit({ script: [[call, { type: 'finish', reason: 'tool_calls' }], ANSWER] });
    const { run_id: run } = await say(kit, 'go');
    const { generations } = await promptOf(kit, run);
    expect(generations[1]?.messages).toMatchObject([
      { role: 'system' },
      { role: 'user' },
      { role: 'assistant', tool_calls: [{ id: 'c1', name: 'echo' }] },
      { role: 'tool', tool_call_id: 'c1' },
    ]);
  });

  test('that are no longer stored are counted; posted text has none', async () => {
    const kit = await sessionKit({ script: [ACT, ANSWER] });
    const { run_id: run } = await say(kit, 'one');
    kit.sql.exec(`DELETE FROM prompts`);
    expect(await promptOf(kit, run)).toMatchObject({ generations: [], dropped: 2 });
    const text = await runText(kit, ACT);
    expect(await promptOf(kit, text.run_id)).toMatchObject({ generations: [], dropped: 0 });
  });
});

describe('[H5] prompts are read', () => {
  const ID = `ses_${'1'.repeat(32)}`;
  const PATH = `/agent/session/${ID}/runs/run_${'1'.repeat(32)}_1/prompt`;
  const keys = (['admin', 'run'] as const).map((role) => ({
    name: role,
    role,
    key: `${role}-key-0123456789`,
    namespace: 'a',
    owner: 'a',
  }));
  const tokens = new Tokens(
    () => 's'.repeat(32),
    () => 0,
  );

  const status = async (credential: string, path = PATH, debugPrompts = false): Promise<number> => {
    const app = edgeApp({
      auth: { keys, allowedOrigins: [] },
      tokens,
      debugPrompts,
      forward: async () => new Response('{}'),
    });
    const request = new Request(`http://127.0.0.1${path}`, { headers: { authorization: `Bearer ${credential}` } });
    return (await app.fetch(request)).status;
  };

  test('with an admin key, or with any key and DEBUG_PROMPTS', async () => {
    expect(await status('admin-key-0123456789')).toBe(200);
    expect(await status('run-key-0123456789')).toBe(403);
    expect(await status('run-key-0123456789', PATH, true)).toBe(200);
    expect(await status('run-key-0123456789', PATH.replace('/prompt', ''))).toBe(200);
  });

  test.each([PATH, PATH.replace('prompt', '%70rompt'), `${PATH}?after=1`])(
    'never with a session token: %s',
    async (path) => {
      const scopes = ['read', 'message', 'approve'] as const;
      const token = await tokens.issue({
        type: 'session',
        sessionId: ID,
        incarnation: null,
        owner: 'a',
        scopes,
        expiresAt: 60_000,
      });
      expect(await status(token, path, true)).toBe(403);
      expect(await status('run-key-0123456789', path)).toBe(403);
    },
  );
});
