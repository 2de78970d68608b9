import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { readText } from '../../src/http/body.ts';
import { readJson } from '../../src/http/body.ts';
import { forwardBody } from '../../src/http/forward-body.ts';

const MOST = limits.messageBodyBytes;
const PIECE = 65_536;

interface Sent {
  readonly request: Request;
  /** Pieces that were read. */
  pulled: number;
}

/** A request whose body is made while it is read. */
function sent(bytes: number, headers: Record<string, string> = {}, failAfter = Infinity): Sent {
  const made: { request: Request | null; pulled: number } = { request: null, pulled: 0 };
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const left = bytes - made.pulled * PIECE;
        if (left <= 0) return controller.close();
        made.pulled += 1;
        if (made.pulled > failAfter) return controller.error(new Error('the client has gone'));
        return controller.enqueue(new Uint8Array(Math.min(PIECE, left)).fill(0x61));
      },
    },
    { highWaterMark: 0 },
  );
  const init = { method: 'POST', headers, body, duplex: 'half' } as const;
  made.request = new Request('http://x/message', init);
  return made as Sent;
}

const echo = async (request: Request): Promise<Response> => {
  const text = await readText(request, MOST);
  return new Response(String(text.length));
};

describe('[H8] [C2] a body is forwarded as bytes', () => {
  test.each([0, 1, limits.largeBodyBytes, limits.largeBodyBytes + 1, 5_000_000, MOST])('%i bytes', async (bytes) => {
    const response = await forwardBody(sent(bytes).request, MOST, echo);
    expect(await response.text()).toBe(String(bytes));
  });

  test.each([
    ['without a length', {}],
    ['with its length', { 'content-length': `${MOST + 1}` }],
    ['with a smaller length', { 'content-length': '5' }],
  ])('one byte above the limit is refused, %s', async (_title, headers) => {
    const refused = forwardBody(sent(MOST + 1, headers).request, MOST, echo);
    await expect(refused).rejects.toMatchObject({ code: 'body_too_large', details: { limit_bytes: MOST } });
  });

  test('a stated length far above the limit is refused before anything is read', async () => {
    const { request, pulled } = sent(10, { 'content-length': `${MOST + limits.bodyDrainBytes + 1}` });
    await expect(forwardBody(request, MOST, echo)).rejects.toMatchObject({ code: 'body_too_large' });
    expect(pulled).toBe(0);
  });

  test('no more than a part of the rest is read beyond the limit', async () => {
    const endless = sent(Infinity);
    await expect(forwardBody(endless.request, MOST, echo)).rejects.toMatchObject({ code: 'body_too_large' });
    expect(endless.pulled * PIECE).toBeLessThanOrEqual(MOST + limits.bodyDrainBytes + 2 * PIECE);
  });

  test('bytes that are not UTF-8 arrive unchanged', async () => {
    const bytes = Uint8Array.of(0xff, 0xfe, 0x00, 0xc3);
    const request = new Request('http://x/message', { method: 'POST', body: bytes });
    const response = await forwardBody(request, MOST, async (got) => new Response(await got.arrayBuffer()));
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes);
  });

  test('it is sent as fast as it is taken: nothing piles up', async () => {
    const large = sent(MOST);
    let taken = 0;
    let most = 0;
    await forwardBody(large.request, MOST, async (request) => {
      for await (const chunk of request.body as ReadableStream<Uint8Array>) {
        taken += chunk.length;
        await new Promise((resolve) => setImmediate(resolve));
        most = Math.max(most, large.pulled * PIECE - taken);
      }
      return new Response('');
    });
    expect(taken).toBe(MOST);
    expect(most).toBeLessThanOrEqual(4 * PIECE);
  });

  test('after an early answer, the rest is read and discarded, and the answer counts', async () => {
    const large = sent(MOST);
    const response = await forwardBody(large.request, MOST, async () => new Response('no', { status: 404 }));
    expect(response.status).toBe(404);
    expect(large.pulled * PIECE).toBe(MOST);
  });

  test('a body that is cut does not look complete, and is no fault of the system', async () => {
    const early = { code: 'invalid_request', message: 'The body ended early' };
    for (const pieces of [0, 40]) {
      const cut = sent(5_000_000, {}, pieces);
      await expect(forwardBody(cut.request, MOST, echo)).rejects.toMatchObject(early);
      await expect(readJson(sent(5_000_000, {}, pieces).request, MOST)).rejects.toMatchObject(early);
    }
  });
});
