import { describe, expect, test } from 'vitest';
import type { ActionOutcome } from '../../../src/domain/action.ts';
import { EngineError } from '../../../src/domain/errors.ts';
import { FairQueue, ThreadShare } from '../../../src/domain/fair-queue.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { RunRecord } from '../../../src/domain/session.ts';
import type { MessageRequest } from '../../../src/engine/session/session-admission.ts';
import { Journal } from '../../../src/journal/journal.ts';
import type { ActionCall, ActionContext } from '../../../src/executors/executor.ts';
import { feedOf } from '../../support/definitions.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import type { NodeSql } from '../../support/node-sql.ts';
import { runText, say, sessionKit, settle, resultOf, textOf, variablesOf } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';
import { eventsOf } from '../../support/events.ts';
import { EVERY_EVENT, splitRows } from '../../support/event-sql.ts';

const echo = (id: string, parameters: object = {}, more: object = {}): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name: 'echo', parameters, ...more })}</action>`;
const FINAL = '<response final="true">ok</response>';
const forever = { tool: () => new Promise<ActionOutcome>(() => undefined) };
const message = (kit: SessionKit, more: Partial<MessageRequest> = {}): Promise<RunRecord> =>
  kit.session.message({ content: 'x', ifBusy: 'queue', tokens: false, idempotencyKey: null, ...more });
const types = (events: readonly { type: string }[]): string[] => events.map(({ type }) => type);

/** An executor that records the ids of its actions. */
function notes(): { readonly started: string[]; readonly note: (call: ActionCall) => Promise<ActionOutcome> } {
  const started: string[] = [];
  const note = async (call: ActionCall): Promise<ActionOutcome> => {
    started.push(call.action.id);
    return { ok: true, output: null };
  };
  return { started, note };
}

describe('[J1] append, act, emit', () => {
  test('no action starts and no event is sent before it is on disk', async () => {
    const { started, note } = notes();
    const kit = await sessionKit({ executors: { tool: note } });
    const gate = Promise.withResolvers<void>();
    kit.sql.onSync = () => gate.promise;
    const running = runText(kit, echo('a'));
    await settle();
    expect(started).toEqual([]);
    expect(types(kit.events)).toEqual([]);
    gate.resolve();
    await running;
    expect(started).toEqual(['a']);
    expect(types(kit.events)).toContain('action_started');
  });

  const both = `${echo('pure')}<action type="python" mode="async" id="unsafe">${JSON.stringify({ code: '1' })}</action>`;
  const written = (kit: SessionKit): boolean =>
    Number(kit.sql.exec(`SELECT COUNT(*) AS n FROM ${EVERY_EVENT} WHERE type = 'action_started'`)[0]?.['n']) > 0;

  test('[J3] while the disk is slow, repeatable actions run, unsafe ones do not, and no event is sent', async () => {
    const { started, note } = notes();
    const kit = await sessionKit({ executors: { tool: note, python: note } });
    const gate = Promise.withResolvers<void>();
    kit.sql.onSync = async () => (written(kit) ? await gate.promise : undefined);
    const running = runText(kit, both);
    await settle();
    expect(started).toEqual(['pure']);
    expect(types(kit.events).filter((type) => type.startsWith('action_'))).toEqual([]);
    gate.resolve();
    await running;
    expect(started).toEqual(['pure', 'unsafe']);
    expect(types(kit.events).filter((type) => type === 'action_completed')).toHaveLength(2);
  });

  test.each(['at once', 'later'])(
    '[J3] if the start cannot be stored (%s), unsafe actions do not run, and running ones are aborted',
    async (when) => {
      const started: string[] = [];
      const aborted: string[] = [];
      const wait = async (call: ActionCall, { signal }: ActionContext): Promise<ActionOutcome> => {
        started.push(call.action.id);
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        aborted.push(call.action.id);
        return { ok: true, output: null };
      };
      const kit = await sessionKit({ executors: { tool: wait, python: wait } });
      const exec = kit.sql.exec.bind(kit.sql);
      if (when === 'at once') {
        kit.sql.exec = (text, ...parameters) => {
          if (parameters.some((value) => String(value).includes('action_started'))) throw new Error('disk full');
          return exec(text, ...parameters);
        };
      } else {
        kit.sql.onSync = async () => {
          if (written(kit)) throw new Error('disk full');
        };
      }
      await runText(kit, both).catch(() => undefined);
      await kit.settled();
      await settle();
      expect(started).toEqual(when === 'at once' ? [] : ['pure']);
      expect(aborted).toEqual(started);
      expect(types(kit.events)).not.toContain('action_started');
      expect(String(kit.faults[0])).toContain('disk full');
    },
  );

  test('[J4] if a sync fails once, readers get the events of that turn with the next ones', async () => {
    const gate = Promise.withResolvers<ActionOutcome>();
    const kit = await sessionKit({ executors: { tool: () => gate.promise } });
    const ended = runText(kit, `${echo('a')}<response final="true">ready: $a</response>`);
    await settle();
    kit.sql.onSync = () => {
      kit.sql.onSync = () => Promise.resolve();
      return Promise.reject(new Error('disk full'));
    };
    gate.resolve({ ok: true, output: 'x' });
    expect(await ended).toMatchObject({ status: 'completed', response: 'ready: x' });
    const seqs = kit.events.flatMap(({ seq }) => seq ?? []);
    expect(seqs).toEqual(seqs.map((_, at) => at + 1));
    expect(seqs.length).toBe(kit.session.lastSeq);
  });
});

describe('[S11] the loop', () => {
  test('results are sent to the model, which then answers', async () => {
    const kit = await sessionKit({
      script: [
        `<thought>Looking.</thought>${echo('look', { found: 42 })}`,
        (request) =>
          `<response final="true">Seen: ${request.messages.at(-1)?.content.includes('"found":42')}</response>`,
      ],
    });
    const result = await say(kit, 'look');
    expect(result).toMatchObject({ status: 'completed', response: 'Seen: true', iterations: 2 });
    expect(kit.requests[1]?.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user']);
  });
});

describe('executors and queues', () => {
  test('[J5] an action cancelled in the turn of its start does not begin', async () => {
    const gates = { first: Promise.withResolvers<void>(), second: Promise.withResolvers<void>() };
    const began: string[] = [];
    const kit = await sessionKit({
      executors: {
        tool: async ({ action }) => {
          await (action.id === 'first' ? gates.first : gates.second).promise;
          return { ok: true, output: null };
        },
        python: async ({ action }) => {
          began.push(action.id);
          return { ok: true, output: null };
        },
      },
    });
    const ended = runText(
      kit,
      `<action name="echo" id="first" mode="async">{}</action><action name="echo" id="second" mode="async">{}</action>
       <action type="python" id="code" mode="async">{"code": "1", "depends_on": ["second"]}</action>
       <action type="internal" name="set_variable" id="note" mode="async">{"depends_on": ["second"],
         "parameters": {"key": "noted", "value": true}}</action>`,
    );
    await settle();
    // While the disk is busy with one turn, the inputs that make both ready and the cancel arrive for the next.
    const disk = Promise.withResolvers<void>();
    kit.sql.onSync = () => disk.promise;
    gates.first.resolve();
    await settle();
    gates.second.resolve();
    await settle();
    const cancelled = kit.session.cancel('enough');
    disk.resolve();
    await cancelled;
    await settle();
    expect(await ended).toMatchObject({ status: 'cancelled' });
    expect(types(kit.events).filter((type) => type === 'action_started')).toHaveLength(4);
    expect(began).toEqual([]);
    expect(await variablesOf(kit.session)).toEqual({});
    expect(types(kit.events)).not.toContain('variable_changed');
  });

  test('[H1] at most eight messages wait in the queue', async () => {
    const kit = await sessionKit({ executors: { tool: () => new Promise<ActionOutcome>(() => undefined) } });
    void runText(kit, echo('forever'));
    await settle();
    for (let n = 0; n < limits.queuedMessages; n += 1) await message(kit);
    await expect(message(kit)).rejects.toMatchObject({ code: 'queue_full', message: '8 messages are already queued' });
    expect(await kit.session.cancel('enough')).not.toBeNull();
    expect(kit.session.runs().map(({ status }) => status)).toEqual(Array.from({ length: 9 }, () => 'cancelled'));
  });

  test('an internal error fails the run, and the session continues', async () => {
    const kit = await sessionKit({ script: ['<response final="true">fine</response>'] });
    const append = kit.sql.exec;
    kit.sql.exec = (sql, ...parameters) => {
      if (sql.includes('INSERT INTO events') && parameters.join().includes('response_started'))
        throw new Error('corrupt');
      return append(sql, ...parameters);
    };
    expect(await runText(kit, '<response final="true">x</response>')).toMatchObject({
      status: 'failed',
      error: { code: 'internal' },
    });
    kit.sql.exec = append;
    expect(await say(kit, 'hi')).toMatchObject({ status: 'completed', response: 'fine' });
  });
});

describe('[J1] [J3] the end of a run', () => {
  const slowly = (): { release: () => void; sync: () => Promise<void> } => {
    const gate = Promise.withResolvers<void>();
    return { release: gate.resolve, sync: () => gate.promise };
  };

  test('a run without a usable record is ended, on disk before readers are informed', async () => {
    const kit = await sessionKit({ executors: { tool: () => new Promise<ActionOutcome>(() => undefined) } });
    void runText(kit, `${echo('running')}${echo('waiting', {}, { depends_on: ['running'] })}`);
    await settle();
    splitRows(kit.sql);
    kit.sql.exec(`UPDATE events SET state = json_remove(state, '$.in')`);
    const next = await sessionKit({ sql: kit.sql });
    const disk = slowly();
    kit.sql.onSync = disk.sync;
    const recovering = next.session.recover();
    await settle();
    expect(next.events).toEqual([]);
    disk.release();
    await recovering;
    expect(types(next.events)).toContain('agent_failed');
    const [run] = next.session.runs();
    if (run === undefined) throw new Error('the run is gone');
    const result = await resultOf(next.session, run);
    const reason = `Run ${run.runId} has no record to continue from`;
    expect(result.error).toEqual({
      code: 'interrupted',
      message: `The session was restarted during this run, and the run cannot continue: ${reason}`,
    });
    expect(next.faults).toMatchObject([{ code: 'not_recoverable', message: reason }]);
    expect(result.actions.map(({ status }) => status)).toEqual(['failed', 'cancelled']);
    expect(result.actions[0]?.error).toMatchObject({ code: 'outcome_unknown' });
    await next.session.recover();
    expect(await resultOf(next.session, run)).toEqual(result);
  });

  test('a run with its last event on disk is not running, whatever its row says', async () => {
    const kit = await sessionKit();
    await runText(kit, '<response final="true">x</response>');
    kit.sql.exec(`UPDATE runs SET status = 'running', open = 1`);
    const next = await sessionKit({ sql: kit.sql });
    await next.session.recover();
    expect(next.session.runs().map(({ status }) => status)).toEqual(['completed']);
  });

  test('[H1] [J7] concurrent messages see each other, however slow the disk is', async () => {
    const kit = await sessionKit({ script: Array.from({ length: 12 }, () => '<response final="true">x</response>') });
    const disk = slowly();
    kit.sql.onSync = disk.sync;
    const send = (idempotencyKey: string | null): Promise<{ run: number }> =>
      message(kit, { content: 'same', idempotencyKey });
    const joined = Promise.all([send('k'), send('k'), send('k')]);
    const others = Promise.allSettled(Array.from({ length: 12 }, () => send(null)));
    await settle();
    disk.release();
    expect((await joined).map(({ run }) => run)).toEqual([1, 1, 1]);
    const refused = (await others).filter(({ status }) => status === 'rejected');
    expect(refused).toHaveLength(12 - 8);
  });

  test('[H2] deleting a session disconnects its readers', async () => {
    const kit = await sessionKit();
    const told: unknown[] = [];
    kit.session.listen((batch) => told.push(batch));
    await kit.session.dispose('gone');
    expect(told).toEqual([null]);
  });

  test('[H2] during its deletion a session accepts no message and no reader', async () => {
    const kit = await sessionKit();
    await kit.session.close('gone');
    const sent = message(kit);
    await expect(sent).rejects.toMatchObject({ code: 'unknown_session' });
    expect(kit.session.runCount).toBe(0);
    const told: unknown[] = [];
    kit.session.listen((batch) => told.push(batch));
    await settle();
    expect(told).toEqual([null]);
  });

  test('[H2] a message that waits for its manifests while the session is deleted does not find missing tables', async () => {
    const pinned = Promise.withResolvers<void>();
    let isFirst = true;
    const kit = await sessionKit({ pin: async () => (isFirst ? undefined : await pinned.promise) });
    await runText(kit, '<response final="true">first</response>');
    isFirst = false;
    const sent = message(kit, { idempotencyKey: 'once' });
    await settle();
    await kit.session.close('gone');
    deleteAll(kit.sql);
    pinned.resolve();
    await expect(sent).rejects.toMatchObject({ code: 'unknown_session' });
  });

  test('[H2] a message whose pinning fails because the session is deleted is for an unknown session', async () => {
    const pinned = Promise.withResolvers<void>();
    const kit = await sessionKit({ pin: () => pinned.promise });
    const sent = message(kit);
    await settle();
    await kit.session.close('gone');
    pinned.reject(new Error('no such table: runs'));
    await expect(sent).rejects.toMatchObject({ code: 'unknown_session' });
  });

  test('[F3] a feed that answers after its session was deleted does not find missing tables', async () => {
    const answered = Promise.withResolvers<ActionOutcome>();
    const feed = feedOf('news', { when: 'periodic', intervalMs: 5_000 });
    const kit = await sessionKit({
      agent: (agent) => ({ ...agent, feeds: [feed] }),
      executors: { tool: () => answered.promise },
    });
    await runText(kit, '<response final="true">first</response>');
    const refreshed = kit.session.wake();
    await settle();
    await kit.session.close('gone');
    deleteAll(kit.sql);
    answered.resolve({ ok: true, output: 'new' });
    await expect(refreshed).resolves.toBeUndefined();
  });

  test('[H2] readers of a run whose end cannot be written do not wait forever', async () => {
    const gate = Promise.withResolvers<ActionOutcome>();
    const kit = await sessionKit({ executors: { tool: () => gate.promise } });
    const ended = runText(kit, echo('a')).catch(() => null);
    await settle();
    const told: unknown[] = [];
    kit.session.listen((batch) => told.push(batch));
    kit.sql.onSync = () => Promise.reject(new Error('disk full'));
    gate.resolve({ ok: true, output: null });
    await ended;
    await kit.settled();
    expect(told).toEqual([null]);
  });
});

test('[J3] a run whose end cannot be written is recovered later, by the same host, and its readers get all of it', async () => {
  const gate = Promise.withResolvers<ActionOutcome>();
  const kit = await sessionKit({ executors: { tool: () => gate.promise } });
  const text = `${echo('a')}<response final="true">ready: $a</response>`;
  const ended = runText(kit, text).catch((fault: unknown) => String(fault));
  await settle();
  const { exec } = kit.sql;
  kit.sql.exec = (statement, ...parameters) => {
    if (statement.startsWith('INSERT INTO events')) throw new Error('disk full');
    return exec(statement, ...parameters);
  };
  gate.resolve({ ok: true, output: 'x' });
  expect(await ended).toContain('disk full');
  await kit.settled();
  kit.sql.exec = exec;
  expect(kit.session.nextWake()).toBe(kit.clock.now() + limits.watchdogMs);
  await kit.session.wake();
  await settle();
  expect(kit.session.runs().map(({ status }) => status)).toEqual(['completed']);
  const seqs = kit.events.flatMap(({ seq }) => seq ?? []);
  expect(seqs).toEqual(Array.from({ length: kit.session.lastSeq }, (_, at) => at + 1));
  expect(kit.session.busy).toBe(false);
});

test('[J4] a block whose end cannot be written is closed with the text that readers had', async () => {
  const kit = await sessionKit({
    stream: async function* () {
      yield { type: 'text', text: '<thought>seen by readers' };
      await settle();
      yield { type: 'text', text: '</thought>' };
    },
  });
  const { exec } = kit.sql;
  let broken = 1;
  kit.sql.exec = (statement, ...parameters) => {
    const isEnd =
      statement.startsWith('INSERT INTO events') && JSON.stringify(parameters).includes('thought_completed');
    if (isEnd && (broken -= 1) >= 0) throw new Error('disk failure');
    return exec(statement, ...parameters);
  };
  await say(kit, 'think').catch(() => null);
  await kit.settled();
  expect(eventsOf(kit.events, 'thought_completed').map(({ data }) => data)).toEqual([
    { segment: expect.any(Number) as number, content: 'seen by readers', cut: true },
  ]);
});

describe('[H1] refused requests', () => {
  test('a message with if_busy=reject during an active run', async () => {
    const kit = await sessionKit({ executors: forever });
    void runText(kit, echo('forever'));
    await settle();
    const runId = kit.session.runs()[0]?.runId;
    await expect(message(kit, { ifBusy: 'reject' })).rejects.toMatchObject({
      code: 'run_in_progress',
      message: `Run ${runId} has not ended yet`,
      details: { run_id: runId },
    });
    expect(kit.session.runCount).toBe(1);
  });

  test('a message with if_busy=reject while a run waits for an approval, which stays open', async () => {
    const kit = await sessionKit({ agent: (agent) => ({ ...agent, loop: { ...agent.loop, mode: 'supervised' } }) });
    const { runId } = await runText(kit, '<action type="python" id="p">{"code":"1"}</action>').then(
      () => kit.session.runs()[0] ?? { runId: '' },
    );
    await expect(message(kit, { ifBusy: 'reject' })).rejects.toMatchObject({
      code: 'run_in_progress',
      message: `Run ${runId} waits for an approval`,
    });
    expect(kit.session.status).toBe('waiting');
    await message(kit, { ifBusy: 'queue' });
    await settle();
    expect(kit.session.run(runId).status).toBe('cancelled');
  });

  test('[J7] an idempotency key of another message; the same message returns its run', async () => {
    const kit = await sessionKit({ script: [FINAL] });
    const { run, runId } = await message(kit, { content: 'one', idempotencyKey: 'k' });
    await kit.session.ended(run);
    await expect(message(kit, { content: 'two', idempotencyKey: 'k' })).rejects.toMatchObject({
      code: 'idempotency_mismatch',
      message: `Idempotency-Key "k" was used for another message (run ${runId})`,
      details: { run_id: runId },
    });
    expect(await message(kit, { content: 'one', idempotencyKey: 'k' })).toMatchObject({ runId, status: 'completed' });
    expect(kit.session.runCount).toBe(1);
  });

  test('a decision for an unknown approval; its id is cut', async () => {
    const kit = await sessionKit();
    const long = `apr_${'z'.repeat(limits.excerptChars)}`;
    const message = `This session has no approval with the id "${long.slice(0, limits.excerptChars)}"`;
    const fault = { code: 'unknown_approval', message };
    expect(() => kit.session.approval(long)).toThrow(expect.objectContaining(fault) as Error);
    await expect(kit.session.resolveApproval(long, true, null)).rejects.toMatchObject(fault);
  });

  test('an unknown run, a run of another session, and an invalid id, which is cut in the error', async () => {
    const kit = await sessionKit();
    const { run_id: runId } = await runText(kit, FINAL);
    expect(kit.session.run(runId).run).toBe(1);
    const long = `run_${'z'.repeat(limits.excerptChars)}`;
    for (const [id, named] of [
      [`run_${'b'.repeat(32)}_1`, `run_${'b'.repeat(32)}_1`],
      [`run_${'a'.repeat(32)}_2`, `run_${'a'.repeat(32)}_2`],
      [long, long.slice(0, limits.excerptChars)],
    ] as const) {
      const fault = { code: 'unknown_run', message: `This session has no run "${named}"` };
      expect(() => kit.session.run(id)).toThrow(expect.objectContaining(fault) as Error);
    }
  });

  test('a second creation, and variables past their limits, which leave nothing behind', async () => {
    const kit = await sessionKit();
    await expect(kit.session.create(kit.session.record, {})).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'This session already exists',
    });
    const sql = openNodeSql();
    const many = Object.fromEntries(Array.from({ length: limits.variables + 1 }, (_, n) => [`v${n}`, n]));
    await expect(sessionKit({ sql, variables: many })).rejects.toMatchObject({ code: 'invalid_request' });
    expect(new Journal(sql).record).toBeNull();
    const created = await sessionKit({ sql, variables: { x: 1, y: [2] } });
    expect(await variablesOf(created.session)).toEqual({ x: 1, y: [2] });
  });

  test('a training export of an agent that is no longer in the catalogue', async () => {
    let gone = false;
    const kit = await sessionKit({ script: [FINAL], gone: () => gone });
    gone = true;
    // Without a run there is nothing to export.
    expect(await textOf(kit.session.transcript())).toBe('');
    gone = false;
    await say(kit, 'hi');
    expect(await textOf(kit.session.transcript())).not.toBe('');
    gone = true;
    const fault = { code: 'unknown_agent', message: 'The agent "assistant" is no longer in the catalogue' };
    expect(() => kit.session.transcript()).toThrow(expect.objectContaining(fault) as Error);
  });
});

describe('[J4] tokens', () => {
  const tokens = (kit: SessionKit): string[] => eventsOf(kit.events, 'llm_token').map(({ data }) => data.token);

  test('are sent to readers of a message that requests them', async () => {
    const kit = await sessionKit({ script: [FINAL, FINAL] });
    await kit.session.ended((await message(kit)).run);
    expect(tokens(kit)).toEqual([]);
    await kit.session.ended((await message(kit, { tokens: true })).run);
    expect(tokens(kit).join('')).toBe(FINAL);
    expect(eventsOf(kit.events, 'llm_token').every(({ seq }) => seq === null)).toBe(true);
  });

  test('[M7] are not sent to readers of a child, whose only run is found again by the parent', async () => {
    const kit = await sessionKit({ script: [FINAL] });
    const budget = { seconds: 60, modelCalls: 3, tokens: null, cost: null, actions: 5, children: 2 };
    const request = { key: 'k', type: 'agent', name: 'assistant', message: 'hi', inputs: {}, budget } as const;
    const { run, runId, input } = await kit.session.child(request);
    expect(input).toEqual({ type: 'message', content: 'hi', tokens: false, budget, manifests: null });
    await kit.session.ended(run);
    expect(tokens(kit)).toEqual([]);
    expect(await kit.session.child(request)).toMatchObject({ runId, status: 'completed' });
    expect(kit.session.runCount).toBe(1);
  });
});

test('[M7] a child that is a workflow gets its inputs, and no message', async () => {
  const kit = await sessionKit();
  const request = { key: 'k', type: 'workflow', name: 'w', message: '', inputs: { n: 1 }, budget: null } as const;
  const { input } = await kit.session.child(request);
  expect(input).toEqual({ type: 'workflow', inputs: { n: 1 }, budget: null, manifests: null });
});

test('[P1] a posted text of an idle owner is read without waiting for a turn of the thread', async () => {
  // another owner has the turn, and the clock of the queue stands still: a further turn would never come
  const queue = new FairQueue(new VirtualClock());
  await new ThreadShare(queue, () => 'other').waitTurn();
  const kit = await sessionKit({ share: new ThreadShare(queue, () => null) });
  expect(await runText(kit, FINAL)).toMatchObject({ status: 'completed', response: 'ok' });
});

describe('[H1] expiry and alarms of a session', () => {
  test('a session that was not created is never woken', async () => {
    const { session } = await sessionKit({ variables: null });
    expect([session.exists, session.nextWake()]).toEqual([false, null]);
    await session.recover();
    await session.wake();
    expect(() => session.record).toThrow('This session does not exist');
  });

  test('it expires after its last use: its creation, or the start or end of a run', async () => {
    const release = Promise.withResolvers<ActionOutcome>();
    const kit = await sessionKit({ expiryMs: 5_000, executors: { tool: () => release.promise } });
    expect(kit.session.expiresAt).toBe(kit.session.record.created_at + 5_000);
    expect((await sessionKit()).session.expiresAt).toBe(limits.sessionExpiryMs);
    const started = kit.clock.now();
    const ended = runText(kit, echo('a'));
    await settle();
    kit.clock.advance(100);
    // While it is being used, the end of its life moves on.
    expect(kit.session.expiresAt).toBe(started + 5_100);
    kit.clock.advance(50);
    expect(kit.session.expiresAt).toBe(started + 5_150);
    release.resolve({ ok: true, output: null });
    await ended;
    expect(kit.session.expiresAt).toBe(started + 5_150);
  });

  test('[E2] one that was made for a single request expires after an hour', async () => {
    const { session } = await sessionKit({ ephemeral: true });
    expect(session.expiresAt).toBe(session.record.created_at + 3_600_000);
    const sooner = await sessionKit({ ephemeral: true, expiryMs: 5_000 });
    expect(sooner.session.expiresAt).toBe(sooner.session.record.created_at + 5_000);
  });

  test('[H2] a run has ended for readers when no further event can follow', async () => {
    const release = Promise.withResolvers<ActionOutcome>();
    const kit = await sessionKit({ executors: { tool: () => release.promise } });
    const background = `<action type="tool" mode="fire_and_forget" id="bg">{"name":"echo"}</action>`;
    const first = await runText(kit, `${background}${FINAL}`);
    expect(first.status).toBe('completed');
    // It has an answer, but a fire_and_forget action is still running.
    expect(kit.session.hasEnded(first.run_id)).toBe(false);
    void runText(kit, echo('b'));
    await settle();
    const [, second] = kit.session.runs();
    const third = await message(kit);
    expect([second?.runId ?? '', third.runId].map((id) => kit.session.hasEnded(id))).toEqual([false, false]);
    release.resolve({ ok: true, output: null });
    await kit.session.ended(third.run);
    await settle();
    expect([first.run_id, second?.runId ?? '', third.runId].map((id) => kit.session.hasEnded(id))).toEqual([
      true,
      true,
      true,
    ]);
  });
});

describe('[J5] a cancel', () => {
  test('contains the reason and the run; the messages behind it never start', async () => {
    const kit = await sessionKit({ executors: forever });
    expect(await kit.session.cancel('nothing to cancel')).toBeNull();
    void runText(kit, echo('forever'));
    await settle();
    const waiting = await message(kit);
    expect(await kit.session.cancel('enough')).toBe(kit.session.runs()[0]?.runId);
    const cancelled = eventsOf(kit.events, 'agent_cancelled');
    expect(cancelled.map(({ run_id: id, iteration, data: { reason } }) => [id, iteration, reason])).toEqual(
      expect.arrayContaining([[waiting.runId, 0, 'enough']]),
    );
    const ended = kit.session.run(waiting.runId);
    expect(ended).toMatchObject({ status: 'cancelled', endedAt: kit.clock.now() });
  });

  test('[J3] a run whose agent was removed fails with its name', async () => {
    const kit = await sessionKit({ gone: () => true });
    const failed = await say(kit, 'hi');
    expect(failed).toMatchObject({
      status: 'failed',
      error: {
        code: 'unknown_agent',
        message: 'The agent "assistant" of this session is no longer in the catalogue',
      },
    });
    expect(eventsOf(kit.events, 'agent_failed')).toMatchObject([{ iteration: 0, run_id: failed.run_id }]);
  });

  test('[J3] an interrupted run whose agent was removed ends, also if its end cannot be written at first', async () => {
    const kit = await sessionKit({ executors: { tool: () => new Promise(() => undefined) } });
    void runText(kit, `<action type="tool" mode="async" id="a">{"name":"echo"}</action>`);
    await settle();
    const sql = failingEnds(kit.sql);
    const next = await sessionKit({ sql, clock: kit.clock, gone: () => true });
    await next.session.recover().catch(() => undefined);
    await settle();
    expect(next.session.runs().map(({ status }) => status)).toEqual(['running']);
    expect(next.session.nextWake()).toBe(next.clock.now() + limits.watchdogMs);
    await next.session.recover();
    await settle();
    expect(next.session.runs().map(({ status }) => status)).toEqual(['failed']);
  });

  test('[J2] a queued run keeps the session busy while the run before it fails to start', async () => {
    const answer = Promise.withResolvers<void>();
    const disk = Promise.withResolvers<void>();
    let gone = false;
    const kit = await sessionKit({
      gone: () => gone,
      stream: async function* () {
        await answer.promise;
        yield { type: 'text', text: FINAL };
      },
    });
    for (let n = 0; n < 4; n += 1) await message(kit);
    gone = true;
    const failed = (): unknown =>
      kit.sql.exec(`SELECT COUNT(*) AS n FROM events WHERE type = 'agent_failed'`)[0]?.['n'];
    kit.sql.onSync = async () => (failed() === 0 ? undefined : await disk.promise);
    answer.resolve();
    await settle();
    expect(kit.session.runs().map(({ status }) => status)).toEqual(['completed', 'failed', 'failed', 'queued']);
    expect(kit.session.busy).toBe(true);
    disk.resolve();
    await settle();
    expect(kit.session.runs().map(({ status }) => status)).toEqual(['completed', 'failed', 'failed', 'failed']);
    expect(kit.session.busy).toBe(false);
  });

  test('[J3] a run that cannot be set up fails with the internal error, which is logged', async () => {
    let broken = false;
    const kit = await sessionKit({
      gone: () => {
        if (broken) throw new Error('the catalogue is broken');
        return false;
      },
    });
    broken = true;
    expect(await say(kit, 'hi')).toMatchObject({
      status: 'failed',
      error: { code: 'internal', message: 'the catalogue is broken' },
    });
    expect(kit.faults.map(String)).toEqual(['Error: the catalogue is broken']);
  });
});

test('[X5] a failed run is logged once, with its id and error and without the message; others are not', async () => {
  const kit = await sessionKit({
    script: ['<response final="true">ok</response>'],
    stream: async function* () {
      if (kit.requests.length === 1) {
        yield { type: 'text', text: '<response final="true">ok</response>' };
        yield { type: 'finish', reason: 'stop' };
      } else throw new EngineError('model_rejected', 'the key is wrong');
    },
  });
  await say(kit, 'a first question');
  expect(kit.logged).toEqual([]);
  await say(kit, 'a private question');
  const run = kit.session.runs().at(-1);
  expect(kit.logged).toEqual([
    ['run_failed', { run_id: run?.runId, code: 'model_rejected', message: 'the key is wrong' }],
  ]);
  expect(JSON.stringify(kit.logged)).not.toContain('private');
});

/** As the platform deletes the storage of an object. */
function deleteAll(sql: NodeSql): void {
  const tables = sql.exec(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`);
  for (const { name } of tables) sql.exec(`DROP TABLE ${String(name)}`);
}

/** The first end of a run cannot be written. */
function failingEnds(sql: NodeSql): NodeSql {
  let left = 1;
  return {
    ...sql,
    exec: (text, ...parameters) => {
      if (parameters.some((one) => String(one).includes('agent_failed'))) left -= 1;
      if (left === 0) {
        left = -1;
        throw new Error('the disk is full');
      }
      return sql.exec(text, ...parameters);
    },
  };
}
