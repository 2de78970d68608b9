/**
 * Agents with MCP servers through the whole system (E5): the reference server with all of its kinds of results, and servers
 * that break or mean harm, where the engine decides what happens.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answer, startScriptedLlm } from '../../cli/scripted-llm/server.ts';
import type { ScriptedLlm } from '../../cli/scripted-llm/server.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import type { RunResult } from '../../src/view/result.ts';
import { startEverythingServer } from '../mcp/servers/everything.ts';
import type { EverythingServer } from '../mcp/servers/everything.ts';
import { TAGS, asksFor, changingSchema, textResult } from '../mcp/servers/hostile-content.ts';
import { startHostileServer } from '../mcp/servers/hostile-server.ts';
import type { HostileServer, HostileServerOptions } from '../mcp/servers/hostile-server.ts';
import { modelAt, sharedNamespace, sharedPort } from '../support/shared.ts';
import type { Namespace } from '../support/shared.ts';

let llm: ScriptedLlm;
let system: Namespace;
let everything: EverythingServer;
const hostile = {} as Record<keyof typeof HOSTILE, HostileServer>;
/** What the model writes in each generation, by the first word of the message. */
const scripts = new Map<string, readonly string[]>();

const HOSTILE = {
  changing: { list: changingSchema },
  down: { ttlMs: 60_000 },
  tags: { results: { work: textResult(TAGS) } },
  redirecting: {},
  asking: { results: { work: asksFor('password') } },
} as const satisfies Readonly<Record<string, HostileServerOptions>>;

beforeAll(async () => {
  everything = await startEverythingServer(await sharedPort());
  for (const [name, options] of Object.entries(HOSTILE)) {
    hostile[name as keyof typeof HOSTILE] = await startHostileServer(options, await sharedPort());
  }
  llm = await startScriptedLlm(
    ({ body }) => {
      const { messages } = body as {
        readonly messages: readonly { readonly role: string; readonly content: unknown }[];
      };
      const at = messages.findLastIndex(({ content }) => /script-\d+/.test(JSON.stringify(content)));
      const [script = ''] = /script-\d+/.exec(JSON.stringify(messages[at]?.content ?? '')) ?? [];
      const said = messages.slice(at).filter(({ role }) => role === 'assistant').length;
      return answer(scripts.get(script)?.[said] ?? '<response final="true">The script has ended.</response>', 16);
    },
    await sharedPort(),
  );
  system = await sharedNamespace();
});

afterAll(async () => {
  await llm?.[Symbol.asyncDispose]();
  await everything?.[Symbol.asyncDispose]();
  for (const server of Object.values(hostile)) await server.close();
});

async function call(path: string, init: RequestInit = {}): Promise<Response> {
  return await fetch(`${system.url}${path}`, { headers: system.authorization, ...init });
}

async function post(path: string, body: unknown): Promise<unknown> {
  const response = await call(path, { method: 'POST', body: JSON.stringify(body) });
  const json: unknown = await response.json();
  expect(response.ok, JSON.stringify(json)).toBe(true);
  return json;
}

/** A new agent with one server, and a session with it. */
async function sessionWith(agent: string, server: Readonly<Record<string, unknown>>): Promise<string> {
  const manifest = `kind: Agent\nversion: "1.0"\nname: ${agent}\nsummary: s\npersona: p\n${modelAt(llm.baseUrl)}mcp_servers: [${JSON.stringify({ name: 'srv', ...server })}]\n`;
  const put = await call(`/manifests/agents/${agent}`, { method: 'PUT', body: manifest });
  expect(put.ok, await put.clone().text()).toBe(true);
  const { session_id: session } = (await post(`/agent/${agent}/session`, {})) as { readonly session_id: string };
  return session;
}

/** A message, to which the model answers with these generations. */
async function run(session: string, ...generations: readonly string[]): Promise<RunResult> {
  const script = `script-${scripts.size + 1}`;
  scripts.set(script, generations);
  return (await post(`/agent/session/${session}/message`, { content: script, stream: false })) as RunResult;
}

function act(id: string, name: string, parameters: unknown = {}): string {
  return `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name, parameters })}</action>`;
}

/** The same, with all events of the run. */
async function streamed(session: string, ...generations: readonly string[]): Promise<readonly SessionEvent[]> {
  const script = `script-${scripts.size + 1}`;
  scripts.set(script, generations);
  const body = JSON.stringify({ content: script, stream: true });
  return await eventsIn(await call(`/agent/session/${session}/message`, { method: 'POST', body }));
}

