/** The call that is executed is the call that was approved (J8, P12, S7, J2). */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { EventOf, SessionEvent } from '../../../src/domain/event.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import { hostScene } from '../../support/host-scene.ts';
import { runText, sessionKit, settle } from '../../support/session-kit.ts';
import type { HostScene } from '../../support/host-scene.ts';
import type { KitOptions } from '../../support/session-kit.ts';
import { eventsOf, membersOf } from '../../support/events.ts';
import { EVERY_EVENT } from '../../support/event-sql.ts';
import { ACTION, builtin, FLAKY, OK, SET } from '../calls.ts';

const supervised: NonNullable<KitOptions['agent']> = (agent) => ({
  ...agent,
  loop: { ...agent.loop, mode: 'supervised' },
});

const PAY = builtin({ name: 'pay', approval: 'always' });
/** The same, without approval. */
const FREE = builtin({ name: 'free' });
const CACHED = builtin({ name: 'cached', approval: 'always', effects: 'pure', cacheTtlMs: 60_000 });

type Asked = EventOf<'approval_requested'>;
const askedOf = (events: readonly SessionEvent[]): readonly Asked[] => eventsOf(events, 'approval_requested');
const idOf = (event: Asked | undefined): string => event?.data.approval_id ?? '';
const digest = (parameters: JsonObject, inputs: JsonObject = {}): string =>
  createHash('sha256').update(JSON.stringify({ parameters, inputs })).digest('hex');

const scene = async (options: KitOptions = {}): Promise<HostScene> =>
  await hostScene({ tools: [PAY, FREE, CACHED], ...options });

describe('[J8] [P12] the content of an approval', () => {
  test('[P14] contains the values that the action gets, their size and their digest', async () => {
    const stage = await scene({ agent: supervised });
    stage.ends.push({ ok: true, output: { total: 700, who: 'Ann' } });
    const pay = { code: 'print(inputs)', inputs: { sum: '$bill.total', note: 'for $bill.who' } };
    await stage.run(ACTION('bill', 'free', {}), `<action type="python" id="pay">${JSON.stringify(pay)}</action>`);
    const inputs = { bill: { total: 700, who: 'Ann' }, sum: 700, note: 'for Ann' };
    const [asked] = askedOf(stage.events);
    expect(asked?.data).toEqual({
      approval_id: idOf(asked),
      type: 'python',
      sha256: digest(pay, inputs),
      bytes: Buffer.byteLength(JSON.stringify({ parameters: pay, inputs })),
      complete: true,
      parameters: pay,
      inputs,
    });
    expect(stage.kit.session.approval(idOf(asked))).toMatchObject({ status: 'open', parameters: pay, inputs });
  });

  test('is complete or empty: content too long for the event is read separately and completely', async () => {
    const stage = await scene();
    const hidden = `${'harmless '.repeat(limits.approvalChars / 8)}; rm -rf /`;
    await stage.run(ACTION('a', 'pay', { to: 'Ann', text: hidden }));
    const [asked] = askedOf(stage.events);
    const { parameters, inputs, ...shown } = membersOf(asked);
    expect([parameters, inputs]).toEqual([undefined, undefined]);
    expect(shown).toMatchObject({ complete: false, sha256: digest({ to: 'Ann', text: hidden }) });
    expect(shown['bytes']).toBeGreaterThan(limits.approvalChars);
    expect(JSON.stringify(shown)).not.toContain('harmless');
    expect(stage.kit.session.openApprovals({ limit: 9, after: null })).toMatchObject([
      { complete: false, parameters: null, inputs: null },
    ]);
    expect(stage.kit.session.approval(idOf(asked)).parameters).toEqual({ to: 'Ann', text: hidden });
  });

  test('is not requested if the action could not run anyway', async () => {
    const strict = builtin({ name: 'strict', approval: 'always', parameters: { type: 'object', required: ['sum'] } });
    const kit = await sessionKit({ tools: [strict] });
    const result = await runText(kit, ACTION('a', 'strict', {}));
    expect(askedOf(kit.events)).toEqual([]);
    expect(kit.events.map(({ type }) => type)).not.toContain('agent_waiting');
    expect(result).toMatchObject({ status: 'completed', actions: [{ error: { code: 'invalid_parameters' } }] });
  });

  test('[J6] the size of the calls of one run is limited; an action past the limit fails, after a restart too', async () => {
    const stage = await scene();
    const big = 'x'.repeat(limits.approvalBytesPerRun / 4);
    stage.ends.push({ ok: true, output: big });
    await stage.run(
      ACTION('big', 'free', {}),
      ...['a', 'b', 'c', 'd'].map((id) => ACTION(id, 'pay', { text: '$big' })),
    );
    expect(askedOf(stage.events).map(({ action_id: id }) => id)).toEqual(['a', 'b', 'c']);
    const failed = eventsOf(stage.events, 'action_failed');
    expect(failed.map(({ data }) => data.error.code)).toEqual(['approval_too_large']);
    const kit = await stage.start();
    expect(kit.faults).toEqual([]);
    expect(kit.session.runs().at(-1)).toMatchObject({ status: 'waiting' });
    stage.ends.push(OK);
    await stage.approve(2);
    expect(stage.calls.at(-1)?.parameters).toEqual({ text: big });
  });

  test('[J6] the size of the values read for approvals is limited; past the limit nothing is read', async () => {
    const stage = await scene({ agent: supervised });
    const bytes = 5_000_000;
    stage.ends.push({ ok: true, output: 'x'.repeat(bytes) });
    const code = JSON.stringify({ parameters: { code: 'x' }, depends_on: ['big'] });
    await stage.run(
      ACTION('big', 'free', {}),
      ...Array.from({ length: 20 }, (_, at) => `<action type="python" mode="async" id="a${at}">${code}</action>`),
    );
    const failed = eventsOf(stage.events, 'action_failed');
    const messages = failed.map(({ data }) => data.error.message);
    const unresolved = messages.filter((message) => message.includes('has resolved for approval requests'));
    const mostResolved = Math.ceil(limits.approvalBytesResolvedPerRun / bytes) + 1;
    expect(unresolved.length).toBeGreaterThanOrEqual(20 - mostResolved);
    expect(askedOf(stage.events)).toHaveLength(Math.floor(limits.approvalBytesPerRun / bytes));
  });
});

