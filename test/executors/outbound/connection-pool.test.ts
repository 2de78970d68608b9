/** Which connection a request uses, with a `fetch` and helpers that answer when the test says so (Z3). */
import { expect, test } from 'vitest';
import { EngineError } from '../../../src/domain/errors.ts';
import { limits } from '../../../src/domain/limits.ts';
import { OutboundError } from '../../../src/domain/outbound-error.ts';
import { ConnectionPool, HelperLost, HelperNotOpened } from '../../../src/executors/outbound/connection-pool.ts';
import type { OutboundHelper } from '../../../src/executors/outbound/connection-pool.ts';
import { PlatformLimits } from '../../../src/executors/outbound/platform-limits.ts';
import { Subrequests } from '../../../src/executors/outbound/subrequests.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';

interface Held {
  readonly url: string;
  /** Null: direct. */
  readonly helper: number | null;
  answer(): void;
  fail(fault: Error): void;
}

/** Whether a helper is open, by number. */
interface World {
  readonly pool: ConnectionPool;
  readonly clock: VirtualClock;
  /** Requests that wait for their headers. */
  readonly held: Held[];
  readonly open: boolean[];
  readonly tool: (url: string, init?: RequestInit) => Promise<Response>;
  readonly service: (url: string, init?: RequestInit) => Promise<Response>;
}

function world(options: { readonly fails?: () => boolean; readonly ended?: Promise<void> } = {}): World {
  const clock = new VirtualClock();
  const held: Held[] = [];
  const open: boolean[] = [];
  const hold = (url: string, helper: number | null): Promise<Response> => {
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const entry: Held = {
      url,
      helper,
      answer: () => {
        held.splice(held.indexOf(entry), 1);
        resolve(new Response(url));
      },
      fail: (fault) => {
        held.splice(held.indexOf(entry), 1);
        reject(fault);
      },
    };
    held.push(entry);
    return promise;
  };
  const openHelper = (): OutboundHelper => {
    const number = open.push(true) - 1;
    return {
      async send(url) {
        if (options.fails?.() === true) throw new HelperNotOpened('too many invocations');
        return { response: await hold(url, number), ended: options.ended ?? Promise.resolve() };
      },
      close: () => {
        open[number] = false;
      },
    };
  };
  const pool = new ConnectionPool({
    direct: (url) => hold(url, null),
    openHelper,
    subrequests: new Subrequests('paid'),
    clock,
  });
  return { pool, clock, held, open, tool: pool.fetcher('tool'), service: pool.fetcher('service') };
}

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
};
const many = (count: number, send: (url: string) => Promise<Response>): Promise<Response>[] =>
  Array.from({ length: count }, (_, at) => send(`http://x/${at}`));
const directOf = ({ held }: World): number => held.filter(({ helper }) => helper === null).length;

test('[Z3] a request is direct while a direct connection is free', async () => {
  const here = world();
  const first = many(limits.directToolConnections, here.tool);
  expect([directOf(here), here.open]).toEqual([limits.directToolConnections, []]);
  here.held[0]?.answer();
  await first[0];
  await settle();
  void here.tool('http://x/next');
  expect([directOf(here), here.open]).toEqual([limits.directToolConnections, []]);
});

test('[Z3] tools leave direct connections for the model, which also uses helpers when none is left', async () => {
  const here = world();
  void many(20, here.tool);
  await settle();
  expect(directOf(here)).toBe(limits.directToolConnections);
  void many(2, here.service);
  expect(directOf(here)).toBe(limits.platformConnections);
  void here.service('http://model/');
  await settle();
  expect(here.held.at(-1)).toMatchObject({ url: 'http://model/', helper: 2 });
});

test('[Z3] each helper has at most six waiting requests, and the number of helpers is limited', async () => {
  const here = world();
  void many(500, here.tool);
  await settle();
  const perHelper = here.open.map((_, number) => here.held.filter(({ helper }) => helper === number).length);
  expect(perHelper).toEqual(Array.from({ length: limits.outboundHelpers }, () => limits.platformConnections));
});

test('[Z3] what finds no place waits in order; an aborted request leaves the queue and is never sent', async () => {
  const here = world();
  const places = limits.directToolConnections + limits.outboundHelpers * limits.platformConnections;
  void many(places, here.tool);
  await settle();
  const abort = new AbortController();
  const aborted = here.tool('http://x/aborted', { signal: abort.signal });
  void here.tool('http://x/second');
  void here.tool('http://x/third');
  await settle();
  abort.abort(new Error('cancelled'));
  await expect(aborted).rejects.toThrow('cancelled');
  here.held.at(-1)?.answer();
  await settle();
  expect(here.held.at(-1)?.url).toBe('http://x/second');
  expect(here.held.map(({ url }) => url)).not.toContain('http://x/aborted');
  expect(here.held).toHaveLength(places);
});

