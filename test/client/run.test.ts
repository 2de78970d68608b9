/** A run as the client reads it, from a real session in this process, over connections that break anywhere (K3). */
import { describe, expect, test } from 'vitest';
import * as fc from 'fast-check';
import type { ModelDelta } from '../../src/domain/ports/model.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import { emptyMessage, fold, visibleText } from '../../src/client/index.ts';
import type { Message } from '../../src/client/index.ts';
import { sessionKit } from '../support/session-kit.ts';
import type { SessionKit } from '../support/session-kit.ts';
import { eventsOf } from '../support/events.ts';
import { allOf, clientOf, closedTexts, patchedTexts } from './client-kit.ts';
import type { Fault } from './client-kit.ts';

/** Every kind of text: thoughts, bare text, several responses, one that waits for a result, emoji. */
const TEXT = `bare words before <thought>first I <action name="echo" id="a">{"x": "🎈🎈", "delay_ms": 5}</action>think 🎈 twice</thought>
<response final="false">one moment, $a.x it is, and more</response>
<response final="true">The whole answer: $a.x, 🎈 with a tail that is long enough to be cut in many places.</response>`;

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A session whose model sends a few characters per turn; each turn advances the clock. */
async function speaking(size: number): Promise<SessionKit> {
  const kit = await sessionKit({
    async *stream(): AsyncGenerator<ModelDelta> {
      for (let at = 0; at < TEXT.length; at += size) {
        yield { type: 'text', text: TEXT.slice(at, at + size) };
        await tick();
        kit.clock.advance(5);
      }
      yield { type: 'finish', reason: 'stop' };
    },
  });
  return kit;
}

const journaled = (events: readonly SessionEvent[]): SessionEvent[] => events.filter(({ seq }) => seq !== null);
const folded = (events: readonly SessionEvent[]): Message => events.reduce(fold, emptyMessage('run'));

function expectWhole(kit: SessionKit, events: readonly SessionEvent[]): void {
  expect(journaled(events).map(({ seq, type }) => [seq, type])).toEqual(
    journaled(kit.events).map(({ seq, type }) => [seq, type]),
  );
  expect(patchedTexts(events)).toEqual(closedTexts(kit.events));
  const message = folded(events);
  const answer = eventsOf(events, 'agent_completed')[0]?.data.response;
  expect(message).toMatchObject({ status: 'completed', response: answer });
  expect(message.blocks.at(-1)?.text).toBe(answer);
  expect(message.actions).toMatchObject([{ id: 'a', status: 'completed', output: { x: '🎈🎈' } }]);
}

describe('[K3] every journaled event comes once, and all text once', () => {
  test('over a connection that holds', async () => {
    const kit = await speaking(7);
    const { session, requests } = clientOf(kit);
    const run = await session.send('go');
    expectWhole(kit, await allOf(run.events()));
    expect(requests).toEqual(['POST /message?format=compact']);
  });

  test('over one that breaks in its first stream, wherever', async () => {
    for (let bytes = 1; bytes < 2_000; bytes += 97) {
      const kit = await speaking(11);
      const { session, requests } = clientOf(kit, [bytes]);
      expectWhole(kit, await allOf((await session.send('go')).events()));
      expect(requests.length).toBeGreaterThanOrEqual(2);
    }
  });

  test('over connections that are refused, lost and cut at random bytes; and the message is sent once', async () => {
    const fault = fc.oneof(
      fc.constantFrom<Fault>('refused', 'lost', null),
      fc.integer({ min: 1, max: 4_000 }),
    ) as fc.Arbitrary<Fault>;
    await fc.assert(
      fc.asyncProperty(fc.array(fault, { maxLength: 20 }), fc.integer({ min: 1, max: 40 }), async (faults, size) => {
        const kit = await speaking(size);
        const { session } = clientOf(kit, faults, { retries: 20 });
        const run = await session.send('go');
        expectWhole(kit, await allOf(run.events()));
        expect(kit.session.runs(5)).toHaveLength(1);
      }),
      { numRuns: 30 },
    );
  });

  test('to each of several readers, also after the end', async () => {
    const kit = await speaking(9);
    const run = await clientOf(kit).session.send('go');
    const readers = await Promise.all([allOf(run.events()), allOf(run.events()), allOf(run.events())]);
    for (const events of [...readers, await allOf(run.events())]) expectWhole(kit, events);
  });
});

