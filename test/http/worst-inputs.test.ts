/**
 * The worst inputs of one tenant leave the thread to others (X2). Measured in steps of work, which are the same on every
 * machine; `npm run bench:neighbours` measures the waiting times of the whole system.
 */
import { expect, test } from 'vitest';
import { bundled } from '../support/bundled.ts';
import { limits } from '../../src/domain/limits.ts';
import { NO_HISTORY } from '../../src/domain/seeded.ts';
import type { SeededHistory } from '../../src/domain/seeded.ts';
import { ThreadShare, FairQueue } from '../../src/domain/fair-queue.ts';
import { instantClock } from '../../testing/instant-clock.ts';
import { edgeApp } from './edge-app.ts';
import { runText, say, sessionKit } from '../support/session-kit.ts';
import type { SessionKit } from '../support/session-kit.ts';
import { WORST_INPUTS } from '../support/worst-inputs.ts';
import type { Tenant } from '../support/worst-inputs.ts';

/** Inputs that need only a session or a request; stores, catalogs and clocks have their own tests of steps. */
const INPUTS = WORST_INPUTS.filter(
  ({ name, prepare }) =>
    /^(?:json_query|condition|references|actions|plan|messages|history): /.test(name) && prepare === undefined,
);

if (INPUTS.length < 20) throw new Error('the worst inputs have other names');
/** All others take more than a turn. */
const SMALL = 'condition: nested comprehensions';

const PIECE_BYTES = 65_536;

/** A request whose body arrives in pieces, as from the network, and has no stated length. */
function posted(path: string, body: unknown): Request {
  const bytes = new TextEncoder().encode(JSON.stringify(body));
  const count = Math.ceil(bytes.length / PIECE_BYTES);
  const pieces = Array.from({ length: count }, (_, at) => bytes.subarray(at * PIECE_BYTES, (at + 1) * PIECE_BYTES));
  const init = { method: 'POST', body: ReadableStream.from(pieces), duplex: 'half' } as const;
  return new Request(`http://localhost${path}`, init);
}

/** The steps of all shares of one tenant. */
class Account {
  readonly turns = new FairQueue(instantClock());
  steps = 0;
  waits = 0;

  share(): ThreadShare {
    return new CountedShare(this);
  }
}

class CountedShare extends ThreadShare {
  readonly #account: Account;

  constructor(account: Account) {
    super(account.turns, () => 'mallory');
    this.#account = account;
  }

  override charge(steps: number): void {
    this.#account.steps += steps;
    super.charge(steps);
  }

  override async waitTurn(signal?: AbortSignal): Promise<void> {
    this.#account.waits += 1;
    await super.waitTurn(signal);
  }

  override fork(): ThreadShare {
    return this.#account.share();
  }
}

function tenant(account: Account): Tenant {
  const share = (): ThreadShare => account.share();
  const sessions = new Map<string, SessionKit>();
  const begin = ({ messages, files }: SeededHistory = NO_HISTORY): Promise<SessionKit> =>
    sessionKit({
      share: share(),
      script: Array.from({ length: 10 }, () => '<response final="true">hi</response>'),
      history: messages,
      historyFiles: files,
    });
  const edge = edgeApp({
    shareOf: share,
    agent: async (name) => bundled.agent(name),
    newSessionId: async () => `ses_${String(sessions.size).padStart(32, '0')}`,
    createSession: async ({ session_id: id }, _state, history) => void sessions.set(id, await begin(history)),
  });
  return {
    longSession: '',
    async request(_method, path, body) {
      const asked = body as { readonly protocol_text: string; readonly content: string };
      const ok = (value: unknown): { status: number; text: string } => ({ status: 200, text: JSON.stringify(value) });
      if (path === '/execute/direct') return ok(await runText(await begin(), asked.protocol_text));
      const kit = sessions.get(/\/session\/(\w+)\/message$/.exec(path)?.[1] ?? '');
      if (kit !== undefined) return ok(await say(kit, asked.content));
      const answered = await edge.fetch(posted(path, body));
      return { status: answered.status, text: await answered.text() };
    },
  };
}

test.each(INPUTS)('[X2] $name: work beyond one turn is spread over several turns', async ({ name, send, answer }) => {
  const account = new Account();
  expect((await send(tenant(account))).text).toMatch(answer);
  expect(account.steps > limits.turnSteps).toBe(name !== SMALL);
  // An evaluation is never interrupted, and parallel actions are charged together.
  expect(account.steps / (account.waits + 1)).toBeLessThanOrEqual(4 * limits.querySteps);
});

test.each([
  ['/plan', 'protocol_text', limits.bodyByteSteps + limits.textCharSteps],
  ['/agent/assistant/session', 'content', limits.bodyByteSteps],
])('[X2] a body of unknown length for %s is charged while it arrives', async (path, member, stepsPerByte) => {
  const account = new Account();
  const edge = edgeApp({ shareOf: () => account.share(), agent: async (name) => bundled.agent(name) });
  const chars = 1_000_000;
  await edge.fetch(posted(path, { [member]: ' '.repeat(chars) }));
  expect(account.steps).toBeGreaterThan(chars * stepsPerByte);
  expect(account.waits).toBeGreaterThan(1);
});

test.each(['stated', 'unknown'])('[X2] [C2] a message with files is charged by its whole %s length', async (length) => {
  const account = new Account();
  const forward = async (_id: string, _path: string, request: Request): Promise<Response> => {
    await request.arrayBuffer();
    return Response.json({});
  };
  const edge = edgeApp({ shareOf: () => account.share(), forward });
  const bytes = limits.messageBodyBytes;
  const pieces = Array.from({ length: bytes / PIECE_BYTES }, () => new Uint8Array(PIECE_BYTES));
  const headers = length === 'stated' ? { 'content-length': `${bytes}` } : undefined;
  const init = {
    method: 'POST',
    body: ReadableStream.from(pieces),
    duplex: 'half',
    ...(headers && { headers }),
  } as const;
  await edge.fetch(new Request(`http://localhost/agent/session/ses_${'1'.repeat(32)}/message`, init));
  expect(account.steps).toBeGreaterThanOrEqual(bytes * limits.bodyByteSteps);
});

test('[X2] [L5] a prompt costs steps for each of its characters, in every generation', async () => {
  const account = new Account();
  const content = '<action>'.repeat(200_000);
  const script = ['<thought>x</thought>', '<response final="true">hi</response>'];
  const kit = await sessionKit({ share: account.share(), script, history: [{ role: 'user', content }] });
  await say(kit, 'hello');
  expect(kit.requests).toHaveLength(2);
  expect(account.steps).toBeGreaterThan(2 * content.length * limits.promptCharSteps);
  expect(account.waits).toBeGreaterThan(0);
});
