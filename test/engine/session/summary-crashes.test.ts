/** Summaries on hosts that end at any statement (C10, J2). */
import { expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import type { ModelDelta, ModelRequest } from '../../../src/domain/ports/model.ts';
import type { SqlRow, SqlValue } from '../../../src/domain/ports/storage.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { CrashingSql, openNodeSql } from '../../support/node-sql.ts';
import type { NodeSql } from '../../support/node-sql.ts';
import { say, sessionKit, settle } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';

/** What is left of the writes: all up to the last sync, or up to the last turn of the event loop. Never a part of a turn. */
type Leaves = 'synced' | 'turns';

/** Ends the host at its nth statement. */
class CountingSql extends CrashingSql {
  statements = 0;
  readonly #last: number;
  readonly #leaves: Leaves;
  #ends = false;

  constructor(disk: NodeSql, last: number, leaves: Leaves) {
    super(disk, { atAppend: Infinity, leaves: 'unsynced' });
    this.#last = last;
    this.#leaves = leaves;
  }

  override exec(text: string, ...parameters: SqlValue[]): SqlRow[] {
    this.statements += 1;
    if (this.statements === this.#last) this.kill();
    if (this.#leaves === 'turns' && !this.#ends) {
      this.#ends = true;
      setImmediate(() => {
        this.#ends = false;
        if (!this.crashed) void super.sync();
      });
    }
    return super.exec(text, ...parameters);
  }
}

interface Calls {
  summaries: number;
  readonly prompts: ModelRequest[];
}

async function host(sql: NodeSql, clock: VirtualClock, calls: Calls): Promise<SessionKit> {
  return await sessionKit({
    sql,
    clock,
    agent: (agent) => ({
      ...agent,
      memory: { maxTurns: null, summarizeAfter: 2, summary: { by: 'model', tokens: 200, template: null } },
    }),
    async *stream(request): AsyncGenerator<ModelDelta> {
      if (request.agent === null) calls.summaries += 1;
      else calls.prompts.push(request);
      const text = request.agent === null ? 'Known: what was said first.' : '<response final="true">ok</response>';
      yield { type: 'text', text };
      yield { type: 'finish', reason: 'stop' };
    },
  });
}

/** Two turns; the third one makes a summary due. */
async function twoTurns(clock: VirtualClock): Promise<NodeSql> {
  const disk = openNodeSql();
  const kit = await host(disk, clock, { summaries: 0, prompts: [] });
  await say(kit, 'm1');
  await say(kit, 'm2');
  await kit.settled();
  return disk;
}

async function statementsOfTheThird(): Promise<number> {
  const clock = new VirtualClock();
  const sql = new CountingSql(await twoTurns(clock), Infinity, 'turns');
  const kit = await host(sql, clock, { summaries: 0, prompts: [] });
  await say(kit, 'm3');
  await kit.settled();
  await settle();
  return sql.statements;
}

const summariesIn = (disk: NodeSql): string[] =>
  disk.exec(`SELECT data FROM events WHERE type = 'memory_changed'`).map(({ data }) => String(data));

/** How many turns a prompt shows whole, by the summary, and by lines. */
function shownBy({ messages }: ModelRequest): { whole: number; summarised: number; shortened: number } {
  const text = messages.map(({ content }) => content).join('\n');
  const amount = (what: string): number =>
    Number(new RegExp(`(\\d+) earlier turns? .* ${what} here`).exec(text)?.[1] ?? 0);
  const whole = messages.filter(({ role, content }) => role === 'user' && /^m\d$/m.test(content)).length;
  return { whole, summarised: amount('summarised'), shortened: amount('shortened') };
}

test.each<Leaves>(['synced', 'turns'])(
  '[C10] [J2] a host that ends at any statement of a run and its summary leaves one summary; kept: %s',
  async (leaves) => {
    const most = await statementsOfTheThird();
    expect(most).toBeGreaterThan(40);
    for (let at = 1; at <= most; at += 1) {
      const clock = new VirtualClock();
      const disk = await twoTurns(clock);
      const calls: Calls = { summaries: 0, prompts: [] };
      const sql = new CountingSql(disk, at, leaves);
      const first = await host(sql, clock, calls).catch(() => null);
      if (first !== null) {
        void say(first, 'm3').catch(() => undefined);
        await settle();
        await settle();
      }
      sql.kill();
      const next = await host(disk, clock, calls);
      const where = `statement ${at} of ${most}`;
      await next.session.wake();
      await next.settled();
      if (next.session.runCount < 3) await say(next, 'm3');
      await Promise.all(next.session.runs().map(({ run }) => next.session.ended(run)));
      await next.settled();
      await settle();
      expect(summariesIn(disk), where).toHaveLength(1);
      expect(calls.summaries, where).toBeLessThanOrEqual(2);
      expect(next.session.nextWake(), where).toBeGreaterThan(clock.now());
      await say(next, 'm4');
      const shown = calls.prompts.at(-1);
      // Three earlier turns, of which at most two are shown whole; and the new message.
      expect(shown === undefined ? null : shownBy(shown), where).toEqual({ whole: 3, summarised: 1, shortened: 0 });
      expect(next.faults, where).toEqual([]);
    }
    expect(limits.summaryAttempts).toBeGreaterThanOrEqual(2);
  },
);
