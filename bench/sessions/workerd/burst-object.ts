/** Bursts of events through the session's own journal, broadcaster and stream: appended, synced and sent, one turn at a time. */
import { DurableObject } from 'cloudflare:workers';
import { durableSql } from '../../../src/durable/sql-storage.ts';
import { platformClock } from '../../../src/durable/platform.ts';
import type { SessionEvent } from '../../../src/domain/event.ts';
import { Broadcaster } from '../../../src/engine/session/broadcaster.ts';
import { Heartbeat } from '../../../src/http/heartbeat.ts';
import { eventStream, SSE_HEADERS } from '../../../src/http/sse.ts';
import { Journal } from '../../../src/journal/journal.ts';
import { runIdOf } from '../../../src/journal/run-id.ts';

const SESSION = `ses_${'b'.repeat(32)}`;

export class BurstObject extends DurableObject {
  /** `?turns=…&events=…`: number of turns and of events per turn, journaled and sent; then the stream ends. `?live=1`: not journaled. */
  override async fetch(request: Request): Promise<Response> {
    const { searchParams } = new URL(request.url);
    const [turns, events] = [Number(searchParams.get('turns')), Number(searchParams.get('events'))];
    const live = searchParams.get('live') === '1';
    const journal = new Journal(durableSql(this.ctx.storage));
    const at = platformClock.now();
    if (journal.record === null) {
      const record = { agent: 'bench', user_id: null, owner: null, kind: 'chat', metadata: {} } as const;
      journal.create({ session_id: SESSION, created_at: at, ...record });
    }
    const broadcaster = new Broadcaster(0, () => []);
    const runId = runIdOf({ session_id: SESSION }, 1);
    const after = journal.lastSeq;
    const source = {
      events: (cursor: number) => journal.page(cursor),
      openBlocks: () => [],
      listen: (listener: Parameters<Broadcaster['listen']>[0]) => broadcaster.listen(listener),
      hasEnded: () => false,
      isWaiting: () => false,
    };
    const body = eventStream(source, new Heartbeat(platformClock), { after, runId });
    const send = async (): Promise<void> => {
      for (let turn = 0; turn < turns; turn += 1) {
        const batch: SessionEvent[] = [];
        for (let n = 0; n < events; n += 1) {
          if (live) {
            const head = { seq: null, type: 'progress', session_id: SESSION, run_id: runId } as const;
            batch.push({
              ...head,
              iteration: 1,
              timestamp: at,
              action_id: `a${n}`,
              action_name: 'echo',
              data: { text: 'a result of an action' },
            });
          } else {
            batch.push(
              journal.append({
                type: 'action_completed',
                runId,
                iteration: 1,
                at,
                actionId: `a${n}`,
                actionName: 'echo',
                data: { output: { n, text: 'a result of an action' }, ms: 3, attempt: 1 },
              }),
            );
          }
        }
        await journal.sync();
        broadcaster.publish(batch);
        // The next turn of the event loop, so that the data is sent.
        await new Promise((resolve) => setTimeout(resolve, 0));
      }
      const usage = { prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0, model_calls: 0, estimated: false };
      journal.append({
        type: 'agent_completed',
        runId,
        iteration: 1,
        at,
        data: { response: '', iterations: 1, usage },
      });
      await journal.sync();
      broadcaster.publish([]);
      const last = source.events(journal.lastSeq - 1);
      broadcaster.publish(last);
    };
    this.ctx.waitUntil(send());
    return new Response(body, { headers: SSE_HEADERS });
  }
}