describe('[J8] the approved call is executed', () => {
  test('even if an unknown name has a value by now', async () => {
    const stage = await scene();
    stage.ends.push(OK);
    await stage.run(ACTION('a', 'pay', { to: '$to' }), SET('s', 'Mallory'));
    expect(askedOf(stage.events)[0]?.data.parameters).toEqual({ to: '$to' });
    await stage.approve();
    expect(stage.calls[0]?.parameters).toEqual({ to: '$to' });
  });

  test('[P14] with the original inputs of code, even if dependencies have changed', async () => {
    const stage = await scene({ agent: supervised });
    stage.ends.push({ ok: true, output: 'early' });
    const code = { code: 'x', inputs: { to: '$to' } };
    await stage.run(
      SET('s1', 'Ann', {}),
      ACTION('fast', 'free', {}),
      ACTION('slow', 'free', {}),
      `<action type="python" mode="async" id="p">${JSON.stringify({ parameters: code, depends_on: ['fast', 'slow', 's1'], wait_for_all: false })}</action>`,
      SET('s2', 'Mallory'),
    );
    const inputs = askedOf(stage.events)[0]?.data.inputs;
    expect(inputs).toMatchObject({ slow: null, to: expect.any(String) });
    await stage.approve();
    expect(stage.calls.at(-1)?.inputs).toEqual(inputs);
  });

  test('[P6] and looked up in the cache with the approved parameters', async () => {
    const stage = await scene();
    stage.ends.push({ ok: true, output: 'for Ann' }, { ok: true, output: 'for Mallory' });
    await stage.run(SET('s1', 'Ann'));
    await stage.run(ACTION('a', 'cached', { to: '$to' }), SET('s2', 'Mallory'));
    await stage.approve();
    await stage.ended();
    await stage.run(ACTION('b', 'cached', { to: '$to' }));
    await stage.approve(1);
    await stage.ended();
    await stage.run(ACTION('c', 'cached', { to: 'Ann' }));
    await stage.approve(2);
    await stage.ended();
    expect(stage.calls.map(({ parameters }) => parameters)).toEqual([{ to: 'Ann' }, { to: 'Mallory' }]);
    const ends = eventsOf(stage.events, 'action_completed').filter(({ action_id: id }) => id.length === 1);
    expect(ends.map(({ data }) => [data.output, data.cached ?? false])).toEqual([
      ['for Ann', false],
      ['for Mallory', false],
      ['for Ann', true],
    ]);
  });

  test('[I] even if the context was cleared in between', async () => {
    const stage = await scene();
    stage.ends.push({ ok: true, output: 'Ann' });
    await stage.run(
      ACTION('who', 'free', {}),
      ACTION('a', 'pay', { to: '$who' }),
      '<action type="internal" mode="async" id="c">{"name":"clear_context","depends_on":["who"]}</action>',
    );
    stage.ends.push(OK);
    await stage.approve();
    expect(stage.calls.at(-1)?.parameters).toEqual({ to: 'Ann' });
  });
});

