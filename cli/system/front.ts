/**
 * The only public listener of the local Worker: checks each request (request-guard.ts) and passes it to workerd, which listens
 * for this process alone (private-workerd.ts).
 *
 * Owns the public port and the requests that wait while the Worker is built. Does not own the Worker.
 *
 * Invariants:
 * 1. Bytes pass in both directions as they come; nothing is collected.
 * 2. When one side ends early, the other side ends at once, and an incomplete answer does not look complete.
 * 3. A request with an effect is sent once. A `GET` or `HEAD` whose connection fails before its answer is sent again.
 * 4. The requests of one connection are sent one after the other (RFC 9112, 9.3.2). Those behind the first one are not sent
 *    after their client has left.
 */
import { createServer, request as connect, STATUS_CODES } from 'node:http';
import type { ClientRequest, IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { EngineError } from '../../src/domain/errors.ts';
import { toProblem } from '../../src/http/problem.ts';
import { guardAnswer, guardRequest } from './request-guard.ts';
import type { PassedRequest } from './request-guard.ts';
import type { Upstream } from './private-workerd.ts';

/** As workerd's own limit. */
const MAX_HEADER_BYTES = 128 * 1_024;
/** For the headers of a request: without `requestTimeout`, Node has no limit. */
const HEADERS_MS = 60_000;
/** Pauses before a `GET` or `HEAD` is sent again. */
const RETRY_MS = [0, 250] as const;

export class Front {
  readonly #server: Server;
  #upstream = Promise.withResolvers<Upstream>();
  #isOpen = false;
  /** Resolves when the last request of a connection has ended. */
  readonly #ended = new WeakMap<Socket, Promise<void>>();
  /** The response of a connection that is written now, or was the last one. */
  readonly #current = new WeakMap<Socket, ServerResponse>();

  constructor() {
    this.#server = createServer(
      // Uploads may take long. The guard judges the Host, so that its answer is a problem document.
      { requireHostHeader: false, requestTimeout: 0, headersTimeout: HEADERS_MS, maxHeaderSize: MAX_HEADER_BYTES },
      (request, response) => void this.#inTurn(request, response),
    );
    this.#server.on('clientError', (fault: NodeJS.ErrnoException, socket: Socket) => {
      const current = this.#current.get(socket);
      const isAnswering = current !== undefined && current.headersSent && !current.writableFinished;
      // What follows would be read as a part of the answer.
      if (isAnswering) socket.destroy();
      else refuseUnreadable(fault, socket);
    });
  }

  /** @throws Error if the port is in use */
  async listen(port: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once('error', reject).listen(port, '127.0.0.1', resolve);
    await promise;
  }

  /** New requests wait until the Worker serves again. */
  pause(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#upstream = Promise.withResolvers();
  }

  play(upstream: Upstream): void {
    if (this.#isOpen) this.pause();
    this.#isOpen = true;
    this.#upstream.resolve(upstream);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** Node emits all requests of a connection as they come, and `close` only of the response that is written. */
  async #inTurn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = request;
    const before = this.#ended.get(socket);
    this.#ended.set(socket, new Promise((resolve) => response.once('close', resolve)));
    await before;
    if (socket.destroyed) return;
    this.#current.set(socket, response);
    await this.#pass(request, response);
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let passed: PassedRequest;
    try {
      passed = guardRequest({
        target: request.url ?? '',
        rawHeaders: request.rawHeaders,
        peer: request.socket.remoteAddress ?? '',
      });
    } catch (fault) {
      return refuse(response, fault);
    }
    const isSafe = request.method === 'GET' || request.method === 'HEAD';
    for (let attempt = 0; ; attempt += 1) {
      const upstream = await this.#upstream.promise;
      if (response.destroyed) return undefined;
      if (await exchange(request, response, passed, upstream)) return undefined;
      const pauseMs = isSafe ? RETRY_MS[attempt] : undefined;
      if (pauseMs === undefined) {
        const detail = 'The Worker restarted while it had this request; it may have had its effect';
        return refuse(response, new EngineError('internal', detail));
      }
      await delay(pauseMs);
    }
  }
}

/** @returns whether the request has ended; otherwise its connection failed before an answer */
async function exchange(
  request: IncomingMessage,
  response: ServerResponse,
  { path, headers }: PassedRequest,
  upstream: Upstream,
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const sent = connect({
    ...upstream,
    method: request.method ?? 'GET',
    path,
    headers: headers as never,
    setDefaultHeaders: false,
    agent: false,
    maxHeaderSize: MAX_HEADER_BYTES,
  });
  const left = (): void => void sent.destroy();
  response.once('close', left);
  sent.on('error', () => {
    request.unpipe(sent);
    response.off('close', left);
    if (response.headersSent) response.destroy();
    resolve(response.destroyed || response.headersSent);
  });
  sent.on('response', (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.statusMessage, guardAnswer(answer.rawHeaders));
    // The first byte of a stream may come much later than its headers.
    response.flushHeaders();
    answer.on('error', () => response.destroy());
    answer.pipe(response);
    answer.once('end', () => finish(request, sent));
    resolve(true);
  });
  request.pipe(sent);
  return await promise;
}

/** An answer may come before the whole request: the rest of it is not for the Worker. */
function finish(request: IncomingMessage, sent: ClientRequest): void {
  if (request.complete) return;
  request.unpipe(sent);
  request.resume();
}

function refuse(response: ServerResponse, fault: unknown): void {
  const { status, headers, body } = documentOf(fault);
  response.writeHead(status, headers).end(body);
}

/** Bytes that are not HTTP. */
function refuseUnreadable(fault: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || fault.code === 'ECONNRESET') return void socket.destroy();
  const tooLong = fault.code === 'HPE_HEADER_OVERFLOW';
  const detail = tooLong ? `The headers exceed ${MAX_HEADER_BYTES} bytes` : 'The request is not HTTP/1.1';
  const { status, headers, body } = documentOf(new EngineError('invalid_request', detail));
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('\r\n')}\r\n\r\n${body}`);
  return undefined;
}

function documentOf(fault: unknown): { status: number; headers: Record<string, string>; body: string } {
  const problem = toProblem(fault);
  const body = `${JSON.stringify(problem)}\n`;
  const headers = {
    'content-type': 'application/problem+json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    'cache-control': 'no-store',
    // The body of a refused request is not read.
    connection: 'close',
  };
  return { status: problem.status, headers, body };
}
