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

  test('if the disk fails, no action starts and the error is reported', async () => {
    const { started, note } = notes();
    const kit = await sessionKit({ executors: { tool: note } });
    kit.sql.onSync = async () => {
      throw new Error('disk full');
    };
    await expect(runText(kit, echo('a'))).rejects.toThrow('disk full');
    await kit.settled();
    expect(started).toEqual([]);
    expect(types(kit.events)).not.toContain('action_started');
    expect(String(kit.faults[0])).toContain('disk full');
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

  test('[L5] the next message includes the conversation with the model’s text unchanged', async () => {
    const first = `<thought>x</thought>${echo('a', { n: 1 }, { output_key: 'kept' })}<response final="true">It is $kept.n</response>`;
    const kit = await sessionKit({ script: [first, '<response final="true">Still $kept.n</response>'] });
    expect((await say(kit, 'one')).response).toBe('It is 1');
    expect((await say(kit, 'two')).response).toBe('Still 1');
    const messages = kit.requests[1]?.messages ?? [];
    expect(messages[2]).toMatchObject({ role: 'assistant', content: first });
    expect(messages.at(-1)?.content).toContain('two');
  });

  test('[P11] bare text is the answer', async () => {
    const kit = await sessionKit({ script: ['Just words.'] });
    expect(await say(kit, 'hi')).toMatchObject({ status: 'completed', response: 'Just words.', iterations: 1 });
  });

  test('[P10] final="false" continues the run; the last final response is the answer', async () => {
    const kit = await sessionKit({
      script: ['<response final="false">So far.</response>', '<response final="true">Done.</response>'],
    });
    const result = await say(kit, 'hi');
    expect(result.responses).toEqual([
      { content: 'So far.', final: false },
      { content: 'Done.', final: true },
    ]);
    expect(result).toMatchObject({ response: 'Done.', iterations: 2 });
  });

  test('[P10] a final response with a failed action does not end the run: the model sees the failure', async () => {
    const kit = await sessionKit({
      script: [
        `${echo('bad', { fail_times: 9 }, { retry: 1 })}<response final="true">All good!</response>`,
        (request) =>
          `<response final="true">${request.messages.at(-1)?.content.includes('status="failed"')}</response>`,
      ],
    });
    expect(await say(kit, 'try')).toMatchObject({ response: 'true', iterations: 2 });
  });

  test('[S11] two generations in a row without answer and action are no progress', async () => {
    const kit = await sessionKit({ script: ['<thought>hm</thought>', '<thought>hm</thought>'] });
    expect(await say(kit, 'hi')).toMatchObject({ status: 'failed', error: { code: 'no_progress' }, iterations: 2 });
  });

  test('an unreachable model fails the run with its code', async () => {
    const kit = await sessionKit({
      script: Array.from({ length: 5 }, () => () => {
        throw new EngineError('model_unavailable', 'connection refused');
      }),
    });
    expect(await say(kit, 'hi')).toMatchObject({ status: 'failed', error: { code: 'model_unavailable' } });
  });
});

describe('[L5] interrupted runs', () => {
  test('a cancelled run is described with its actions, and its message is separate from the next one', async () => {
    const kit = await sessionKit({
      script: [
        `<thought>On it.</thought>${echo('done', { n: 1 })}<action type="tool" id="slow">{"name":"web_fetch","parameters":{"url":"https://example.com"}}</action>`,
        '<response final="true">12</response>',
      ],
      executors: {
        tool: (call) =>
          call.action.id === 'slow'
            ? new Promise(() => undefined)
            : Promise.resolve({ ok: true, output: 'first done' }),
      },
    });
    const first = say(kit, 'remove everything');
    await settle();
    await kit.session.cancel('stop');
    expect((await first).status).toBe('cancelled');
    await say(kit, 'what is 3*4?');
    const [, user, assistant, told] = kit.requests[1]?.messages ?? [];
    expect(user).toMatchObject({ role: 'user', content: 'remove everything' });
    expect(assistant).toMatchObject({ role: 'assistant', content: expect.stringMatching(/^<thought>On it/) });
    expect(told?.content).toMatch(/first done[\s\S]*status="cancelled"[\s\S]*was cancelled[\s\S]*what is 3\*4\?$/);
  });
});

