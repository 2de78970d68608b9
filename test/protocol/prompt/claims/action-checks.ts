/** What the prompt says about actions, checked on the engine. */
import { expect } from 'vitest';
import { promptParts } from '../../../../src/protocol/prompt/prompt.ts';
import { bundled } from '../../../support/bundled.ts';
import { feedOf } from '../../../support/definitions.ts';
import { settle } from '../../../support/session-kit.ts';
import type { Check } from './claims.ts';
import { Retryable, act, begun, final, runOf, scene, sent, speaking } from './scene.ts';
import type { TextForm } from './scene.ts';

type Checks = Partial<Record<Check, (form: TextForm) => Promise<void>>>;

/** Seven async actions. */
const SEVEN = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];

export const ACTION_CHECKS = {
  'each field has its effect; a body that is no JSON object is rejected': async (form) => {
    const failing = new Error('no');
    const first = act(form, { id: 'x', parameters: { n: 1 }, fields: { output_key: 'count' } });
    const actions = [
      first,
      act(form, { id: 'bad', mode: 'async', fields: { on_error: 'skip' } }),
      act(form, { id: 'after', mode: 'async', parameters: { of: '$bad' } }),
      act(form, { id: 'both', mode: 'async', fields: { depends_on: ['x', 'after'] } }),
      act(form, { id: 'few', mode: 'async', fields: { when: 'count > 3' } }),
      act(form, { id: 'many', mode: 'async', fields: { when: 'count > 2' } }),
      act(form, { id: 'asked', type: 'llm', mode: 'async', parameters: { prompt: 'p' } }),
      act(form, { id: 'coded', type: 'python', mode: 'async', parameters: { code: 'c' } }),
    ];
    const { kit, result } = await runOf(form, [`${actions.join('')}${final('$count')}`], { x: 3, bad: failing });
    const statuses = Object.fromEntries(result.actions.map(({ id, status }) => [id, status]));
    expect(statuses).toEqual({
      x: 'completed',
      bad: 'failed',
      after: 'completed',
      both: 'completed',
      few: 'skipped',
      many: 'completed',
      asked: 'completed',
      coded: 'completed',
    });
    expect(result.response).toBe('3');
    expect(kit.calls.get('x')?.action.name).toBe('echo');
    expect(kit.calls.get('after')?.parameters).toEqual({ of: null });
    expect(kit.log.indexOf('start both')).toBeGreaterThan(kit.log.indexOf('end after'));
    await timesOut(form);
    await retries(form);
    const open = form === 'full' ? '<action type="tool" id="l">' : '<action name="echo" id="l">';
    const { result: rejected } = await runOf(form, [`${open}[1]</action>`, final('ok')]);
    expect(rejected.actions).toMatchObject([{ id: 'l', status: 'rejected' }]);
  },

  'each of these types runs; docker, which the agent may not run, is rejected': async (form) => {
    const assistant = bundled.agent('assistant');
    if (assistant === null) throw new Error('there is no assistant');
    const resolved = { ...assistant, agent: speaking(assistant.agent, form) };
    const text = promptParts(resolved).find(({ id }) => id === 'actions')?.text ?? '';
    const [, list = ''] = /^- type(?: only if it is not a tool)?: (.*?)\. /m.exec(text) ?? [];
    const listed = list.replaceAll(/ \(.*?\)/g, '').split(', ');
    expect(listed).toEqual([...(form === 'full' ? ['tool'] : []), 'llm', 'python', 'shell', 'internal']);
    const actions = [
      act(form, { id: 'tool' }),
      act(form, { id: 'llm', type: 'llm', parameters: { prompt: 'p' } }),
      act(form, { id: 'python', type: 'python', parameters: { code: 'c' } }),
      act(form, { id: 'shell', type: 'shell', parameters: { command: 'c' } }),
      act(form, { id: 'internal', type: 'internal', name: 'set_variable', parameters: { key: 'k', value: 1 } }),
      act(form, { id: 'docker', type: 'docker', parameters: { image: 'i', command: 'c' } }),
    ];
    const { result } = await runOf(form, [actions.join(''), final('ok')]);
    expect(result.actions.map(({ type, status }) => `${type} ${status}`)).toEqual([
      'tool completed',
      'llm completed',
      'python completed',
      'shell completed',
      'internal completed',
      'docker rejected',
    ]);
  },

  'an id of letters, digits and _ is kept, and the same id is rejected the second time': async (form) => {
    const { result } = await runOf(form, [
      `${act(form, { id: 'Open_2' })}${act(form, { id: 'Open_2', parameters: { n: 1 } })}`,
      final('ok'),
    ]);
    expect(result.actions.map(({ status, error }) => [status, error?.code])).toEqual([
      ['completed', undefined],
      ['rejected', 'duplicate_id'],
    ]);
    expect(result.actions[0]?.id).toBe('Open_2');
  },

  'async delays nothing; sync delays later actions, but not those with depends_on': async (form) => {
    const slow = Promise.withResolvers<number>();
    const barrier = Promise.withResolvers<number>();
    const actions = [
      act(form, { id: 'slow', mode: 'async' }),
      act(form, { id: 'beside', mode: 'async' }),
      act(form, { id: 'barrier', mode: 'sync' }),
      act(form, { id: 'later', mode: 'async' }),
      act(form, { id: 'free', mode: 'async', fields: { depends_on: ['beside'] } }),
    ];
    const results = { slow: slow.promise, barrier: barrier.promise };
    const kit = await scene(form, results, { script: [actions.join(''), final('ok')] });
    const { ended } = await begun(kit);
    expect(kit.log).toContain('end beside');
    expect(kit.log).toContain('start free');
    expect(kit.log).not.toContain('start later');
    barrier.resolve(1);
    await settle();
    expect(kit.log).toContain('start later');
    slow.resolve(1);
    expect((await ended).status).toBe('completed');
  },

  'the result of a fire_and_forget action is in no message to the model': async (form) => {
    const actions = `${act(form, { id: 'gone', mode: 'fire_and_forget' })}${act(form, { id: 'kept', mode: 'async' })}`;
    const { kit } = await runOf(form, [actions, final('ok')], { gone: 'UNSEEN', kept: 'SEEN' });
    expect(kit.log).toContain('end gone');
    expect(sent(kit, 1)).toContain('SEEN\n');
    expect(kit.requests.map((_, call) => sent(kit, call)).join()).not.toContain('UNSEEN');
  },

  'of seven actions, five run at once': async (form) => {
    const gate = Promise.withResolvers<number>();
    const actions = SEVEN.map((id) => act(form, { id, mode: 'async' })).join('');
    const results = Object.fromEntries(SEVEN.map((id) => [id, gate.promise]));
    const kit = await scene(form, results, { script: [actions, final('ok')] });
    const { ended } = await begun(kit);
    expect(kit.log).toEqual(SEVEN.slice(0, 5).map((id) => `start ${id}`));
    gate.resolve(1);
    expect((await ended).actions.every(({ status }) => status === 'completed')).toBe(true);
    expect(kit.most()).toBe(5);
  },

  'an action with a reference, and one with depends_on, start after the other action has ended': async (form) => {
    const gate = Promise.withResolvers<number>();
    const actions = [
      act(form, { id: 'first', mode: 'async' }),
      act(form, { id: 'refers', mode: 'async', parameters: { x: '$first' } }),
      act(form, { id: 'waits', mode: 'async', fields: { depends_on: ['first'] } }),
      act(form, { id: 'other', mode: 'async' }),
    ];
    const kit = await scene(form, { first: gate.promise }, { script: [actions.join(''), final('ok')] });
    const { ended } = await begun(kit);
    expect(kit.log).toEqual(['start first', 'start other', 'end other']);
    gate.resolve(1);
    await ended;
    expect(kit.log.slice(3, 4)).toEqual(['end first']);
    expect(kit.log).toEqual(expect.arrayContaining(['start refers', 'start waits']));
  },

  'ids, output keys, feeds and paths are filled in, in parameters and in the response': async (form) => {
    const actions = [
      act(form, { id: 'list', mode: 'async', fields: { output_key: 'found' } }),
      act(form, {
        id: 'use',
        mode: 'async',
        parameters: { whole: '$list', key: '$found.items[0]', feed: '$clock.x', text: 'is $list.items[1]' },
      }),
    ];
    const params = { x: 7 };
    const clock = feedOf('clock', {
      source: { type: 'tool', name: 'echo', action: null, params },
      defaultValue: params,
    });
    const { kit, result } = await runOf(
      form,
      [`${actions.join('')}${final('$found.items[1], $list.items[0], $clock.x, $use')}`],
      { list: { items: [1, 'two'] }, use: 'done', clock: params },
      { agent: (agent) => ({ ...agent, feeds: [{ ...clock, onError: 'use_default' }] }) },
    );
    expect(kit.calls.get('use')?.parameters).toEqual({
      whole: { items: [1, 'two'] },
      key: 1,
      feed: 7,
      text: 'is two',
    });
    expect(result.response).toBe('two, 1, 7, done');
  },

  '$$ is a dollar sign, in parameters and in the response': async (form) => {
    const action = act(form, { id: 'pay', mode: 'async', parameters: { text: '$$pay costs 5 $$' } });
    const { kit, result } = await runOf(form, [`${action}${final('$$pay: $pay')}`], { pay: 'paid' });
    expect(kit.calls.get('pay')?.parameters).toEqual({ text: '$pay costs 5 $' });
    expect(result.response).toBe('$pay: paid');
  },

  'code reaches the executor as written, and its inputs with their values': async (form) => {
    const code = 'print(inputs["x"] + "$first")';
    const command = 'echo $x $(date)';
    const inputs = { x: '$first' };
    const actions = [
      act(form, { id: 'first', mode: 'async' }),
      act(form, { id: 'p', type: 'python', mode: 'async', parameters: { code, inputs } }),
      act(form, { id: 's', type: 'shell', mode: 'async', parameters: { command, inputs } }),
    ];
    const { kit } = await runOf(form, [`${actions.join('')}${final('$p $s')}`], { first: 'one', p: 1, s: 2 });
    expect(kit.calls.get('p')).toMatchObject({ parameters: { code }, inputs: { x: 'one' } });
    expect(kit.calls.get('s')).toMatchObject({ parameters: { command }, inputs: { x: 'one' } });
  },
} as const satisfies Checks;

/** `timeout` is in seconds: after two of them, the attempt ends. */
async function timesOut(form: TextForm): Promise<void> {
  const never = new Promise<number>(() => undefined);
  const action = act(form, { id: 't', mode: 'async', fields: { timeout: 2, retry: 1 } });
  const kit = await scene(form, { t: never }, { script: [action, final('late')] });
  const { ended } = await begun(kit);
  kit.clock.advance(1_999);
  await settle();
  expect(kit.requests).toHaveLength(1);
  kit.clock.advance(1);
  expect((await ended).actions).toMatchObject([{ status: 'failed', error: { code: 'timeout' } }]);
}

/** `retry` is the number of attempts of a target that may be repeated. */
async function retries(form: TextForm): Promise<void> {
  const action = act(form, { id: 'r', mode: 'async', fields: { retry: 2 } });
  const kit = await scene(form, { r: new Retryable('busy') }, { script: [action, final('ok')] });
  const { ended } = await begun(kit);
  for (let turn = 0; turn < 4; turn += 1) {
    kit.clock.advance(60_000);
    await settle();
  }
  expect((await ended).actions).toMatchObject([{ id: 'r', status: 'failed', attempts: 2 }]);
}
