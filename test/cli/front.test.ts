/** The front of the local Worker passes requests as they come (H1), and waits for a Worker that is built (S10). */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { ClientRequest, IncomingMessage, RequestListener, Server } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Front } from '../../cli/system/front.ts';
import { freePort } from '../../cli/system/services.ts';
import { sendRaw } from '../support/raw-http.ts';

let folder: string;
let front: Front;
let port: number;
let worker: Server;
let answer: RequestListener;

const socketPath = (): string => join(folder, 'entry');

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cortex-front-'));
  answer = (_request, response) => response.end('served');
  worker = createServer((received, response) => answer(received, response));
  await once(worker.listen(socketPath()), 'listening');
  front = new Front();
  port = await freePort();
  await front.listen(port);
});

afterEach(() => {
  front.close();
  worker.closeAllConnections();
  worker.close();
  rmSync(folder, { recursive: true, force: true });
});

const play = (): void => front.play({ socketPath: socketPath() });

function send(
  method: string,
  path = '/',
): { readonly sent: ClientRequest; readonly answered: Promise<IncomingMessage> } {
  const sent = request({ host: '127.0.0.1', port, method, path, agent: false });
  const answered = once(sent, 'response').then(([response]) => response as IncomingMessage);
  answered.catch(() => undefined);
  return { sent, answered };
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response) text += String(chunk);
  return text;
}

const get = async (path = '/'): Promise<IncomingMessage> => {
  const { sent, answered } = send('GET', path);
  sent.end();
  return await answered;
};

/** Resolves with the next request that the Worker receives. */
async function nextRequest(): Promise<{ received: IncomingMessage; response: Parameters<RequestListener>[1] }> {
  return await new Promise((resolve) => {
    answer = (received, response) => resolve({ received, response });
  });
}

describe('[H1] bytes pass as they come', () => {
  beforeEach(play);

  test('the headers and each chunk of a stream, before it ends', async () => {
    const reached = nextRequest();
    const { sent, answered } = send('GET', '/events');
    sent.end();
    const { response } = await reached;
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    const stream = await answered;
    expect(stream.headers['content-type']).toBe('text/event-stream');
    for (const text of ['data: 1\n\n', 'data: 2\n\n']) {
      response.write(text);
      const [chunk] = (await once(stream, 'data')) as [Buffer];
      expect(chunk.toString()).toBe(text);
    }
    response.end();
    await once(stream, 'end');
  });

  test('each chunk of an upload, before it ends, and the answer before the upload ends', async () => {
    const reached = nextRequest();
    const { sent, answered } = send('POST');
    sent.write('first');
    const { received, response } = await reached;
    expect(String((await once(received, 'data'))[0])).toBe('first');
    sent.write('second');
    expect(String((await once(received, 'data'))[0])).toBe('second');
    response.end('enough');
    expect(await textOf(await answered)).toBe('enough');
    sent.end('rest');
  });

  test('status, duplicate headers, and an answer without a body', async () => {
    answer = (_received, response) => response.writeHead(304, { etag: '"x"', 'set-cookie': ['a=1', 'b=2'] }).end();
    const { statusCode, headers } = await get();
    expect({ statusCode, ...headers }).toMatchObject({ statusCode: 304, etag: '"x"', 'set-cookie': ['a=1', 'b=2'] });
  });

  test('a client that leaves ends the request of the Worker, also before an answer', async () => {
    const reached = nextRequest();
    const { sent } = send('GET');
    sent.on('error', () => undefined).end();
    const { response } = await reached;
    const left = once(response, 'close');
    sent.destroy();
    await left;
    expect(response.writableFinished).toBe(false);
  });

  test('a client that leaves in a stream ends it', async () => {
    const reached = nextRequest();
    const { sent, answered } = send('GET');
    sent.end();
    const { response } = await reached;
    response.writeHead(200).write('a');
    const stream = await answered;
    stream.on('error', () => undefined);
    const left = once(response, 'close');
    stream.destroy();
    await left;
  });

  test('an answer that the Worker cuts does not look complete', async () => {
    answer = (_received, response) => {
      response.writeHead(200).write('half');
      response.once('drain', () => undefined);
      setImmediate(() => response.destroy());
    };
    await expect(get().then(textOf)).rejects.toThrow('aborted');
  });
});

