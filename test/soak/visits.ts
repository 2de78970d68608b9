/**
 * What clients do with one session, from its creation to its deletion.
 *
 * Invariant: a visit deletes every session that it has made, also if something else has failed.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { LOST, request } from '../chaos/client.ts';
import type { Answer, Wanted } from '../chaos/client.ts';
import { AGENT, markOf, SUPERVISED, uploadedTool } from './manifests.ts';
import type { Task } from './manifests.ts';
import type { Random } from './random.ts';
import { read } from './readers.ts';

/** One pixel. */
const DOT = 'R0lGODlhAQABAAAAACwAAAAAAQABAAA7';
/** A run that has not ended after this time is reported. */
const MOST_RUN_MS = 120_000;
const POLL_MS = 250;
/** More than a socket and its buffers hold, so that the reader that stops is felt. */
const LONG_ANSWER_WORDS = 4_000;
const STALLED_MS = 3_000;
const NEVER_READ = 2_000;
const ENDS: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled']);

export interface VisitContext {
  /** URL of the Worker. */
  readonly url: string;
  readonly toolHost: string;
  readonly random: Random;
  readonly signal: AbortSignal;
  /** A number that no other visit has. */
  readonly number: number;
  /** Called for what is not as expected; with the reason. */
  readonly failed: (what: string) => void;
}

export type VisitKind =
  | 'chat'
  | 'conversation'
  | 'stalled reader'
  | 'leaving readers'
  | 'tools'
  | 'program'
  | 'store'
  | 'child'
  | 'approval'
  | 'cancel'
  | 'fork'
  | 'files'
  | 'posted text'
  | 'manifest'
  | 'deleted while it runs';

type Visit = (context: VisitContext) => Promise<void>;

/** The sessions that a visit has made. */
class Sessions {
  readonly #context: VisitContext;
  readonly #urls: string[] = [];

  constructor(context: VisitContext) {
    this.#context = context;
  }

  /** Creates a session. @returns its URL */
  async create(agent: string = AGENT): Promise<string> {
    const { url, number } = this.#context;
    const key = `soak-${number}-${this.#urls.length}`;
    const answer = await request(`${url}/agent/${agent}/session`, {
      method: 'POST',
      headers: { 'idempotency-key': key },
      body: JSON.stringify({ user_id: `user-${number % 10}` }),
    });
    return this.add(this.expect(answer, 201, 'create'));
  }

  /** Remembers a session that an answer names. @returns its URL */
  add(answer: Answer): string {
    const { session_id: id } = answer.body as { readonly session_id: string };
    const own = `${this.#context.url}/agent/session/${id}`;
    this.#urls.push(own);
    return own;
  }

  /** Sends a message. @returns the id of its run */
  async send(session: string, content: unknown, query = ''): Promise<string> {
    const answer = await request(
      `${session}/message${query}`,
      post({ content }, `${session}-${JSON.stringify(content)}`),
    );
    return this.expect(answer, 200, 'message').headers.get('x-run-id') ?? '';
  }

  async ended(session: string): Promise<void> {
    for (const deadline = Date.now() + MOST_RUN_MS; ;) {
      const answer = await request(`${session}/runs?limit=100`);
      if (answer !== LOST && answer.status === 200) {
        const { runs } = answer.body as { readonly runs: readonly { readonly status: string }[] };
        if (runs.every(({ status }) => ENDS.has(status))) return;
      }
      if (Date.now() > deadline) return this.#context.failed(`a run of ${session} has not ended`);
      await delay(POLL_MS);
    }
  }

