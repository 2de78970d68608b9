/** Model endpoints that fail and stall, with a real Worker. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { answer, startScriptedLlm } from '../../cli/scripted-llm/server.ts';
import type { ScriptedLlm } from '../../cli/scripted-llm/server.ts';
import { modelAt, sharedNamespace, sharedPort } from '../support/shared.ts';
import type { Namespace } from '../support/shared.ts';

let llm: ScriptedLlm;
let system: Namespace;

beforeAll(async () => {
  llm = await startScriptedLlm(
    (request) => {
      const said = JSON.stringify(request.body);
      if (said.includes('please fail')) return { status: 500 };
      if (said.includes('please stall')) return { stream: ['<thought>thinking', 'STALL'] };
      return answer('<response final="true">hi</response>');
    },
    await sharedPort(),
  );
  system = await sharedNamespace();
  const agent = `kind: Agent\nversion: "1"\nname: asker\nsummary: Asks.\npersona: You ask.\n${modelAt(llm.baseUrl)}`;
  const put = await call('/manifests/agent/asker', { method: 'PUT', body: agent });
  expect(put.status).toBe(201);
});

afterAll(async () => {
  await llm?.[Symbol.asyncDispose]();
});

async function call(path: string, init: RequestInit = {}): Promise<Response> {
  return await fetch(`${system.url}${path}`, { headers: system.authorization, ...init });
}

const post = (path: string, body: object): Promise<Response> =>
  call(path, { method: 'POST', body: JSON.stringify(body) });

async function session(): Promise<string> {
  const created = await post('/agent/asker/session', {});
  return `/agent/session/${((await created.json()) as { session_id: string }).session_id}`;
}

/** What the health document says of the endpoint of these tests. */
async function health(): Promise<object[]> {
  const { model_endpoints: all } = (await (await call('/health')).json()) as {
    model_endpoints: { endpoint: string }[];
  };
  return all.filter(({ endpoint }) => endpoint === new URL(llm.baseUrl).origin);
}

const asked = (text: string): ScriptedLlm['requests'] =>
  llm.requests.filter(({ body }) => JSON.stringify(body).includes(text));

test('[J5] a cancelled run closes the model’s connection', async () => {
  const chat = await session();
  const running = post(`${chat}/message`, { content: 'please stall', stream: false });
  await expect.poll(() => asked('please stall').length).toBe(1);
  await post(`${chat}/cancel`, {});
  await asked('please stall')[0]?.left;
  expect(await (await running).json()).toMatchObject({ status: 'cancelled' });
});

// The last test: it opens the circuit of the endpoint.
test('[L2] an endpoint that fails repeatedly is no longer called, and /health reports it', async () => {
  expect(await health()).toEqual([]);
  const status = async (chat: string): Promise<string> => {
    const run = await post(`${chat}/message`, { content: 'please fail', stream: false });
    expect(run.status).toBe(502);
    return ((await run.json()) as { status: string }).status;
  };
  const chat = await session();
  expect([await status(chat), await status(chat)]).toEqual(['failed', 'failed']);
  const requests = llm.requests.length;
  await expect.poll(health).toMatchObject([{ state: 'open', failures: 5 }]);
  // Another session, and therefore another object, does not call it either.
  expect(await status(await session())).toBe('failed');
  expect(llm.requests).toHaveLength(requests);
});