describe('[P13] references in responses', () => {
  test('a response waits at the reference of a running action while a later response streams', async () => {
    const release = Promise.withResolvers<ActionOutcome>();
    const kit = await sessionKit({ executors: { tool: () => release.promise } });
    const running = runText(
      kit,
      `${echo('slow')}<response final="false">Got $slow, at last.</response><response final="true">Meanwhile.</response>`,
    );
    await settle();
    const shown = (): string[] => eventsOf(kit.events, 'response').map(({ data }) => data.delta);
    expect(shown()).toEqual(
      ['Got', 'Meanwhile.'].map((text, index) => (index === 0 ? expect.stringMatching(/^Got ?$/) : text)),
    );
    release.resolve({ ok: true, output: 'it' });
    expect((await running).responses.map(({ content }) => content)).toEqual(['Meanwhile.', 'Got it, at last.']);
    expect(shown().join('|')).toContain('it, at last.');
  });

  test('[J8] a response does not wait for an action that awaits approval', async () => {
    const kit = await sessionKit({
      executors: forever,
      agent: (agent) => ({ ...agent, loop: { ...agent.loop, mode: 'supervised' } }),
    });
    void runText(
      kit,
      `${echo('slow')}<action type="python" mode="async" id="asks">{"code":"1"}</action>`,
      '<response final="false">$asks so far</response>',
    );
    await settle();
    const completed = eventsOf(kit.events, 'response_completed');
    expect(completed.map(({ data }) => data.content)).toEqual(['[asks: pending] so far']);
  });

  test('[P12] an unknown name stays unchanged, with a warning', async () => {
    const kit = await sessionKit();
    const result = await runText(kit, '<response final="true">It costs $5 or $unknown.</response>');
    expect(result.response).toBe('It costs $5 or $unknown.');
    expect(result.warnings).toMatchObject([{ code: 'unknown_reference' }]);
  });
});

