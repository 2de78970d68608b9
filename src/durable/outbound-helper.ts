/**
 * A helper invocation, as a session's object uses it: sends requests through an `OutboundHost` and ends what is aborted.
 */
import { messageOf } from '../domain/errors.ts';
import { HelperLost, HelperNotOpened } from '../executors/outbound/connection-pool.ts';
import type { OutboundHelper } from '../executors/outbound/connection-pool.ts';
import type { PlatformPlan } from '../domain/platform-plan.ts';
import type { HelperAnswer, OutboundConnections, OutboundHostRpc, Remote } from './env.ts';

const WITHOUT_BODY: ReadonlySet<number> = new Set([101, 204, 205, 304]);
const ENDED = Promise.resolve();

/** What the platform adds to a stub. */
type Stub<T> = T & Disposable;
type Connections = Remote<OutboundConnections>;

/** @param enforced the plan whose limits the helper enforces on itself; null: the platform does */
export function helperOf(host: OutboundHostRpc, enforced: PlatformPlan | null): OutboundHelper {
  const opening = host.open(enforced) as unknown as Stub<Promise<Stub<Connections>>>;
  const opened = Promise.resolve(opening);
  opened.catch(() => undefined);
  let last = 0;

  const send = async (id: number, url: string, init: RequestInit): Promise<HelperAnswer> => {
    // Not pipelined: if the helper ended before it has told that it is open, a request might have been sent all the same.
    const connections = await opened.catch((fault: unknown) => {
      throw new HelperNotOpened(`A helper could not be started: ${messageOf(fault)}`, { cause: fault });
    });
    init.signal?.throwIfAborted();
    const { method = 'GET', headers, body, redirect = 'follow' } = init;
    const request = {
      url,
      method,
      headers: [...new Headers(headers)],
      body: typeof body === 'string' || body instanceof Uint8Array ? body : null,
      redirect,
    };
    try {
      return await connections.send(id, request);
    } catch (fault) {
      throw new HelperLost(`The connection was lost: its helper ended (${messageOf(fault)})`, { cause: fault });
    }
  };
  const end = (id: number): void => void opened.then((connections) => connections.cancel(id)).catch(() => undefined);

  return {
    async send(url, init) {
      const signal = init.signal ?? null;
      signal?.throwIfAborted();
      const id = (last += 1);
      const cancelled = Promise.withResolvers<never>();
      cancelled.promise.catch(() => undefined);
      const stop = (): void => {
        cancelled.reject(signal?.reason);
        end(id);
      };
      signal?.addEventListener('abort', stop, { once: true });
      const settle = (): void => signal?.removeEventListener('abort', stop);
      let answer: HelperAnswer;
      try {
        answer = await Promise.race([send(id, url, init), cancelled.promise]);
      } catch (fault) {
        settle();
        throw fault;
      }
      if (answer.type === 'failed') {
        settle();
        throw Object.assign(new Error(answer.message), { name: answer.name });
      }
      const { status, statusText, headers } = answer;
      const head = { status, statusText, headers: new Headers(headers as [string, string][]) };
      if (answer.type === 'whole') {
        settle();
        return { response: new Response(WITHOUT_BODY.has(status) ? null : answer.body, head), ended: ENDED };
      }
      // Cancelling the stream alone reaches the server only with its next bytes.
      const { body, ended } = tracked(answer.body, { aborted: cancelled.promise, cancel: () => end(id), settle });
      return { response: new Response(body, head), ended };
    },
    close: () => {
      opening[Symbol.dispose]();
      void opened.then((connections) => connections[Symbol.dispose]()).catch(() => undefined);
    },
  };
}

/** The same stream, with a promise for its end. @param aborted rejects when the request is aborted */
function tracked(
  stream: ReadableStream<Uint8Array>,
  {
    aborted,
    cancel,
    settle,
  }: { readonly aborted: Promise<never>; readonly cancel: () => void; readonly settle: () => void },
): { readonly body: ReadableStream<Uint8Array>; readonly ended: Promise<void> } {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const reader = stream.getReader();
  const end = (): void => {
    settle();
    resolve();
  };
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      // Also while the body is not read.
      aborted.catch((fault: unknown) => {
        end();
        void reader.cancel(fault).catch(() => undefined);
        controller.error(fault);
      });
    },
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        end();
        controller.close();
      } catch (fault) {
        end();
        void reader.cancel(fault).catch(() => undefined);
        controller.error(fault);
      }
    },
    async cancel(reason) {
      end();
      cancel();
      await reader.cancel(reason);
    },
  });
  return { body, ended };
}
