/** The parameters of actions in the document of a run, as they were executed (H7, P12, X3). */
import { describe, expect, test } from 'vitest';
import { cutJson } from '../../../src/bounded/cut-json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { RunResult } from '../../../src/view/result.ts';
import type { ActionCall } from '../../../src/executors/executor.ts';
import { resultOf, runText, sessionKit } from '../../support/session-kit.ts';
import type { KitOptions } from '../../support/session-kit.ts';

const act = (id: string, body: object, more = 'type="tool"'): string =>
  `<action ${more} mode="async" id="${id}">${JSON.stringify(body)}</action>`;

const of = (result: RunResult, id: string): RunResult['actions'][number] | undefined =>
  result.actions.find((action) => action.id === id);

/** Records the calls that executors get. */
function recorder(): { readonly calls: Map<string, ActionCall>; readonly options: KitOptions } {
  const calls = new Map<string, ActionCall>();
  const take = async (call: ActionCall): Promise<{ ok: true; output: { n: number; text: string } }> => {
    calls.set(call.action.id, call);
    return { ok: true, output: { n: 7, text: 'the hidden token-12345 of it' } };
  };
  return { calls, options: { executors: { tool: take, python: take }, secrets: ['token-12345'] } };
}

describe('[H7] parameters of an action', () => {
  test('are those that were executed, and no row is added for them', async () => {
    const { calls, options } = recorder();
    const kit = await sessionKit(options);
    const text = [
      act('plain', { name: 'echo', parameters: { a: 1 } }),
      act('first', { name: 'echo', parameters: { n: '$plain.n', deep: [{ t: 'n is $plain.n for $$5' }] } }),
    ].join('');
    const result = await runText(kit, text);
    expect(of(result, 'plain')?.parameters).toEqual({ a: 1 });
    expect(of(result, 'first')?.parameters).toEqual({ n: 7, deep: [{ t: 'n is 7 for $5' }] });
    expect(of(result, 'first')?.parameters).toEqual(calls.get('first')?.parameters);
    const started = kit.events.filter(({ type }) => type === 'action_started').map(({ data }) => data);
    expect(started).toEqual([{ attempt: 1 }, { attempt: 1, parameters: calls.get('first')?.parameters }]);
    const own = kit.events.filter(({ action_id: id, seq }) => id === 'first' && seq !== null);
    expect(own.map(({ type }) => type)).toEqual(['action_queued', 'action_started', 'action_completed']);
  });

  test('contain the values passed to code, without secrets', async () => {
    const { options } = recorder();
    const kit = await sessionKit({
      ...options,
      agent: (agent) => ({ ...agent, loop: { ...agent.loop, mode: 'autonomous' } }),
    });
    const text = [
      act('plain', { name: 'echo' }),
      act('code', { parameters: { code: 'print($plain)', inputs: { it: '$plain.text' } } }, 'type="python"'),
    ].join('');
    let result = await runText(kit, text);
    for (const { approval_id: id } of result.approvals ?? []) {
      await kit.session.resolveApproval(id, true, null);
      await kit.settled();
      result = await resultOf(kit.session, kit.session.run(result.run_id));
    }
    expect(of(result, 'code')?.parameters).toEqual({
      code: 'print($plain)',
      inputs: { plain: { n: 7, text: 'the hidden [secret] of it' }, it: 'the hidden [secret] of it' },
    });
    expect(JSON.stringify(kit.events)).not.toContain('token-12345');
  });

  test('are null until the action is dispatched, and as declared if it is rejected', async () => {
    const { options } = recorder();
    const kit = await sessionKit(options);
    const text = [
      act('skipped', { name: 'echo', parameters: { a: 1 }, when: 'false' }),
      act('unknown', { name: 'no_such_tool', parameters: { b: '$skipped' } }),
      '<action id="broken">{"name":</action>',
    ].join('');
    const result = await runText(kit, text);
    expect(of(result, 'skipped')).toMatchObject({ status: 'skipped', parameters: null });
    expect(of(result, 'unknown')).toMatchObject({ status: 'rejected', parameters: { b: '$skipped' } });
    expect(of(result, 'broken')).toMatchObject({ status: 'rejected', parameters: null });
  });

  test('that are long are cut with a marker, declared or resolved', async () => {
    const { options } = recorder();
    const kit = await sessionKit({ ...options, variables: { big: 'v'.repeat(100_000) } });
    const text = [
      act('declared', { name: 'echo', parameters: { text: 'd'.repeat(50_000) } }),
      act('resolved', { name: 'echo', parameters: { all: ['$big', '$big'] } }),
    ].join('');
    const result = await runText(kit, text);
    for (const id of ['declared', 'resolved']) {
      const action = of(result, id);
      expect(action).toMatchObject({ status: 'completed', parameters_cut: true });
      const shown = JSON.stringify(action?.parameters);
      expect(shown).toMatch(/\[cut: (50000|100000) characters\]/);
      expect(shown.length).toBeLessThan(limits.shownParametersChars + 500);
    }
    expect(of(result, 'declared')?.parameters).not.toHaveProperty('parameters_cut');
  });
});

describe('[H7] a cut copy', () => {
  test('of a small value is equal, including __proto__', () => {
    const value = JSON.parse('{"a":[1,"x",null,{"b":true}],"__proto__":{"c":1.5}}') as Record<string, never>;
    const { value: copy, isCut } = cutJson(value, 1_000);
    expect([JSON.stringify(copy), isCut]).toEqual([JSON.stringify(value), false]);
  });

  test('reads no more than it copies: a value whose text would be endless', () => {
    let value: Record<string, unknown> = { end: 'x'.repeat(100) };
    for (let n = 0; n < 40; n += 1) value = { a: value, b: value };
    const { value: copy, isCut } = cutJson(value as Record<string, never>, 2_000);
    expect(isCut).toBe(true);
    expect(JSON.stringify(copy).length).toBeLessThan(20_000);
  });

  test('has no half of a secret at the cut', () => {
    const redact = (text: string): string => text.replaceAll('secret-value', '[secret]');
    const text = `${'x'.repeat(95)}secret-value${'y'.repeat(100)}`;
    expect(JSON.stringify(cutJson({ text }, 110, redact).value)).not.toContain('secret-');
    // Removed secrets move what follows before the cut.
    const many = 'secret-value'.repeat(2_000);
    const { value, isCut } = cutJson({ many }, 16_005, redact);
    expect(isCut).toBe(true);
    expect(value['many']).toMatch(/^(\[secret\])+(\[s?e?c?r?e?t?)?\[cut: 24000 characters\]$/);
  });
});
