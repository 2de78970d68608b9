/** The fold of a run's events into a message agrees with the document of the run (K3, H7). */
import { describe, expect, test } from 'vitest';
import { withWholeTexts } from '../../src/domain/event.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import { emptyMessage, fold, hasEnded, visibleText } from '../../src/client/index.ts';
import type { Message } from '../../src/client/index.ts';
import { say, sessionKit } from '../support/session-kit.ts';
import type { Script, SessionKit } from '../support/session-kit.ts';

const echo = (id: string, parameters: string, more = ''): string =>
  `<action type="tool" mode="async" id="${id}" ${more}>{"name": "echo", "parameters": ${parameters}}</action>`;

const RUNS: Readonly<Record<string, Script>> = {
  'an answer': ['<thought>hm</thought><response final="true">yes</response>'],
  'bare text': ['just words'],
  'two generations': [`first ${echo('a', '{"x": 1}')}`, '<response final="true">then $a.x</response>'],
  'the same id twice': [echo('a', '{"x": 1}'), echo('a', '{"x": 2}'), '<response final="true">ok</response>'],
  'a dependency that fails': [
    `<action type="tool" mode="async" id="a">{"name": "echo", "parameters": {"fail": true, "delay_ms": "x"}}</action>${echo('b', '{"x": "$a"}')}`,
    '<response final="true">so be it</response>',
  ],
  'a rejected action': [
    '<action type="tool" id="r">{"name": "no_such_tool"}</action>',
    '<response final="true">ok</response>',
  ],
  'a failed run': ['', '', ''],
};

const foldAll = (events: readonly SessionEvent[]): Message => events.reduce(fold, emptyMessage('run'));

async function run(script: Script): Promise<{ kit: SessionKit; events: SessionEvent[]; message: Message }> {
  const kit = await sessionKit({ script });
  await say(kit, 'go');
  return { kit, events: kit.events, message: foldAll(kit.events) };
}

describe.each(Object.entries(RUNS))('[K3] %s', (_name, script) => {
  test('is the same in the message and in the document', async () => {
    const kit = await sessionKit({ script });
    const document = await say(kit, 'go');
    const { status, response, actions, error, warnings, ...rest } = foldAll(kit.events);
    expect({ status, response: response ?? '', error, warnings }).toEqual({
      status: document.status,
      response: document.response,
      error: document.error,
      warnings: document.warnings,
    });
    const shown = actions.map(({ iteration: _iteration, depends_on: _on, progress: _progress, ...action }) => action);
    const sent = document.actions.map(({ id, name, type, mode, status: state, output, attempts }) => {
      return { id, name, type, mode, status: state, output, attempts };
    });
    expect(shown).toMatchObject(sent);
    expect(actions.map((action) => action.error?.code)).toEqual(document.actions.map((action) => action.error?.code));
    expect(rest.blocks.every(({ is_open: open }) => !open)).toBe(true);
  });

  test('is the same live, replayed, and from whole patches', async () => {
    const { events, message } = await run(script);
    const stored = events.filter(({ seq }) => seq !== null);
    expect(foldAll(stored)).toEqual(message);
    expect(foldAll(withWholeTexts(stored))).toEqual(message);
  });

  test('changes no earlier message, and ends once', async () => {
    const { events } = await run(script);
    let message = emptyMessage('run');
    let ends = 0;
    for (const event of events) {
      const before = structuredClone(message);
      const next = fold(message, event);
      expect(message).toEqual(before);
      if (hasEnded(next) && !hasEnded(message)) ends += 1;
      message = next;
    }
    expect(ends).toBe(1);
  });
});

const event = (seq: number | null, type: string, data: object, more: object = {}): SessionEvent =>
  ({ seq, type, session_id: 's', run_id: 'r', iteration: 1, timestamp: 0, data, ...more }) as unknown as SessionEvent;

test('[K3] a response that is written again takes the place of the first one', () => {
  const message = foldAll([
    event(1, 'response_started', { final: true }),
    event(null, 'response', { segment: 1, offset: 0, delta: 'a [pending]' }),
    event(2, 'response_completed', { segment: 1, content: 'a [pending]', final: true, pending: ['a'] }),
    event(3, 'response_started', { final: true, completes: 1 }),
    event(null, 'response', { segment: 3, offset: 0, delta: 'a 1' }),
  ]);
  expect(visibleText(message)).toBe('a 1');
  expect(message.blocks).toMatchObject([{ is_replaced: true }, { is_replaced: false, is_open: true }]);
});

test('[K3] a block that a crash has cut off has the text of the journal', () => {
  const message = foldAll([
    event(1, 'text_started', {}),
    event(null, 'text', { segment: 1, offset: 0, delta: 'more than stored' }),
    event(2, 'text_completed', { segment: 1, content: 'more', cut: true }),
  ]);
  expect(message.blocks).toMatchObject([{ text: 'more', is_cut: true, is_open: false }]);
});

test('[K3] a run that waits is running again when someone has answered, not when a background action goes on', () => {
  const waiting = foldAll([event(1, 'agent_started', {}), event(2, 'agent_waiting', { reason: 'approvals' })]);
  const progress = event(null, 'progress', { text: 'x' }, { action_id: 'a' });
  expect([waiting.status, fold(waiting, progress).status]).toEqual(['waiting', 'waiting']);
  expect(fold(waiting, event(3, 'warning', { code: 'c', message: 'm' })).status).toBe('waiting');
  const resolved = event(3, 'approval_resolved', { approval_id: 'p', approved: true }, { action_id: 'b' });
  expect(fold(waiting, resolved).status).toBe('running');
  const asked = fold(waiting, event(3, 'approval_requested', { approval_id: 'p' }, { action_id: 'b' }));
  const expired = event(4, 'action_failed', { error: { code: 'approval_expired', message: 'm' } }, { action_id: 'b' });
  expect(fold(asked, expired).status).toBe('running');
});

test('[K3] output of a running action is collected; an unknown event changes nothing', () => {
  const queued = foldAll([
    event(1, 'action_queued', { type: 'python', mode: 'async', depends_on: [], parameters: {} }, { action_id: 'a' }),
  ]);
  const one = fold(queued, event(null, 'progress', { text: 'one ' }, { action_id: 'a' }));
  expect(fold(one, event(null, 'progress', { text: 'two' }, { action_id: 'a' })).actions[0]?.progress).toBe('one two');
  expect(fold(one, event(2, 'something_new', {}))).toBe(one);
});

test('[K3] [P15] an answer whose generation ended early is marked, and a later generation makes up for it', () => {
  const event = (seq: number, type: string, iteration: number, data: object = {}): SessionEvent =>
    ({ seq, type, session_id: 's', run_id: 'run', iteration, timestamp: 0, data }) as unknown as SessionEvent;
  const cut = [event(1, 'iteration_started', 1), event(2, 'warning', 1, { code: 'generation_cut', message: 'm' })];
  const done = event(5, 'agent_completed', 1, { response: 'Hello th', iterations: 1, usage: {} });
  expect(foldAll([...cut, done])).toMatchObject({ status: 'completed', response: 'Hello th', is_cut: true });
  expect(foldAll([...cut, event(3, 'iteration_started', 2), done])).toMatchObject({ is_cut: false });
});
