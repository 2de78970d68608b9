/** The record of a run's inputs, replayed by the next host (J9). */
import { describe, expect, test } from 'vitest';
import type { ActionOutcome } from '../../../src/domain/action.ts';
import type { SessionEvent } from '../../../src/domain/event.ts';
import type { Json } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { ModelDelta } from '../../../src/domain/ports/model.ts';
import type { RunResult } from '../../../src/view/result.ts';
import type { ActionCall } from '../../../src/executors/executor.ts';
import { Journal } from '../../../src/journal/journal.ts';
import { eventsOf } from '../../support/events.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { CrashingSql, openNodeSql } from '../../support/node-sql.ts';
import { resultOf, sessionKit, settle } from '../../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../../support/session-kit.ts';
import { send } from '../../support/send.ts';

const ACTION = (id: string, fields: Record<string, Json> = {}): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name: 'echo', timeout: 3_600, ...fields })}</action>`;

/** Successive hosts over one disk and one clock. */
class Hosts {
  readonly disk = openNodeSql();
  readonly clock = new VirtualClock();
  readonly #options: KitOptions;
  #sql: CrashingSql | null = null;

  constructor(options: KitOptions) {
    this.#options = options;
  }

  /** Kills the current host, starts the next one and recovers its runs. */
  async next(): Promise<SessionKit> {
    await settle();
    this.#sql?.kill();
    this.#sql = new CrashingSql(this.disk, null);
    const kit = await sessionKit({ ...this.#options, sql: this.#sql, clock: this.clock });
    await kit.session.recover();
    await settle();
    return kit;
  }

  /** Lets time pass until the latest run has ended. */
  async end({ session }: SessionKit): Promise<RunResult> {
    for (let turn = 0; turn < 100; turn += 1) {
      await settle();
      const run = session.runs().at(-1);
      if (run !== undefined && session.hasEnded(run.runId)) return await resultOf(session, run);
      this.clock.advance((this.clock.next ?? this.clock.now()) - this.clock.now());
    }
    throw new Error('the run does not end');
  }

  /** Everything in the journal. */
  events(): SessionEvent[] {
    return new Journal(this.disk).page(0);
  }
}

/** Actions whose id begins with `slow` take one second, `deaf` never ends; the others end immediately, as their parameters say. */
function world(): { readonly hosts: (more?: KitOptions) => Hosts; readonly ran: string[] } {
  const ran: string[] = [];
  return {
    ran,
    hosts: (more = {}) => {
      const tool = async ({ action, attempt, parameters }: ActionCall): Promise<ActionOutcome> => {
        ran.push(`${action.id}/${attempt}`);
        if (action.id.startsWith('slow')) await new Promise<void>((end) => void made.clock.schedule(1_000, end));
        if (action.id === 'deaf') await new Promise(() => undefined);
        return { ok: true, output: parameters['value'] ?? null };
      };
      const made = new Hosts({ executors: { tool }, ...more });
      return made;
    },
  };
}

async function post(kit: SessionKit, text: string): Promise<void> {
  const chunks = async function* (): AsyncGenerator<string> {
    yield text;
  };
  await kit.session.execute(chunks(), text);
  await settle();
}

describe('[J9] replay of a generation', () => {
  test('reads its reasoning, text, native calls and usage; no event is written twice', async () => {
    const { hosts, ran } = world();
    const usage = { promptTokens: 10, completionTokens: 5, cachedTokens: 2, estimated: false };
    const generations: readonly (readonly ModelDelta[])[] = [
      [
        { type: 'reasoning', text: 'let me ' },
        { type: 'reasoning', text: 'see' },
        { type: 'text', text: ACTION('quick', { parameters: { value: 'q' } }) },
        { type: 'tool_call', index: 0, id: 'slow_call', name: 'echo', argumentsDelta: '{"val' },
        { type: 'tool_call', index: 0, id: null, name: null, argumentsDelta: 'ue":"c"}' },
        { type: 'text', text: ACTION('slow', { parameters: { value: 's' } }) },
        { type: 'usage', usage },
        { type: 'finish', reason: 'tool_calls' },
      ],
      [
        { type: 'text', text: '<response final="true">$quick $slow</response>' },
        { type: 'usage', usage },
      ],
    ] as unknown as readonly (readonly ModelDelta[])[];
    let asked = 0;
    const made = hosts({
      stream: async function* () {
        asked += 1;
        yield* generations[asked - 1] ?? [];
      },
    });
    const first = await made.next();
    await send(first, 'go', { tokens: true });
    const last = await made.next();
    const result = await made.end(last);
    expect(result).toMatchObject({
      status: 'completed',
      response: 'q s',
      usage: { prompt_tokens: 20, completion_tokens: 10, cached_tokens: 4, model_calls: 2 },
    });
    expect(result.actions.map(({ status, output }) => [status, output])).toEqual(
      expect.arrayContaining([
        ['completed', 'q'],
        ['completed', 's'],
        ['completed', 'c'],
      ]),
    );
    expect(asked).toBe(2);
    expect(ran.filter((job) => job === 'quick/1')).toHaveLength(1);
    const events = made.events();
    expect(eventsOf(events, 'thought_completed').map(({ data }) => data.content)).toEqual(['let me see']);
    expect(eventsOf(events, 'usage')).toHaveLength(2);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1));
  });

  test('a requested cancel still applies after a crash', async () => {
    const { hosts } = world();
    const made = hosts({ executors: { tool: () => new Promise(() => undefined) } });
    const first = await made.next();
    await post(first, ACTION('deaf'));
    void first.session.cancel('enough');
    const last = await made.next();
    const result = await made.end(last);
    expect(result).toMatchObject({ status: 'cancelled', actions: [{ id: 'deaf', status: 'cancelled' }] });
    expect(eventsOf(made.events(), 'agent_cancelled')).toHaveLength(1);
  });
});

describe('[J9] replay of posted text', () => {
  test('a stream is recorded with its text: its actions keep their results, and the run fails as cut', async () => {
    const { hosts, ran } = world();
    const made = hosts();
    const first = await made.next();
    await first.session.execute(
      (async function* () {
        yield ACTION('quick', { parameters: { value: 'q' } });
        await new Promise(() => undefined);
      })(),
      null,
    );
    const last = await made.next();
    const result = await made.end(last);
    expect(result).toMatchObject({ status: 'failed', error: { code: 'input_cut' } });
    expect(result.actions).toMatchObject([{ id: 'quick', status: 'completed', output: 'q' }]);
    expect(ran).toEqual(['quick/1']);
  });

  test('a complete text is recorded by its length, and the run continues', async () => {
    const { hosts, ran } = world();
    const made = hosts();
    const first = await made.next();
    await post(first, `${ACTION('quick', { parameters: { value: 'q' } })}${ACTION('slow')}<response>$quick</response>`);
    const states = made.events().map(({ seq }) => JSON.stringify(new Journal(made.disk).stateAt(seq ?? 0)));
    expect(states.join()).toContain('"is":"posted"');
    expect(states.join()).not.toContain('"is":"text"');
    expect(await made.end(await made.next())).toMatchObject({ status: 'completed', response: 'q' });
    expect(ran).toEqual(['quick/1', 'slow/1', 'slow/1']);
  });
});

describe('[J9] replay of outcomes', () => {
  test('[P6] a lookup is not repeated: a reused outcome, and an idempotency key of another call', async () => {
    const { hosts, ran } = world();
    const made = hosts();
    const cached = (id: string): string => ACTION(id, { cache_ttl: 60, parameters: { value: 'once' } });
    const keyed = (id: string, value: string): string => ACTION(id, { idempotency_key: 'k', parameters: { value } });
    const first = await made.next();
    await post(first, `${cached('a')}${keyed('b', 'one')}`);
    await made.end(first);
    await post(first, `${cached('c')}${keyed('d', 'other')}${ACTION('slow')}`);
    const result = await made.end(await made.next());
    expect(result.actions).toMatchObject([
      { id: 'c', status: 'completed', output: 'once', attempts: 0 },
      { id: 'd', status: 'failed', error: { code: 'idempotency_mismatch', retryable: false } },
      { id: 'slow', status: 'completed' },
    ]);
    expect(ran).toEqual(['a/1', 'b/1', 'slow/1', 'slow/1']);
  });

  test('[S7] a retry after a timeout starts at the same time as without the crash', async () => {
    const retry = { max_attempts: 3, delay: 10, backoff: 'exponential' };
    const text = ACTION('deaf', { retry, timeout: 5 });
    const startsOf = async (crash: boolean): Promise<number[]> => {
      const made = world().hosts();
      const first = await made.next();
      await post(first, text);
      made.clock.advance(5_000);
      await made.end(crash ? await made.next() : first);
      return eventsOf(made.events(), 'action_started').map(({ timestamp }) => timestamp);
    };
    const whole = await startsOf(false);
    expect(whole).toHaveLength(3);
    expect(await startsOf(true)).toEqual(whole);
  });
});

describe('[J2] a recovered run', () => {
  test('has a warning with the number of recoveries, and fails after the last one', async () => {
    const made = world().hosts({ executors: { tool: () => new Promise(() => undefined) } });
    let kit = await made.next();
    await post(kit, ACTION('forever'));
    for (let crash = 0; crash <= limits.recoveries; crash += 1) {
      // A host that lives for so long was not frozen by the run.
      made.clock.advance(limits.provenMs);
      kit = await made.next();
    }
    const warned = eventsOf(made.events(), 'warning').filter(({ data }) => data.code === 'run_recovered');
    expect(warned.map(({ data }) => data.message)).toEqual(
      Array.from(
        { length: limits.recoveries },
        (_, n) =>
          `The host was restarted during this run; the run continues (recovery ${n + 1} of ${limits.recoveries})`,
      ),
    );
    expect((await made.end(kit)).error).toEqual({
      code: 'recovery_exhausted',
      message: `The run failed because the host was restarted ${limits.recoveries} times during it`,
    });
  });
});
