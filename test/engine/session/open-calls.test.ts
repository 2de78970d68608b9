/** Calls of client tools that are open: who is shown them, and which can never be answered (C3). */
import { describe, expect, test } from 'vitest';
import type { ToolDefinition } from '../../../src/domain/manifests/tool.ts';
import type { AutomaticTrigger } from '../../../src/domain/ports/children.ts';
import { toolOf } from '../../support/definitions.ts';
import { callsOf, documentOf } from '../../support/client-calls.ts';
import { say, sessionKit, settle } from '../../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../../support/session-kit.ts';
import { definition } from '../workflow/steps.ts';

const LAMP: ToolDefinition = toolOf({ type: 'client' }, { name: 'lamp', parameters: { type: 'object' } });
const lamp = (id: string, fields = '', mode = 'async'): string =>
  `<action type="tool" mode="${mode}" id="${id}">{"name": "lamp"${fields}}</action>`;
const answer = (text: string): string => `<response final="true">${text}</response>`;

const kitOf = (options: KitOptions = {}): Promise<SessionKit> => sessionKit({ tools: [LAMP], ...options });

describe('[C3] an open call is in the document', () => {
  test('while another action of the run is running', async () => {
    let finish = (): void => undefined;
    const gate = new Promise<void>((resolve) => (finish = resolve));
    const kit = await kitOf({
      executors: { python: async () => ({ ok: true, output: await gate.then(() => 7) }) },
      script: [`${lamp('l')}<action type="python" mode="async" id="p">{"parameters": {"code": "7"}}</action>`],
    });
    const said = say(kit, 'go');
    expect(await documentOf(kit)).toMatchObject({ status: 'running', pending: [{ name: 'lamp' }] });
    await kit.session.settleCall(callsOf(kit)[0] ?? '', { output: 'on' });
    expect(await documentOf(kit)).not.toHaveProperty('pending');
    finish();
    expect(await said).toMatchObject({ status: 'completed', actions: [{ output: 'on' }, { output: 7 }] });
  });

  test('of a background action, after the run has ended and until it is answered or cancelled', async () => {
    const kit = await kitOf({
      script: [`${lamp('a', '', 'fire_and_forget')}${lamp('b', '', 'fire_and_forget')}${answer('done')}`],
    });
    await say(kit, 'go');
    const [first = '', second = ''] = callsOf(kit);
    expect((await documentOf(kit)).pending).toMatchObject([{ call_id: first }, { call_id: second }]);
    await kit.session.settleCall(first, { output: 1 });
    expect(await documentOf(kit)).toMatchObject({ status: 'completed', pending: [{ call_id: second }] });
    await kit.session.cancel('enough');
    expect(await documentOf(kit)).not.toHaveProperty('pending');
  });

  test('not of an ended run that failed without its host', async () => {
    const kit = await kitOf({ script: [lamp('l')] });
    await say(kit, 'go');
    const next = await kitOf({ sql: kit.sql, clock: kit.clock, gone: () => true });
    await next.session.recover();
    expect(await documentOf(next)).toMatchObject({ status: 'failed' });
    expect(await documentOf(next)).not.toHaveProperty('pending');
    await expect(next.session.settleCall(callsOf(kit)[0] ?? '', { output: 1 })).rejects.toMatchObject({
      code: 'call_settled',
      details: { call_status: 'cancelled' },
    });
  });
});

describe('[C3] a workflow with a client tool', () => {
  async function start(trigger: AutomaticTrigger | undefined): Promise<SessionKit> {
    const kit = await kitOf({
      kind: 'execution',
      workflow: {
        tools: new Map([[LAMP.name, LAMP]]),
        relics: new Map(),
        workflows: new Map(),
        agents: new Map(),
        knownNames: { tool: ['lamp'], agent: [], relic: [], workflow: [] },
        workflow: definition([{ name: 'off', target: 'lamp' }], {
          imports: { tools: ['lamp'], agents: [], relics: [], workflows: [] },
        }),
      },
    });
    const started = trigger === undefined ? {} : { trigger };
    await kit.session.child({
      key: 'k',
      type: 'workflow',
      name: 'w',
      message: '',
      inputs: {},
      budget: null,
      ...started,
    });
    await settle();
    kit.clock.advance(0);
    await settle();
    return kit;
  }

  test.each(['schedule', 'webhook'] as const)('that a %s has started fails at once', async (trigger) => {
    const done = await documentOf(await start(trigger));
    expect(done.status).toBe('failed');
    expect(done.actions[0]?.error).toEqual({
      code: 'client_tool_unavailable',
      message: `Action "off" cannot call the client tool "lamp": a ${trigger} started this workflow, so no client follows it`,
      retryable: false,
    });
  });

  test('that a caller has started waits for the client', async () => {
    const kit = await start(undefined);
    expect(await documentOf(kit)).toMatchObject({ status: 'waiting', pending: [{ name: 'lamp' }] });
    await kit.session.settleCall(callsOf(kit)[0] ?? '', { output: 'off' });
    expect((await documentOf(kit)).status).toBe('completed');
  });
});

describe('[C3] a client tool is an action like others', () => {
  test('its result is reused', async () => {
    const pure = { ...LAMP, effects: 'pure' as const, cacheTtlMs: 60_000 };
    const again = lamp('b', ', "parameters": {"on": true}');
    const kit = await kitOf({
      tools: [pure],
      script: [lamp('a', ', "parameters": {"on": true}'), answer('ok'), `${again}${answer('$b')}`],
    });
    await say(kit, 'go');
    await kit.session.settleCall(callsOf(kit)[0] ?? '', { output: 'lit' });
    await settle();
    expect(await say(kit, 'again')).toMatchObject({ status: 'completed', response: 'lit' });
    expect(callsOf(kit)).toHaveLength(1);
  });
});