describe('[P12] [S7] parameters are resolved once, without approval too', () => {
  test('every attempt gets the parameters of the first one', async () => {
    const stage = await scene();
    await stage.run(SET('s1', 'Ann'));
    stage.ends.push(FLAKY, FLAKY, OK);
    await stage.run(ACTION('a', 'free', { to: '$to', text: '$later' }), SET('s2', 'Mallory'));
    await stage.pass();
    expect(stage.calls.map(({ parameters }) => parameters)).toEqual(
      Array.from({ length: 3 }, () => ({ to: 'Ann', text: '$later' })),
    );
  });

  test('including a value that did not exist yet (wait_for_all: false)', async () => {
    const stage = await scene();
    stage.ends.push({ ok: true, output: 1 });
    await stage.run(
      ACTION('fast', 'free', {}),
      ACTION('slow', 'free', {}),
      ACTION('a', 'free', { f: '$fast', s: '$slow' }, { wait_for_all: false }),
    );
    expect(stage.calls.at(-1)?.parameters).toEqual({ f: 1, s: null });
    await stage.start();
    const again = stage.calls.slice(3).find(({ action }) => action.id === 'a');
    expect(again?.parameters).toEqual({ f: 1, s: null });
  });

  test('[J6] an external value is stored once in the journal, for any number of references', async () => {
    const stage = await scene({ agent: (agent) => ({ ...agent, loop: { ...agent.loop, maxParallelActions: 20 } }) });
    const value = 'v'.repeat(50_000);
    await stage.run(SET('s1', value));
    await stage.run(...Array.from({ length: 20 }, (_, at) => ACTION(`a${at}`, 'free', { to: '$to' })));
    expect(stage.calls).toHaveLength(20);
    const [row] = stage.disk.exec(
      `SELECT SUM(LENGTH(state)) AS chars FROM ${EVERY_EVENT} WHERE run = 2 AND type = 'action_started'`,
    );
    expect(Number(row?.['chars'])).toBeLessThan(2 * value.length);
    await stage.start();
    for (const { parameters } of stage.calls) expect(parameters).toEqual({ to: value });
    expect(stage.calls).toHaveLength(40);
  });
});

describe('[J8] only one decision counts', () => {
  const status = async (decision: Promise<void>): Promise<unknown> =>
    await decision.then(
      () => 'counts',
      (fault: { code: string; details: JsonObject }) => fault.details['approval_status'] ?? fault.code,
    );

  test('of concurrent ones the first, whatever it is', async () => {
    const stage = await scene();
    stage.ends.push(OK);
    await stage.run(ACTION('a', 'pay', {}));
    const id = idOf(askedOf(stage.events)[0]);
    const { session } = stage.kit;
    const said = await Promise.all(
      [false, true, true, false].map((yes) => status(session.resolveApproval(id, yes, null))),
    );
    expect(said).toEqual(['counts', 'deciding', 'deciding', 'deciding']);
    // On disk before the answer (J1).
    expect(eventsOf(stage.events, 'approval_resolved').map(({ data }) => data.approved)).toEqual([false]);
    await settle();
    expect(await status(session.resolveApproval(id, true, null))).toBe('denied');
    expect(stage.calls).toEqual([]);
    expect(session.approval(id)).toMatchObject({ status: 'denied', decided_at: stage.clock.now() });
  });

  test('and none after the end of the approval', async () => {
    const stage = await scene();
    await stage.run(ACTION('a', 'pay', {}));
    const id = idOf(askedOf(stage.events)[0]);
    const { session } = stage.kit;
    const cancelled = session.cancel('enough');
    // The cancel is in the inputQueue: the approval is still open now, but not when the decision is processed.
    await Promise.resolve();
    await Promise.resolve();
    const late = status(session.resolveApproval(id, true, null));
    await cancelled;
    expect(await late).toBe('cancelled');
    expect(await status(session.resolveApproval(id, true, null))).toBe('cancelled');
    expect(stage.calls).toEqual([]);
    expect(stage.events.filter(({ type }) => type === 'approval_resolved')).toEqual([]);
  });

  test('[H1] a message instead of a decision cancels the approval, whatever its content', async () => {
    const stage = await scene({
      script: [ACTION('a', 'pay', {}), '<response final="true">well</response>'],
    });
    const say = async (content: string): Promise<void> => {
      await stage.kit.session.message({ content, ifBusy: 'queue', tokens: false, idempotencyKey: null });
      await settle();
    };
    await say('pay');
    await say('approve');
    const id = idOf(askedOf(stage.events)[0]);
    expect(stage.kit.session.approval(id).status).toBe('cancelled');
    expect(await status(stage.kit.session.resolveApproval(id, true, null))).toBe('cancelled');
    expect(stage.calls).toEqual([]);
  });

  test('an id that was never issued is unknown, whatever its form', async () => {
    const stage = await scene();
    await stage.run(ACTION('a', 'pay', {}));
    for (const id of ['apr_1', `apr_${'f'.repeat(32)}`, "' OR 1=1 --", 'x'.repeat(10_000)]) {
      expect(await status(stage.kit.session.resolveApproval(id, true, null))).toBe('unknown_approval');
    }
  });
});
