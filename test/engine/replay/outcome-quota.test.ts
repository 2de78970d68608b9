/** An output past the quota of its run counts as its error, also when the run is replayed (J6, J9). */
import { expect, test } from 'vitest';
import type { ToolDefinition } from '../../../src/domain/manifests/tool.ts';
import { toolOf } from '../../support/definitions.ts';
import { eventsOf } from '../../support/events.ts';
import { resultOf, say, sessionKit, settle } from '../../support/session-kit.ts';
import type { KitOptions } from '../../support/session-kit.ts';

const BIG = 'x'.repeat(1_000_000);
const LAMP = toolOf({ type: 'client' }, { name: 'lamp', parameters: { type: 'object' } });
/** `work` runs at once; its equal calls are looked up. */
const WORK: ToolDefinition = toolOf(
  { type: 'builtin', entrypoint: 'echo' },
  { name: 'work', effects: 'pure', cacheTtlMs: 60_000, parameters: { type: 'object' } },
);

const act = (id: string, name: string, parameters = '{}'): string =>
  `<action type="tool" mode="async" id="${id}">{"name": "${name}", "parameters": ${parameters}}</action>`;

test.each([
  ['of executors', (n: number): string => `{"n": ${n}}`],
  ['of earlier outcomes', (): string => '{}'],
])('[C3] a run that waits for a client replays the outputs %s that were refused', async (_what, parameters) => {
  const options: KitOptions = {
    tools: [LAMP, WORK],
    executors: { tool: async () => ({ ok: true, output: BIG }) },
  };
  const works = Array.from({ length: 18 }, (_, n) => act(`w${n}`, 'work', parameters(n))).join('');
  const kit = await sessionKit({ ...options, script: [works + act('l', 'lamp')] });
  const waiting = await say(kit, 'go');
  const refused = eventsOf(kit.events, 'action_failed').map(({ data }) => data.error.code);
  expect([waiting.status, new Set(refused)]).toEqual(['waiting', new Set(['outcome_quota'])]);

  const next = await sessionKit({
    ...options,
    sql: kit.sql,
    clock: kit.clock,
    script: ['<response final="true">done</response>'],
  });
  await next.session.recover();
  await settle();
  expect([next.faults, next.session.status]).toEqual([[], 'waiting']);
  await next.session.settleCall(eventsOf(kit.events, 'client_tool_called')[0]?.data.call_id ?? '', { output: 1 });
  await settle();
  const [run] = next.session.runs(1);
  if (run === undefined) throw new Error('there is no run');
  const done = await resultOf(next.session, run);
  expect([done.status, done.response]).toEqual(['completed', 'done']);
  expect(done.actions.filter(({ status }) => status === 'failed')).toHaveLength(refused.length);
});