describe('[H1] the requests of one connection', () => {
  const line = (path: string): string => `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`;

  beforeEach(play);

  test('are sent one after the other', async () => {
    const socket = connect(port, '127.0.0.1');
    const first = nextRequest();
    socket.write(line('/a') + line('/b'));
    const { response } = await first;
    const next = nextRequest();
    send('GET', '/other').sent.end();
    const { received, response: other } = await next;
    expect(received.url).toBe('/other');
    other.end();
    const last = nextRequest();
    response.end();
    expect((await last).received.url).toBe('/b');
    socket.destroy();
  });

  test('are not sent after the client has left', async () => {
    const first = nextRequest();
    const socket = connect(port, '127.0.0.1');
    socket.write(line('/a') + line('/b'));
    const { response } = await first;
    const paths: (string | undefined)[] = [];
    answer = ({ url }, later) => {
      paths.push(url);
      later.end();
    };
    const left = once(response, 'close');
    socket.destroy();
    await left;
    await get('/other');
    expect(paths).toEqual(['/other']);
  });

  test('bytes that are not HTTP end an answer, and do not become a part of it', async () => {
    const reached = nextRequest();
    const socket = connect(port, '127.0.0.1');
    socket.write(line('/a'));
    const { response } = await reached;
    response.write('half');
    let text = String((await once(socket, 'data'))[0]);
    socket.on('data', (chunk) => (text += String(chunk))).on('error', () => undefined);
    socket.write('hello\r\n\r\n');
    await once(socket, 'close');
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
    expect(text).not.toContain('0\r\n\r\n');
  });
});

describe('[S10] while the Worker is built', () => {
  test('requests wait, and then are served', async () => {
    const { sent, answered } = send('POST');
    sent.end('x');
    let isAnswered = false;
    void answered.then(() => (isAnswered = true));
    // The front has the request when it accepts a second connection.
    const second = connect(port, '127.0.0.1');
    await once(second, 'connect');
    second.destroy();
    expect(isAnswered).toBe(false);
    play();
    expect(await textOf(await answered)).toBe('served');
    front.pause();
    front.pause();
    const later = send('GET');
    later.sent.end();
    play();
    play();
    expect(await textOf(await later.answered)).toBe('served');
  });

  test('a GET whose connection fails is sent again; a POST is not, and gets a problem document', async () => {
    play();
    const methods: string[] = [];
    answer = (received, response) => {
      methods.push(received.method ?? '');
      if (methods.filter((method) => method === received.method).length === 1) received.socket.destroy();
      else response.end('again');
    };
    expect(await textOf(await get())).toBe('again');
    const post = send('POST');
    post.sent.end('x');
    const refused = await post.answered;
    expect(refused.statusCode).toBe(500);
    expect(JSON.parse(await textOf(refused))).toMatchObject({ code: 'internal', status: 500 });
    expect(methods).toEqual(['GET', 'GET', 'POST']);
  });
});

describe('[H5] malformed requests reach nothing', () => {
  beforeEach(() => {
    play();
    answer = (_received, response) => response.end('reached');
  });

  test.each([
    ['a malformed Host', ['GET /health HTTP/1.1', 'Host: user@127.0.0.1', 'Connection: close']],
    ['bytes that are not HTTP', ['hello']],
    ['a body of two lengths', ['POST / HTTP/1.1', 'Host: a', 'Content-Length: 1', 'Content-Length: 2']],
    ['a length and chunks', ['POST / HTTP/1.1', 'Host: a', 'Content-Length: 1', 'Transfer-Encoding: chunked']],
    ['a header of 200 KB', ['GET / HTTP/1.1', 'Host: a', `X: ${'x'.repeat(200_000)}`]],
    ['a path of another host', ['GET http://evil.example/ HTTP/1.1', 'Host: a', 'Connection: close']],
  ])('%s: 400 with a problem document', async (_name, lines) => {
    const { status, head, body } = await sendRaw(port, lines);
    expect(status).toBe(400);
    expect(head).toContain('application/problem+json');
    expect(JSON.parse(body)).toMatchObject({ code: 'invalid_request' });
  });

  test('HTTP/1.0 without a Host is refused, with one it is served', async () => {
    expect((await sendRaw(port, ['GET / HTTP/1.0'])).status).toBe(400);
    expect((await sendRaw(port, ['GET / HTTP/1.0', 'Host: localhost'])).body).toBe('reached');
  });

  test('an upgrade is a request like any other', async () => {
    const lines = ['GET / HTTP/1.1', 'Host: a', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: x'];
    answer = (received, response) => response.end(`upgrade: ${received.headers.upgrade}`);
    await get();
    const socket = connect(port, '127.0.0.1');
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    expect(chunk.toString()).toMatch(/^HTTP\/1\.1 200[^]*/);
    socket.destroy();
  });
});