test('[Z3] a helper that ends fails its own request, which is not sent again, and gets no further ones', async () => {
  const here = world();
  const requests = many(limits.directToolConnections + 1, here.tool);
  await settle();
  here.held.at(-1)?.fail(new HelperLost('its helper ended'));
  await expect(requests.at(-1)).rejects.toThrow('its helper ended');
  expect(here.open).toEqual([false]);
  expect(here.held).toHaveLength(limits.directToolConnections);
  void here.tool('http://x/next');
  await settle();
  expect(here.held.at(-1)?.helper).toBe(1);
});

test('[Z3] if no helper can be started, requests wait for a direct connection', async () => {
  const here = world({ fails: () => true });
  void many(limits.directToolConnections + 2, here.tool);
  await settle();
  expect([here.held.length, here.open.includes(true)]).toEqual([limits.directToolConnections, false]);
  here.held[0]?.answer();
  await settle();
  expect([here.held.at(-1)?.url, here.held.at(-1)?.helper]).toEqual([`http://x/${limits.directToolConnections}`, null]);
});

test('[Z3] an idle helper is closed, but not while a body is read', async () => {
  const body = Promise.withResolvers<void>();
  const here = world({ ended: body.promise });
  const requests = many(limits.directToolConnections + 1, here.tool);
  await settle();
  here.held.at(-1)?.answer();
  await requests.at(-1);
  here.clock.advance(limits.outboundHelperIdleMs * 2);
  expect(here.open).toEqual([true]);
  body.resolve();
  await settle();
  here.clock.advance(limits.outboundHelperIdleMs - 1);
  expect(here.open).toEqual([true]);
  here.clock.advance(1);
  expect(here.open).toEqual([false]);
});

test('[Z3] a request with a stream as its body is direct', async () => {
  const here = world();
  void many(limits.directToolConnections, here.tool);
  void here.tool('http://x/upload', { method: 'POST', body: new Blob(['text']).stream() });
  await settle();
  expect(here.open).toEqual([]);
  here.held[0]?.answer();
  await settle();
  expect(here.held.at(-1)).toMatchObject({ url: 'http://x/upload', helper: null });
});

test("[Z3] the platform's own refusal of a request is platform_limit, and says that nothing was sent", async () => {
  const direct = (): Promise<Response> =>
    Promise.reject(new Error('Too many subrequests by single Worker invocation.'));
  const subrequests = new Subrequests('paid');
  const pool = new ConnectionPool({ direct, openHelper: null, subrequests, clock: new VirtualClock() });
  const ofTool = await pool
    .fetcher('tool')('http://x/')
    .catch((fault: unknown) => fault);
  expect(ofTool).toBeInstanceOf(OutboundError);
  expect(ofTool).toMatchObject({ code: 'platform_limit', beforeDispatch: true, retryable: false });
  const ofModel = await pool
    .fetcher('service')('http://x/')
    .catch((fault: unknown) => fault);
  expect(ofModel).toBeInstanceOf(EngineError);
  expect(ofModel).toMatchObject({ code: 'platform_limit', details: { plan: 'paid', limit: 10_000 } });
});

test('[Z3] enforced limits: the seventh request waits for the headers of another; an aborted one is not sent', async () => {
  const answers: (() => void)[] = [];
  const enforced = new PlatformLimits('free', async () => {
    await new Promise<void>((resolve) => answers.push(resolve));
    return new Response('');
  });
  const abort = new AbortController();
  void many(6, enforced.fetch);
  const seventh = enforced.fetch('http://x/seventh', { signal: abort.signal });
  const eighth = enforced.fetch('http://x/eighth');
  expect(answers).toHaveLength(6);
  abort.abort(new Error('cancelled'));
  await expect(seventh).rejects.toThrow('cancelled');
  answers[0]?.();
  await settle();
  expect(answers).toHaveLength(7);
  answers[6]?.();
  await eighth;
  for (const answer of answers) answer();
  await settle();
  const further = many(limits.platformFreeSubrequests - 8, enforced.fetch);
  await settle();
  expect(answers).toHaveLength(13);
  await expect(enforced.fetch('http://x/')).rejects.toThrow('Too many subrequests');
  expect(further).toHaveLength(42);
  enforced.topUp();
  void enforced.fetch('http://x/');
});
