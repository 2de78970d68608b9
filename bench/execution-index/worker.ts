/** Drives the shards of the directory with the outbox of sessions, at a fixed rate, and reads the index meanwhile. */
import { DurableObject } from 'cloudflare:workers';
import { shardOf } from '../../src/domain/directory.ts';
import type { DirectoryEntry } from '../../src/domain/directory.ts';
import type { ExecutionEntry } from '../../src/domain/execution.ts';
import type { DirectoryPosition } from '../../src/domain/list-page.ts';
import { directoryIndex, listExecutions } from '../../src/durable/directory.ts';
import type { Env } from '../../src/durable/env.ts';
import { platformClock } from '../../src/durable/platform.ts';
import { DirectoryOutbox } from '../../src/engine/session/directory-outbox.ts';

export { DirectoryObject } from '../../src/durable/objects/directory-object.ts';

interface Load {
  readonly owner: string;
  readonly perSecond: number;
  readonly seconds: number;
}

interface Driven {
  readonly runs: number;
  readonly failed: number;
  /** From the end of a run to the answer of its write, in ms. */
  readonly latencies: readonly number[];
  /** Writes without an answer at the end of each second. */
  readonly backlog: readonly number[];
}

interface BenchEnv extends Env {
  readonly WRITERS: DurableObjectNamespace<WriterObject>;
}

const TICK_MS = 20;

function entriesOf(id: string, now: number): { readonly session: DirectoryEntry; readonly run: ExecutionEntry } {
  const runId = `${id.replace('ses_', 'run_')}_1`;
  const names = { session_id: id, agent: 'assistant' };
  const times = { started_at: now - 100, ended_at: now };
  return {
    session: { ...names, user_id: null, title: 'Hello', status: 'idle', created_at: now, updated_at: now, cost: null },
    run: { ...names, ...times, execution_id: runId, run_id: runId, kind: 'chat', status: 'completed', error: null },
  };
}

/** The outbox of a session whose only run has ended; its notes are in memory. */
function outboxOf(env: Env, owner: string, id: string): DirectoryOutbox {
  const notes = new Map<string, unknown>();
  const { session, run } = entriesOf(id, platformClock.now());
  return new DirectoryOutbox({
    storage: {
      get: <T>(key: string) => notes.get(key) as T | undefined,
      put: (key, value) => void notes.set(key, value),
      delete: (key) => void notes.delete(key),
      list: <T>({ prefix }: { readonly prefix: string }) =>
        [...notes].filter(([key]) => key.startsWith(prefix)) as (readonly [string, T])[],
    },
    current: () => ({
      whose: { owner, session_id: id, incarnation: '' },
      entry: session,
      isNew: false,
      runs: (known) => ({
        entries: known === null || known.through === 0 ? [run] : [],
        listed: { through: 1, open: [] },
      }),
    }),
    index: (of, sessionId) => directoryIndex(env, of, sessionId),
    clock: platformClock,
  });
}

export class WriterObject extends DurableObject<BenchEnv> {
  /** Begins the writes at their times, whether or not earlier ones have been answered. */
  async drive({ owner, perSecond, seconds }: Load): Promise<Driven> {
    const latencies: number[] = [];
    const backlog: number[] = [];
    const writes: Promise<void>[] = [];
    let open = 0;
    let failed = 0;
    const write = async (): Promise<void> => {
      const id = `ses_${crypto.randomUUID().replaceAll('-', '')}`;
      const at = Date.now();
      open += 1;
      try {
        await outboxOf(this.env, owner, id).update();
      } catch {
        failed += 1;
      }
      open -= 1;
      latencies.push(Date.now() - at);
    };
    const startedAt = Date.now();
    while (Date.now() - startedAt < seconds * 1_000) {
      const due = Math.min(seconds, (Date.now() - startedAt) / 1_000) * perSecond;
      while (writes.length < due) writes.push(write());
      if (Date.now() - startedAt >= (backlog.length + 1) * 1_000) backlog.push(open);
      await scheduler.wait(TICK_MS);
    }
    backlog.push(open);
    await Promise.all(writes);
    return { runs: writes.length, failed, latencies, backlog };
  }
}

/** Every run of the namespace, page by page. */
async function countAll(env: Env, owner: string): Promise<{ listed: number; distinct: number; shards: number[] }> {
  const ids: string[] = [];
  const shards = new Map<string, number>();
  for (let before: DirectoryPosition | null = null; ;) {
    const { entries, next } = await listExecutions(env, owner, { limit: 500, before, status: null, kind: null });
    for (const { execution_id: id, session_id: session } of entries) {
      ids.push(id);
      const shard = shardOf(owner, session);
      shards.set(shard, (shards.get(shard) ?? 0) + 1);
    }
    if (next === null) break;
    before = next;
  }
  return { listed: ids.length, distinct: new Set(ids).size, shards: [...shards.values()] };
}

export default {
  async fetch(request, env): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const owner = searchParams.get('owner') ?? 'bench';
    if (pathname === '/drive') {
      const load = await request.json<Load & { readonly writers: number }>();
      const share = { ...load, perSecond: load.perSecond / load.writers };
      const writers = Array.from({ length: load.writers }, (_, writer) => env.WRITERS.getByName(String(writer)));
      return Response.json(await Promise.all(writers.map(async (writer) => await writer.drive(share))));
    }
    if (pathname === '/page') {
      const page = { limit: 50, before: null, status: null, kind: null };
      return Response.json((await listExecutions(env, owner, page)).entries.length);
    }
    if (pathname === '/count') return Response.json(await countAll(env, owner));
    return Response.json({ status: 'healthy' });
  },
} satisfies ExportedHandler<BenchEnv>;
