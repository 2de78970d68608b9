/** The bare objects of `npm run bench:cost`. */
import type { BareObject } from '../../sessions/workerd/bare-object.ts';
import type { ExecutorObject } from './executor-object.ts';

export { BareObject } from '../../sessions/workerd/bare-object.ts';
export { ExecutorObject } from './executor-object.ts';

interface BenchEnv {
  readonly BARE: DurableObjectNamespace<BareObject>;
  readonly EXECUTOR: DurableObjectNamespace<ExecutorObject>;
}

/** `/bare/new`, `/bare/{id}`, `/execute`. */
export default {
  async fetch(request, env): Promise<Response> {
    const [, kind, name = ''] = new URL(request.url).pathname.split('/');
    if (kind === 'execute') return await env.EXECUTOR.getByName(crypto.randomUUID()).fetch(request);
    if (kind !== 'bare') return Response.json({ status: 'ok' });
    if (name !== 'new') return await env.BARE.getByName(name).fetch(request);
    const record = { session_id: crypto.randomUUID(), ...(await request.json<object>()) };
    await env.BARE.getByName(record.session_id).create(JSON.stringify(record));
    return Response.json(record, { status: 201 });
  },
} satisfies ExportedHandler<BenchEnv>;
