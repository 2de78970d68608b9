/** Our Worker unchanged, together with the objects of the comparison. */
import { edge } from '../../../src/durable/edge.ts';
import type { Env } from '../../../src/durable/env.ts';
import type { BareObject } from './bare-object.ts';
import type { BurstObject } from './burst-object.ts';

export * from '../../../src/worker.ts';
export { BareListObject } from './bare-list-object.ts';
export { BareObject } from './bare-object.ts';
export { BurstObject } from './burst-object.ts';

interface BenchEnv extends Env {
  readonly BARE: DurableObjectNamespace<BareObject>;
  readonly BURST: DurableObjectNamespace<BurstObject>;
  readonly AGENT: DurableObjectNamespace;
}

/** `/bare/new`, `/bare/listed`, `/bare/{id}`, `/burst`, `/sdk/{name}/…`; all other paths are ours. */
export default {
  async fetch(request, env, context): Promise<Response> {
    const url = new URL(request.url);
    const [, kind, name = '', ...rest] = url.pathname.split('/');
    switch (kind) {
      case 'bare': {
        if (name !== 'new' && name !== 'listed') return await env.BARE.getByName(name).fetch(request);
        const record = { session_id: crypto.randomUUID(), created_at: Date.now(), ...(await request.json<object>()) };
        const { session_id: id } = record;
        const object = env.BARE.getByName(id);
        await (name === 'new'
          ? object.create(JSON.stringify(record))
          : object.createListed(id, JSON.stringify(record)));
        return Response.json(record, { status: 201 });
      }
      case 'burst':
        return await env.BURST.getByName(crypto.randomUUID()).fetch(request);
      case 'sdk': {
        const inner = new Request(new URL(`/agents/agent/${name}/${rest.join('/')}`, url), request);
        inner.headers.set('x-partykit-room', name);
        inner.headers.set('x-partykit-namespace', 'agent');
        return await env.AGENT.getByName(name).fetch(inner);
      }
      default:
        return (await edge.fetch?.(request, env, context)) ?? new Response(null, { status: 500 });
    }
  },
} satisfies ExportedHandler<BenchEnv>;
