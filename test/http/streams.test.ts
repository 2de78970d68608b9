/** Readers of a whole session: with connections cut anywhere, they receive the text of the journal (J4). */
import { describe, expect, test } from 'vitest';
import type { SessionEvent } from '../../src/domain/event.ts';
import { isTextPatch, RUN_TERMINAL_EVENTS } from '../../src/domain/event.ts';
import type { ModelDelta } from '../../src/domain/ports/model.ts';
import type { Session } from '../../src/engine/session/session.ts';
import { Heartbeat } from '../../src/http/heartbeat.ts';
import { eventStream, sseFrame } from '../../src/http/sse.ts';
import { sessionKit } from '../support/session-kit.ts';
import type { SessionKit } from '../support/session-kit.ts';

/** Every kind of text: thoughts, bare text, several responses, one that waits for a result, emoji. */
const TEXT = `bare words before <thought>first I <action name="echo" id="a">{"x": "🎈🎈", "delay_ms": 5}</action>think 🎈 twice</thought>
<response final="false">one moment, $a.x it is, and more</response>
<response final="true">The whole answer: $a.x, 🎈 with a tail that is long enough to be cut in many places.</response>`;

function tick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A session whose model sends a few characters per turn; each turn advances the clock. */
async function speaking(size: number): Promise<SessionKit> {
  const kit = await sessionKit({
    async *stream(): AsyncGenerator<ModelDelta> {
      for (let at = 0; at < TEXT.length; at += size) {
        yield { type: 'text', text: TEXT.slice(at, at + size) };
        await tick();
        kit.clock.advance(1);
      }
      yield { type: 'finish', reason: 'stop' };
    },
  });
  return kit;
}

/**
 * A client: applies patches, and uses the text of the closing event only for blocks of which it received no patch;
 * `ends` holds what it shows when a block closes.
 */
class Client {
  readonly text = new Map<number, string>();
  readonly ends = new Map<number, string>();
  readonly closing = new Map<number, unknown>();
  readonly journaled: string[] = [];
  lastSeq = 0;
  frames = 0;
  over = false;

  take(frame: string): void {
    this.frames += 1;
    const event = JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? 'null') as SessionEvent | null;
    if (event === null) return;
    const id = /^id: (\d+)$/m.exec(frame)?.[1];
    if (id !== undefined) {
      this.lastSeq = Number(id);
      this.journaled.push(`${frame}\n\n`);
    }
    if (isTextPatch(event)) {
      const { segment, offset, delta } = event.data;
      this.text.set(segment, (this.text.get(segment) ?? '').slice(0, offset) + delta);
    } else if (
      event.type === 'thought_completed' ||
      event.type === 'text_completed' ||
      event.type === 'response_completed'
    ) {
      const { segment, content } = event.data;
      this.ends.set(segment, this.text.get(segment) ?? content);
      this.closing.set(segment, content);
    }
    this.over ||= RUN_TERMINAL_EVENTS.has(event.type);
  }
}

/** Reads until the run has ended; the connection breaks after `cuts[n]` frames of the nth connection. */
async function readWithCuts(
  session: Session,
  runId: string,
  cuts: Iterable<number>,
  client = new Client(),
): Promise<Client> {
  const heartbeat = new Heartbeat({ now: () => 0, schedule: () => () => undefined });
  const lengths = cuts[Symbol.iterator]();
  while (!client.over) {
    let left = lengths.next().value ?? Number.POSITIVE_INFINITY;
    const stream = eventStream(session, heartbeat, { after: client.lastSeq, runId });
    const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    while (left > 0) {
      const { value, done } = await reader.read();
      if (done) break;
      const parts = (rest + value).split('\n\n');
      rest = parts.pop() ?? '';
      for (const frame of parts) {
        if (left <= 0) break;
        client.take(frame);
        left -= 1;
      }
    }
    await reader.cancel();
    await tick();
  }
  return client;
}

async function start(size: number): Promise<{ kit: SessionKit; runId: string }> {
  const kit = await speaking(size);
  const run = await kit.session.message({ content: 'go', ifBusy: 'queue', tokens: false, idempotencyKey: null });
  return { kit, runId: run.runId };
}

/** The frames of the journal. */
function replayed(session: Session): string[] {
  const frames: string[] = [];
  for (let after = 0; ;) {
    const page = session.events(after);
    if (page.length === 0) return frames;
    frames.push(...page.map(sseFrame));
    after = page.at(-1)?.seq ?? after;
  }
}

function expectRight(client: Client, session: Session): void {
  // Exactly once, in order, with the same bytes.
  expect(client.journaled).toEqual(replayed(session));
  expect(client.ends.size).toBeGreaterThanOrEqual(4);
  expect(Object.fromEntries(client.ends)).toEqual(Object.fromEntries(client.closing));
}

describe('[J4] a reader that only applies patches ends with the journal’s text', () => {
  test('uncut, and its journaled frames are those of the replay, byte for byte', async () => {
    const { kit, runId } = await start(7);
    expectRight(await readWithCuts(kit.session, runId, []), kit.session);
  });

  test('cut after every frame of the stream', async () => {
    const { kit, runId } = await start(11);
    const { frames } = await readWithCuts(kit.session, runId, []);
    for (let cut = 1; cut < frames; cut += 1) {
      const again = await start(11);
      expectRight(await readWithCuts(again.kit.session, again.runId, [cut]), again.kit.session);
    }
  });

  test('read after the end, by ten readers at different positions', async () => {
    const { kit, runId } = await start(5);
    await readWithCuts(kit.session, runId, []);
    const all = replayed(kit.session);
    for (let after = 0; after < 10; after += 1) {
      const client = new Client();
      client.lastSeq = after;
      await readWithCuts(kit.session, runId, [], client);
      expect(client.journaled).toEqual(all.slice(after));
    }
  });
});

test('[H2] every stream of a run ends with its terminal event: completed, failed, cancelled', async () => {
  const scripts = { completed: '<response final="true">x</response>', failed: '' };
  for (const [end, text] of Object.entries(scripts)) {
    const kit = await sessionKit({ script: [text, text, text] });
    const run = await kit.session.message({ content: 'go', ifBusy: 'queue', tokens: false, idempotencyKey: null });
    const client = await readWithCuts(kit.session, run.runId, []);
    expect(client.journaled.at(-1)).toContain(`event: agent_${end}\n`);
  }
  const { kit, runId } = await start(3);
  const reading = readWithCuts(kit.session, runId, []);
  await tick();
  await kit.session.cancel('enough');
  expect((await reading).journaled.at(-1)).toContain('event: agent_cancelled\n');
});