  /** @throws Error for another answer */
  expect(answer: Answer | typeof LOST, status: number, what: string): Answer {
    if (answer === LOST) throw new Error(`${what}: no answer`);
    if (answer.status !== status) throw new Error(`${what}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer;
  }

  async deleteAll(): Promise<void> {
    for (const session of this.#urls.toReversed()) {
      const answer = await request(session, { method: 'DELETE' });
      // 404: an earlier request had no answer, but an effect.
      if (answer === LOST || (answer.status !== 204 && answer.status !== 404)) {
        this.#context.failed(`${session} was not deleted: ${answer === LOST ? 'no answer' : answer.status}`);
      }
    }
  }
}

function post(body: unknown, key?: string): Wanted {
  return {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(key === undefined ? {} : { 'idempotency-key': key.slice(-200) }),
    },
    body: JSON.stringify(body),
  };
}

function visit(carryOut: (sessions: Sessions, context: VisitContext) => Promise<void>): Visit {
  return async (context) => {
    const sessions = new Sessions(context);
    try {
      await carryOut(sessions, context);
    } catch (fault) {
      context.failed(fault instanceof Error ? fault.message : String(fault));
    } finally {
      await sessions.deleteAll();
    }
  };
}

const once = (task: Task, least: number, most: number): Visit =>
  visit(async (sessions, { random }) => {
    const session = await sessions.create();
    await sessions.send(session, markOf(task, random.between(least, most)));
    await sessions.ended(session);
  });

export const VISITS: Readonly<Record<VisitKind, Visit>> = {
  chat: once('stream', 20, 300),
  tools: once('tools', 2, 12),
  program: once('python', 1, 200),
  store: once('store', 1, 50),
  child: once('child', 5, 50),

  conversation: visit(async (sessions, { random, signal }) => {
    const session = await sessions.create();
    const url = `${session}/events`;
    const reader = new AbortController();
    const reads = read({ url, stopsAfter: Infinity, staysMs: 0, signal: AbortSignal.any([signal, reader.signal]) });
    for (let turn = 0; turn < 4; turn += 1) {
      await sessions.send(session, `${turn}: ${markOf(random.pick(['stream', 'tools']), random.between(1, 8))}`);
    }
    await sessions.ended(session);
    reader.abort();
    await reads;
  }),

  'stalled reader': visit(async (sessions, { signal }) => {
    const session = await sessions.create();
    const url = `${session}/events`;
    const stalled = Array.from({ length: 3 }, () => read({ url, stopsAfter: NEVER_READ, staysMs: STALLED_MS, signal }));
    await sessions.send(session, markOf('stream', LONG_ANSWER_WORDS));
    await sessions.ended(session);
    await Promise.all(stalled);
  }),

  'leaving readers': visit(async (sessions, { random, signal }) => {
    const session = await sessions.create();
    await sessions.send(session, markOf('stream', 600));
    const url = `${session}/events`;
    for (let n = 0; n < 5; n += 1) {
      await read({ url, stopsAfter: random.between(1, 4_000), staysMs: random.between(0, 50), signal });
    }
    await sessions.ended(session);
  }),

  approval: visit(async (sessions, { random }) => {
    const session = await sessions.create(SUPERVISED);
    await sessions.send(session, markOf('unsafe', 1));
    for (const deadline = Date.now() + MOST_RUN_MS; Date.now() < deadline; await delay(POLL_MS)) {
      const answer = await request(`${session}/approvals`);
      if (answer === LOST || answer.status !== 200) continue;
      const [open] = (answer.body as { readonly approvals: readonly { readonly approval_id: string }[] }).approvals;
      if (open === undefined) continue;
      const decision = random.pick(['approve', 'deny', 'none']);
      // A decision that is never made ends with the session.
      if (decision === 'none') return;
      await request(`${session}/approvals/${open.approval_id}`, post({ decision }));
      break;
    }
    await sessions.ended(session);
  }),

  cancel: visit(async (sessions, { random }) => {
    const session = await sessions.create();
    await sessions.send(session, markOf(random.pick(['slow', 'stream']), 5_000));
    await delay(random.between(0, 800));
    await request(`${session}/cancel`, post({ reason: 'soak' }));
    await sessions.ended(session);
  }),

  fork: visit(async (sessions, { number }) => {
    const session = await sessions.create();
    await sessions.send(session, markOf('tools', 3));
    await sessions.ended(session);
    const answer = await request(`${session}/fork`, post({}, `fork-${number}`));
    const fork = sessions.add(sessions.expect(answer, 201, 'fork'));
    await sessions.send(fork, markOf('stream', 30));
    await sessions.ended(fork);
  }),

  files: visit(async (sessions, { random }) => {
    const session = await sessions.create();
    const body = 'x'.repeat(random.between(1, 200_000));
    sessions.expect(await request(`${session}/files/folder/a.txt`, { method: 'PUT', body }), 201, 'upload');
    await sessions.send(session, [
      { type: 'text', text: markOf('python', 5) },
      { type: 'image', name: 'dot.gif', data: DOT },
    ]);
    await sessions.ended(session);
    await request(`${session}/files/folder/a.txt`);
  }),

  'posted text': visit(async (sessions, { url }) => {
    const text =
      '<action type="tool" id="t">{"name": "soak_tool", "parameters": {"item": 1}}</action><response final="true">$t</response>';
    const answer = await request(`${url}/execute/direct`, {
      ...post({ protocol_text: text, agent: AGENT, stream: false }),
      // It would be another execution.
      mayRepeat: false,
    });
    if (answer !== LOST) sessions.add(sessions.expect(answer, 200, 'execute'));
  }),

  manifest: visit(async (sessions, { url, toolHost, number }) => {
    const name = `uploaded_${number % 3}`;
    const body = uploadedTool(toolHost, name, number);
    const answer = await request(`${url}/manifests/tool/${name}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/yaml' },
      body,
    });
    if (answer === LOST || answer.status > 201) sessions.expect(answer, 201, 'upload of a manifest');
    const session = await sessions.create();
    await sessions.send(session, markOf('tools', 1));
    await sessions.ended(session);
    await request(`${url}/manifests/tool/${name}`, { method: 'DELETE' });
  }),

  'deleted while it runs': visit(async (sessions, { random }) => {
    const session = await sessions.create();
    await sessions.send(
      session,
      markOf(random.pick(['slow', 'python', 'stream', 'child']), random.between(500, 3_000)),
    );
    await delay(random.between(0, 500));
  }),
};