describe('executors and queues', () => {
  test('[X4] an action that the agent cannot run is rejected', async () => {
    const kit = await sessionKit({ agent: (agent) => ({ ...agent, capabilities: [] }) });
    const result = await runText(kit, '<action type="shell" id="s">{"command":"id"}</action>');
    expect(result.actions[0]).toMatchObject({ status: 'rejected', error: { code: 'not_allowed' } });
  });

  test('[M3] parameters are checked before dispatch, with an exact issue', async () => {
    const kit = await sessionKit();
    const result = await runText(
      kit,
      '<action type="tool" id="c">{"name":"calculator","parameters":{"expr":"1"}}</action>',
    );
    expect(result.actions[0]).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_parameters', message: expect.stringContaining('expression') },
    });
  });

  test('[S8] an executor that ignores its abort does not block the run', async () => {
    const kit = await sessionKit({ executors: { tool: () => new Promise<ActionOutcome>(() => undefined) } });
    const running = runText(kit, echo('deaf', {}, { timeout: 3, retry: 1 }));
    await settle();
    kit.clock.advance(3_000);
    expect((await running).actions[0]).toMatchObject({ status: 'failed', error: { code: 'timeout' } });
  });

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

  test('[L6] usage is added up', async () => {
    const usage = { promptTokens: 10, completionTokens: 5, cachedTokens: 2, estimated: false };
    const kit = await sessionKit({
      script: [
        [
          { type: 'text', text: 'Hi.' },
          { type: 'usage', usage },
          { type: 'finish', reason: 'stop' },
        ],
      ],
    });
    expect((await say(kit, 'hi')).usage).toEqual({
      prompt_tokens: 10,
      completion_tokens: 5,
      cached_tokens: 2,
      model_calls: 1,
    });
  });

  test('[H1] at most eight messages wait in the queue', async () => {
    const kit = await sessionKit({ executors: { tool: () => new Promise<ActionOutcome>(() => undefined) } });
    void runText(kit, echo('forever'));
    await settle();
    const send = (): Promise<unknown> =>
      kit.session.message({ content: 'x', ifBusy: 'queue', tokens: false, idempotencyKey: null });
    for (let n = 0; n < 8; n += 1) await send();
    await expect(send()).rejects.toMatchObject({ code: 'queue_full' });
    expect(await kit.session.cancel('enough')).not.toBeNull();
    expect(kit.session.runs().map(({ status }) => status)).toEqual(Array.from({ length: 9 }, () => 'cancelled'));
  });

  test('[J3] messages that wait for a removed agent all end, and nothing is left', async () => {
    const gate = Promise.withResolvers<void>();
    let gone = false;
    const kit = await sessionKit({
      gone: () => gone,
      stream: async function* () {
        await gate.promise;
        yield { type: 'text', text: '<response final="true">the last one</response>' };
        yield { type: 'finish', reason: 'stop' };
      },
    });
    const send = async (): Promise<number> =>
      (await kit.session.message({ content: 'x', ifBusy: 'queue', tokens: false, idempotencyKey: null })).run;
    const runs = [await send(), await send(), await send(), await send()];
    gone = true;
    gate.resolve();
    await Promise.all(runs.map((run) => kit.session.ended(run)));
    await settle();
    expect(kit.session.runs().map(({ status }) => status)).toEqual(['completed', 'failed', 'failed', 'failed']);
    expect(kit.session.busy).toBe(false);
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
    expect(result).toMatchObject({ status: 'failed', error: { code: 'interrupted' } });
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
      kit.session.message({ content: 'same', ifBusy: 'queue', tokens: false, idempotencyKey });
    const joined = Promise.all([send('k'), send('k'), send('k')]);
    const others = Promise.allSettled(Array.from({ length: 12 }, () => send(null)));
    await settle();
    disk.release();
    expect((await joined).map(({ run }) => run)).toEqual([1, 1, 1]);
    const refused = (await others).filter(({ status }) => status === 'rejected');
    expect(refused).toHaveLength(12 - 8);
  });

  test('[P12] a response full of unknown names gives one warning for each name, at most a hundred', async () => {
    const kit = await sessionKit();
    await runText(kit, '<response final="true">first</response>');
    const names = Array.from({ length: 3_000 }, (_, n) => `$u${n} $u${n}`).join(' ');
    const result = await runText(kit, `<response final="true">${names}</response>`);
    expect(result.response).toBe(names);
    expect(result.warnings).toHaveLength(100);
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
    const send = kit.session.message({ content: 'x', ifBusy: 'queue', tokens: false, idempotencyKey: null });
    await expect(send).rejects.toMatchObject({ code: 'unknown_session' });
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
    const send = kit.session.message({ content: 'x', ifBusy: 'queue', tokens: false, idempotencyKey: 'once' });
    await settle();
    await kit.session.close('gone');
    deleteAll(kit.sql);
    pinned.resolve();
    await expect(send).rejects.toMatchObject({ code: 'unknown_session' });
  });

  test('[H2] a message whose pinning fails because the session is deleted is for an unknown session', async () => {
    const pinned = Promise.withResolvers<void>();
    const kit = await sessionKit({ pin: () => pinned.promise });
    const send = kit.session.message({ content: 'x', ifBusy: 'queue', tokens: false, idempotencyKey: null });
    await settle();
    await kit.session.close('gone');
    pinned.reject(new Error('no such table: runs'));
    await expect(send).rejects.toMatchObject({ code: 'unknown_session' });
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
    for (const [id, named] of [
      [`apr_${'2'.repeat(32)}`, `apr_${'2'.repeat(32)}`],
      [long, long.slice(0, limits.excerptChars)],
    ] as const) {
      const fault = {
        code: 'unknown_approval',
        message: `This session has no approval with the id "${named}"`,
      };
      expect(() => kit.session.approval(id)).toThrow(expect.objectContaining(fault) as Error);
      await expect(kit.session.resolveApproval(id, true, null)).rejects.toMatchObject(fault);
    }
  });

  test('a message to a full queue', async () => {
    const kit = await sessionKit({ executors: forever });
    void runText(kit, echo('forever'));
    for (let n = 0; n < limits.queuedMessages; n += 1) await message(kit);
    await expect(message(kit)).rejects.toMatchObject({ code: 'queue_full', message: '8 messages are already queued' });
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

  test('[J2] while a run is active, the host wakes to supervise it', async () => {
    const release = Promise.withResolvers<ActionOutcome>();
    const kit = await sessionKit({ executors: { tool: () => release.promise } });
    expect([kit.session.busy, kit.session.nextWake()]).toEqual([false, kit.session.expiresAt]);
    const ended = runText(kit, echo('a'));
    await settle();
    expect([kit.session.busy, kit.session.nextWake()]).toEqual([true, kit.clock.now() + limits.watchdogMs]);
    release.resolve({ ok: true, output: null });
    await ended;
    await settle();
    expect([kit.session.busy, kit.session.nextWake()]).toEqual([false, kit.session.expiresAt]);
  });

  test('[J2] the next host wakes for a run that it has not recovered yet', async () => {
    const kit = await sessionKit({ executors: forever });
    void runText(kit, echo('a'));
    await settle();
    const next = await sessionKit({ sql: kit.sql, clock: kit.clock, executors: forever });
    expect([next.session.busy, next.session.nextWake()]).toEqual([false, kit.clock.now() + limits.watchdogMs]);
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

  test('[J8] a message instead of a decision cancels the waiting run, with the reason', async () => {
    const kit = await sessionKit({
      script: [FINAL],
      agent: (agent) => ({ ...agent, loop: { ...agent.loop, mode: 'supervised' } }),
    });
    const { status } = await runText(kit, '<action type="python" mode="async" id="a">{"code":"1"}</action>');
    expect(status).toBe('waiting');
    await say(kit, 'never mind');
    expect(eventsOf(kit.events, 'action_cancelled').map(({ data }) => data.reason)).toEqual([
      'a new message arrived instead of an approval or a result',
    ]);
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