async function eventsOf({ session_id: session, run_id: id }: RunResult): Promise<readonly SessionEvent[]> {
  return await eventsIn(await call(`/agent/session/${session}/events?run=${id}`));
}

async function eventsIn(response: Response): Promise<readonly SessionEvent[]> {
  return [...(await response.text()).matchAll(/^data: (.+)$/gm)].map(
    ([, data = '']) => JSON.parse(data) as SessionEvent,
  );
}

/** The text of the latest prompt of the model. */
function latestPrompt(): string {
  return JSON.stringify(llm.requests.at(-1)?.body);
}

describe('the reference server', () => {
  let session: string;

  beforeAll(async () => {
    session = await sessionWith('everything', { url: everything.url, trust: true });
  });

  test('[E5] texts, sums, structured results and resources are outputs of actions, with references between them', async () => {
    const result = await run(
      session,
      act('said', 'echo', { message: 'hello' }) +
        act('weather', 'get-structured-content', { location: 'Chicago' }) +
        act('sum', 'get-sum', { a: '$weather.temperature', b: 6 }) +
        act('links', 'get-resource-links', { count: 2 }) +
        act('note', 'get-resource-reference', { resourceType: 'Text', resourceId: 1 }) +
        act('file', 'read_resource', { uri: 'demo://resource/dynamic/text/1' }) +
        '<response final="true">$said / $sum / $weather.conditions</response>',
    );
    expect(result.response).toBe('Echo: hello / The sum of 36 and 6 is 42. / Light rain / drizzle');
    expect(result.actions.map(({ id, status }) => [id, status])).toEqual(
      ['said', 'weather', 'sum', 'links', 'note', 'file'].map((id) => [id, 'completed']),
    );
    const byId = new Map(result.actions.map(({ id, output }) => [id, output]));
    expect(byId.get('links')).toMatchObject({ links: [{ uri: expect.stringMatching(/^demo:\/\//) }, {}] });

    expect(byId.get('note')).toMatchObject({
      files: [{ content_type: 'text/plain', text: expect.stringMatching(/^Resource 1/) }],
    });
    expect(byId.get('file')).toMatch(/^Resource 1/);
  });

  test('[E5] steps of a long operation are progress events', async () => {
    const events = await streamed(
      session,
      `${act('long', 'trigger-long-running-operation', { duration: 2, steps: 4 })}<response final="true">$long</response>`,
    );
    const steps = events.flatMap(({ type, data }) => (type === 'progress' ? [data as Record<string, unknown>] : []));
    // Live output is for those who read at the moment: the first steps may be over by then.
    expect(steps.length).toBeGreaterThan(0);
    const expected = [25, 50, 75, 100].map((percent) => ({ stream: 'tool', percent }));
    for (const { stream, percent } of steps) expect(expected).toContainEqual({ stream, percent });
  });

  test('[C2] [E5] an image is an artifact, which the model sees', async () => {
    const result = await run(session, act('logo', 'get-tiny-image'), '<response final="true">$logo.text</response>');
    expect(result.response).toMatch(/^Here's the image/);
    const listed = await call(`/agent/session/${session}/artifacts`);
    const { artifacts } = (await listed.json()) as {
      readonly artifacts: readonly { readonly id: string; readonly action_id: string }[];
    };
    const id = artifacts.find(({ action_id: action }) => action === 'logo')?.id;
    const image = await call(`/agent/session/${session}/artifacts/${id}`);
    expect(image.headers.get('content-type')).toBe('image/png');
    expect(
      Buffer.from(await image.arrayBuffer())
        .subarray(1, 4)
        .toString(),
    ).toBe('PNG');
  });
});

describe('a question of the reference server', () => {
  interface Approval {
    readonly approval_id: string;
    readonly question: { readonly from: string; readonly message: string; readonly url?: string };
  }

  /** The run after its only question was decided. */
  async function decided(tool: string, parameters: unknown, decision: unknown): Promise<[Approval, RunResult]> {
    const session = await sessionWith(`asking_${scripts.size}`, { url: everything.url });
    const waiting = await run(session, act('q', tool, parameters), '<response final="true">$q</response>');
    const listed = await call(`/agent/session/${session}/approvals`);
    const { approvals } = (await listed.json()) as { readonly approvals: readonly Approval[] };
    const [approval] = approvals;
    if (approval === undefined) throw new Error(`no question: ${JSON.stringify(waiting)}`);
    await post(`/agent/session/${session}/approvals/${approval.approval_id}`, decision);
    await eventsOf(waiting);
    const done = await call(`/agent/session/${session}/runs/${waiting.run_id}`);
    return [approval, (await done.json()) as RunResult];
  }

  test('[E5] is an approval, whose values the server gets with its defaults', async () => {
    const decision = { decision: 'approve', content: { name: 'Ada' } };
    const [{ question }, result] = await decided('trigger-elicitation-request', {}, decision);
    expect(question).toMatchObject({ from: 'MCP server "srv"', message: expect.stringMatching(/^Please provide/) });
    expect(result.response).toContain('- Name: Ada');
    expect(result.response).toContain('- Favorite Integer: 42');
  });

  test('[E5] names the page that a person is asked to open', async () => {
    const url = 'https://example.com/sign-in';
    const [{ question }, result] = await decided('trigger-url-elicitation', { url }, { decision: 'approve' });
    expect(question).toMatchObject({ url });
    expect(result.response).toMatch(/accept/i);
  });

  test('[E5] that is denied fails the action', async () => {
    const [, result] = await decided('trigger-elicitation-request', {}, { decision: 'deny' });
    expect(result.actions).toMatchObject([{ status: 'failed', error: { code: 'approval_denied' } }]);
  });
});

describe('a server that means harm', () => {
  test('[E5] changes a schema: a run keeps the list that it began with, and the next one has the new list', async () => {
    const session = await sessionWith('changing', { url: hostile.changing.url });
    const first = await run(
      session,
      act('a', 'work', { first: 'x' }),
      act('b', 'work', { first: 'y' }),
      '<response final="true">ok</response>',
    );
    expect(first.actions.map(({ status }) => status)).toEqual(['completed', 'completed']);
    const second = await run(
      session,
      `${act('a', 'work', { first: 'x' })}${act('b', 'work', { second: 'y' })}<response final="true">ok</response>`,
    );
    expect(second.actions.map(({ status }) => status)).toEqual(['failed', 'completed']);
  });

  test('[E5] is down: its tools fail, or are missing with a warning, and the run goes on', async () => {
    const session = await sessionWith('down', { url: hostile.down.url });
    const before = await run(session, `${act('a', 'work')}<response final="true">$a</response>`);
    expect(before.response).toBe('done');
    await hostile.down.close();
    const after = await run(session, act('a', 'work'), '<response final="true">without it</response>');
    expect(after).toMatchObject({ status: 'completed', response: 'without it' });
    expect(after.actions).toMatchObject([{ status: 'failed', error: { code: 'fetch_failed' } }]);

    const missing = await run(
      await sessionWith('never_up', { url: hostile.down.url, tools: ['work'] }),
      '<response final="true">without it</response>',
    );
    expect(missing).toMatchObject({ status: 'completed', response: 'without it' });
    expect((await eventsOf(missing)).filter(({ type }) => type === 'warning')).toMatchObject([
      { data: { code: 'mcp_unavailable' } },
    ]);
  });

  test('[E5] returns tags of the protocol: they are data in the next prompt and in the answer', async () => {
    const session = await sessionWith('tagged', { url: hostile.tags.url });
    const result = await run(session, act('w', 'work'), '<response final="true">It says: $w</response>');
    expect(result.actions.map(({ id }) => id)).toEqual(['w']);
    expect(result.response).toBe(`It says: ${TAGS}`);
    // The prompt has no tag that the server wrote.
    expect(latestPrompt()).toContain('before ');
    expect(latestPrompt()).not.toMatch(/<action type=[\\"]+tool[\\"]+ name=[\\"]+remove/);
  });

  test('[X2] redirects to a private address: nothing is sent there', async () => {
    const { url, misbehave } = hostile.redirecting;
    const session = await sessionWith('redirected', { url });
    misbehave('tools/call', { kind: 'status', status: 307, headers: { location: 'http://10.0.0.1/' } });
    const result = await run(session, act('w', 'work'), '<response final="true">ok</response>');
    expect(result.actions).toMatchObject([{ status: 'failed', error: { code: 'mcp_failed' } }]);
  });

  test('[E5] asks for a secret: it is declined, and no person is asked', async () => {
    const session = await sessionWith('asked', { url: hostile.asking.url });
    const result = await run(session, `${act('w', 'work')}<response final="true">$w.action</response>`);
    expect(result.response).toBe('decline');
    expect(hostile.asking.replies).toEqual([{ action: 'decline' }]);
    const types = (await eventsOf(result)).map(({ type }) => type);
    expect(types).toContain('agent_completed');
    expect(types.filter((type) => type.startsWith('approval'))).toEqual([]);
  });
});
