/**
 * The worst inputs of one tenant leave the thread to others (X2). Measured in steps of work, which are the same on every
 * machine; `npm run bench:neighbours` measures the waiting times of the whole system.
 */
import { expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { ThreadShare, FairQueue } from '../../src/domain/fair-queue.ts';
import { instantClock } from '../support/instant-clock.ts';
import { edgeApp } from './edge-app.ts';
import { runText, say, sessionKit } from '../support/session-kit.ts';
import type { SessionKit } from '../support/session-kit.ts';
import { WORST_INPUTS } from '../support/worst-inputs.ts';
import type { Tenant } from '../support/worst-inputs.ts';

/** Inputs that need only a session or a request; stores, catalogs and clocks have their own tests of steps. */
const INPUTS = WORST_INPUTS.filter(
  ({ name, prepare }) =>
    /^(?:json_query|condition|references|actions|plan|messages): /.test(name) && prepare === undefined,
);

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
  const begin = (): Promise<SessionKit> =>
    sessionKit({ share: share(), script: Array.from({ length: 10 }, () => '<response final="true">hi</response>') });
  const edge = edgeApp({
    shareOf: share,
  });
  return {
    longSession: '',
    async request(_method, path, body) {
      const asked = body as { readonly protocol_text: string; readonly content: string };
      const ok = (value: unknown): { status: number; text: string } => ({ status: 200, text: JSON.stringify(value) });
      if (path === '/execute/direct') return ok(await runText(await begin(), asked.protocol_text));
      if (path === '/agent/assistant/session') {
        const id = `ses_${sessions.size}`;
        sessions.set(id, await begin());
        return ok({ session_id: id });
      }
      const kit = sessions.get(/\/session\/(\w+)\/message$/.exec(path)?.[1] ?? '');
      if (kit !== undefined) return ok(await say(kit, asked.content));
      const answered = await edge.fetch(
        new Request(`http://localhost${path}`, { method: 'POST', body: JSON.stringify(body) }),
      );
      return { status: answered.status, text: await answered.text() };
    },
  };
}

test.each(INPUTS)('[X2] $name: work beyond one turn is spread over several turns', async ({ send, answer }) => {
  const account = new Account();
  expect((await send(tenant(account))).text).toMatch(answer);
  if (account.steps <= limits.turnSteps) return;
  // An evaluation is never interrupted, and parallel actions are charged together.
  expect(account.steps / account.waits).toBeLessThanOrEqual(4 * limits.querySteps);
});
