/** Tools of a message and results of their calls, through the session API (C3). */
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { SCOPES_HEADER } from '../../src/http/session-env.ts';
import { checkedKit } from '../support/response-check.ts';
import { sessionKit, settle } from '../support/session-kit.ts';
import type { SessionKit } from '../support/session-kit.ts';

const TOOL = { name: 'pick_color', description: 'Asks for a color.', parameters: { type: 'object' } };
const PICK = '<action type="tool" mode="async" id="c">{"name": "pick_color"}</action>';

interface Api {
  readonly kit: SessionKit;
  post(path: string, body: unknown, scopes?: string): Promise<Response>;
}

async function api(): Promise<Api> {
  const kit = await sessionKit({ script: [PICK, '<response final="true">$c</response>'] });
  kit.sql.onSync = settle;
  const fetch = checkedKit(kit);
  const post: Api['post'] = async (path, body, scopes) =>
    await fetch(
      new Request(`http://session${path}`, {
        method: 'POST',
        headers: scopes === undefined ? {} : { [SCOPES_HEADER]: scopes },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    );
  return { kit, post };
}

const problem = async (response: Response): Promise<[number, string]> => [
  response.status,
  ((await response.json()) as { code: string }).code,
];

/** A session that waits for a call, and the path of the call. */
async function called(): Promise<Api & { readonly path: string }> {
  const session = await api();
  const response = await session.post('/message', { content: 'go', tools: [TOOL], stream: false });
  const { pending } = (await response.json()) as { pending: { call_id: string }[] };
  return { ...session, path: `/calls/${pending[0]?.call_id ?? ''}` };
}

describe('[C3] the result of a call', () => {
  test('is posted once, and again', async () => {
    const { post, path, kit } = await called();
    for (let time = 0; time < 2; time += 1) {
      const response = await post(path, { output: 'red' });
      expect([response.status, await response.json()]).toMatchObject([200, { status: 'completed' }]);
    }
    expect(await problem(await post(path, { output: 'blue' }))).toEqual([409, 'call_settled']);
    await settle();
    expect(kit.session.runs(1)[0]?.status).toBe('completed');
  });

  test.each<[unknown, number, string]>([
    [{}, 400, 'invalid_request'],
    [{ output: 1, error: { message: 'x' } }, 400, 'invalid_request'],
    [{ error: 'x' }, 400, 'invalid_request'],
    [{ error: { message: '' } }, 400, 'invalid_request'],
    [{ outptu: 1 }, 400, 'invalid_request'],
    ['{', 400, 'invalid_json'],
    [{ output: 'x'.repeat(limits.clientOutputBytes) }, 413, 'body_too_large'],
  ])('case %#: a wrong body changes nothing', async (body, status, code) => {
    const { post, path, kit } = await called();
    expect(await problem(await post(path, body))).toEqual([status, code]);
    expect(kit.session.status).toBe('waiting');
  });

  test('null is an output', async () => {
    const { post, path } = await called();
    expect((await post(path, { output: null })).status).toBe(200);
  });

  test('of an unknown call', async () => {
    const { post } = await called();
    expect(await problem(await post('/calls/call_x', { output: 1 }))).toEqual([404, 'unknown_call']);
  });

  test('needs the scope "tools"', async () => {
    const { post, path } = await called();
    expect(await problem(await post(path, { output: 1 }, 'read message'))).toEqual([403, 'forbidden']);
    expect((await post(path, { output: 1 }, 'tools')).status).toBe(200);
  });
});

describe('[C3] tools of a message', () => {
  test('need the scope "tools"; a message without tools does not', async () => {
    const { post, kit } = await api();
    const refused = await post('/message', { content: 'go', tools: [TOOL], stream: false }, 'message');
    expect(await problem(refused)).toEqual([403, 'forbidden']);
    expect(kit.session.runCount).toBe(0);
    expect((await post('/message', { content: 'go', tools: [], stream: false }, 'message')).status).toBe(200);
  });

  test.each<[unknown, number, string]>([
    [[{ ...TOOL, name: 'python' }], 400, 'invalid_client_tools'],
    [[{ ...TOOL, input: {} }], 400, 'invalid_request'],
    [{ pick: TOOL }, 400, 'invalid_request'],
  ])('case %#: are refused as a whole', async (tools, status, code) => {
    const { post, kit } = await api();
    expect(await problem(await post('/message', { content: 'go', tools, stream: false }))).toEqual([status, code]);
    expect(kit.session.runCount).toBe(0);
  });

  test('a stream ends when the run waits, with the call in it', async () => {
    const { post } = await api();
    const text = await (await post('/message', { content: 'go', tools: [TOOL] })).text();
    expect(text).toMatch(/event: client_tool_called[\s\S]*event: agent_waiting[\s\S]*"reason":"client_tools"/);
  });
});