test('[K3] the message that is folded live is that of a replay, and visible text has no blank and replaced blocks', async () => {
  const kit = await speaking(3);
  const run = await clientOf(kit).session.send('go');
  const messages = await allOf(run.messages());
  const last = messages.at(-1);
  expect(last).toEqual(await clientOf(kit).session.run(run.id).result());
  expect(last === undefined ? '' : visibleText(last)).toBe(
    'bare words before\n\none moment, 🎈🎈 it is, and more\n\nThe whole answer: 🎈🎈, 🎈 with a tail that is long enough to be cut in many places.',
  );
  expect(await run.text()).toBe(last?.response);
  expect(messages.some(({ blocks }) => blocks.some(({ is_open: open, text }) => open && text !== ''))).toBe(true);
});

describe('[K3] the end of a run', () => {
  test('that has failed is an error of text(), with its code', async () => {
    const kit = await sessionKit({ script: ['', '', ''] });
    const run = await clientOf(kit).session.send('go');
    expect(await run.result()).toMatchObject({ status: 'failed', response: null, error: { code: 'no_progress' } });
    await expect(run.text()).rejects.toMatchObject({ name: 'CortexError', code: 'no_progress', status: 0 });
  });

  test('that was cancelled is one as well', async () => {
    const kit = await speaking(1);
    const { session } = clientOf(kit);
    const run = await session.send('go');
    const text = run.text();
    expect(await session.cancel({ reason: 'enough' })).toBe(true);
    await expect(text).rejects.toMatchObject({ code: 'cancelled' });
    expect(await session.cancel()).toBe(false);
  });
});

describe('[K3] leaving', () => {
  test('by a signal ends the events without an error, and the run continues', async () => {
    const kit = await speaking(1);
    const leave = new AbortController();
    const run = await clientOf(kit).session.send('go', { signal: leave.signal });
    const seen: SessionEvent[] = [];
    for await (const event of run.events()) {
      seen.push(event);
      if (event.type === 'response') leave.abort(new Error('left'));
    }
    expect(seen.at(-1)?.type).toBe('response');
    await expect(run.result()).rejects.toThrow('left');
    await expect.poll(() => kit.session.runs(1)[0]?.status).toBe('completed');
    expectWhole(kit, await allOf(clientOf(kit).session.run(run.id).events()));
  });

  test('by break leaves the rest to the next reader', async () => {
    const kit = await speaking(2);
    const run = await clientOf(kit).session.send('go');
    for await (const { type } of run.events()) if (type === 'thought') break;
    expect((await run.result()).status).toBe('completed');
    expectWhole(kit, await allOf(run.events()));
  });
});

test('[K3] the events of the session go on after a run, until the signal is aborted', async () => {
  const kit = await sessionKit({
    script: ['<response final="true">1</response>', '<response final="true">2</response>'],
  });
  const { session } = clientOf(kit, [null, 300, 500, null, 200]);
  const leave = new AbortController();
  const all = (async () => {
    const seen: SessionEvent[] = [];
    for await (const event of session.events({ signal: leave.signal })) {
      seen.push(event);
      if (eventsOf(seen, 'agent_completed').length === 2) leave.abort();
    }
    return seen;
  })();
  expect(await (await session.send('one')).text()).toBe('1');
  expect(await (await session.send('two')).text()).toBe('2');
  expect(journaled(await all).map(({ seq }) => seq)).toEqual(journaled(kit.events).map(({ seq }) => seq));
});
