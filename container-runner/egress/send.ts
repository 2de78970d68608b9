/**
 * Sends one HTTP request to verified addresses (X2).
 *
 * Owns connections. Does not own name resolution, redirects or the interpretation of answers.
 * Invariants:
 * 1. A connection goes to one of the given addresses only. The host name is sent to the server (`Host` and SNI) and is
 *    never resolved again.
 * 2. A connection is reused only for the same session, host and addresses.
 * 3. Addresses of this machine and of its own IPv6 networks are always rejected.
 */
import http from 'node:http';
import https from 'node:https';
import { isIP, BlockList, type LookupFunction } from 'node:net';
import os from 'node:os';
import { type Readable, Transform } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';

import { limits } from '../limits.ts';

export interface Outgoing {
  /** Sessions do not share connections. */
  readonly session: string;
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** Allowed addresses. */
  readonly addresses: readonly string[];
  /** Maximum size of the body after decompression; the rest is dropped. */
  readonly maxBytes: number;
  /** Aborts the request and the body. */
  readonly signal: AbortSignal;
}

export interface Incoming {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Readable;
}

/** The request got no answer. */
export class SendError extends Error {
  override readonly name = 'SendError';
  /** Whether no byte of the request was sent. */
  readonly beforeDispatch: boolean;

  constructor(message: string, beforeDispatch: boolean, cause?: unknown) {
    super(message, { cause });
    this.beforeDispatch = beforeDispatch;
  }
}

/** The address belongs to this machine or its network. */
export class BlockedAddressError extends Error {
  override readonly name = 'BlockedAddressError';
}

export interface Sender {
  /** @throws SendError, BlockedAddressError */
  send(outgoing: Outgoing): Promise<Incoming>;
  /** Closes all connections. */
  close(): void;
}

export interface SenderOptions {
  /** CIDR addresses of this machine's interfaces (`fd00::1/64`). */
  readonly interfaces?: () => readonly string[];
  /** Additional trusted certificates. */
  readonly ca?: string;
}

interface Pooled {
  readonly pool?: string;
}

/** Hop-by-hop headers, and headers of the decoded transfer and content encodings. */
const DROPPED =
  /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-encoding|content-length)$/i;
/** Minimum prefix length: an interface of a tunnel may have a network as large as half of the address space. */
const WIDEST_NETWORK = 48;
const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

export function createSender({ interfaces = ownInterfaces, ca }: SenderOptions = {}): Sender {
  const kept = {
    keepAlive: true,
    timeout: limits.egressIdleMs,
    maxFreeSockets: limits.egressIdleSockets,
  };
  class PlainAgent extends http.Agent {
    override getName(options?: Parameters<http.Agent['getName']>[0]): string {
      return `${super.getName(options)}:${(options as Pooled | undefined)?.pool ?? ''}`;
    }
  }
  class SecureAgent extends https.Agent {
    override getName(options?: Parameters<https.Agent['getName']>[0]): string {
      return `${super.getName(options)}:${(options as Pooled | undefined)?.pool ?? ''}`;
    }
  }
  const agents = { 'http:': new PlainAgent(kept), 'https:': new SecureAgent(kept) };

  return {
    async send(outgoing) {
      const { url, session, addresses } = outgoing;
      const refused = findOwnAddress(addresses, interfaces());
      if (refused !== null) {
        throw new BlockedAddressError(`its address ${refused} is an address of the runner's own machine or network`);
      }
      const agent = url.protocol === 'https:' ? agents['https:'] : agents['http:'];
      const answer = await ask(outgoing, {
        lookup: only(addresses),
        // a request that must not be sent twice gets a new connection, because the server may be closing an idle one
        ...(REPEATABLE.has(outgoing.method) ? { agent } : { agent: false }),
        pool: JSON.stringify([session, ...addresses]),
        ...(ca === undefined ? {} : { ca }),
      });
      return { status: answer.statusCode ?? 0, headers: headersOf(answer), body: bodyOf(answer, outgoing) };
    },
    close() {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

function ask(outgoing: Outgoing, options: https.RequestOptions & Pooled): Promise<http.IncomingMessage> {
  const { url, method, headers, body, signal } = outgoing;
  return new Promise((resolve, reject) => {
    let connected = false;
    const request = (url.protocol === 'https:' ? https : http).request(url, {
      ...options,
      method,
      headers: {
        'accept-encoding': 'gzip, br',
        ...headers,
        ...(body === null ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
      },
      signal,
    });
    const fail = (fault: Error): void =>
      reject(signal.aborted ? signal.reason : new SendError(reasonOf(fault), !connected, fault));
    request.once('socket', (socket) => {
      if (!socket.connecting) {
        connected = true;
        return;
      }
      socket.once(url.protocol === 'https:' ? 'secureConnect' : 'connect', () => {
        connected = true;
      });
    });
    request.once('response', resolve);
    // the server switches to another protocol
    request.once('upgrade', (_, socket) => {
      socket.destroy();
      fail(new Error('the server changed the protocol'));
    });
    request.on('error', fail);
    request.end(body ?? undefined);
  });
}

/** A lookup function that always returns the verified addresses. */
function only(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, options, callback) => {
    const [first] = all;
    if (first === undefined) callback(new Error('no address'), '', 0);
    else if (options.all === true) callback(null, all);
    else callback(null, first.address, first.family);
  };
}

function headersOf({ rawHeaders }: http.IncomingMessage): [string, string][] {
  const headers: [string, string][] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = rawHeaders.slice(at, at + 2);
    if (!DROPPED.test(name)) headers.push([name, value]);
  }
  return headers;
}

/** The body without transfer and content encoding, truncated at the limit. */
function bodyOf(answer: http.IncomingMessage, { maxBytes, signal }: Outgoing): Readable {
  const decoders = (answer.headers['content-encoding'] ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim());
  let left = maxBytes;
  let full = false;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const kept = chunk.length > left ? chunk.subarray(0, left) : chunk;
      left -= kept.length;
      if (kept.length > 0) this.push(kept);
      if (kept.length < chunk.length) {
        full = true;
        this.push(null);
        stop();
        return;
      }
      done();
    },
  });
  const stages: Readable[] = [answer];
  // at most one encoding: stacked encodings are a decompression bomb
  const [encoding = ''] = decoders.length === 1 ? decoders : [];
  const decoder = DECODERS[encoding]?.();
  const end = (fault?: Error | null): void => {
    if (fault != null && !full) counted.destroy(fault);
  };
  function stop(): void {
    for (const stage of stages) stage.destroy();
  }
  if (decoder === undefined) answer.pipe(counted);
  else {
    stages.push(decoder);
    answer.pipe(decoder).pipe(counted);
    decoder.once('error', end);
  }
  answer.once('error', end);
  answer.once('aborted', () => end(new Error('the server closed the connection')));
  counted.once('close', stop);
  const onAbort = (): void => void counted.destroy(signal.reason instanceof Error ? signal.reason : undefined);
  signal.addEventListener('abort', onAbort, { once: true });
  counted.once('close', () => signal.removeEventListener('abort', onAbort));
  return counted;
}

/** The answer to HEAD may announce a compressed body, but has none. */
const LENIENT = { finishFlush: constants.Z_SYNC_FLUSH };
const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip(LENIENT),
  'x-gzip': () => createGunzip(LENIENT),
  deflate: () => createInflate(LENIENT),
  br: () => createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH }),
};

/** The first address that belongs to this machine or to one of its IPv6 networks, or null. */
function findOwnAddress(addresses: readonly string[], interfaces: readonly string[]): string | null {
  const own = new BlockList();
  for (const cidr of interfaces) {
    const [address = '', bits = ''] = cidr.split('/');
    if (isIP(address) === 6) own.addSubnet(address, Math.max(Number(bits), WIDEST_NETWORK), 'ipv6');
    else if (isIP(address) === 4) own.addAddress(address, 'ipv4');
  }
  return addresses.find((address) => own.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')) ?? null;
}

function ownInterfaces(): string[] {
  return Object.values(os.networkInterfaces()).flatMap((list) =>
    (list ?? []).flatMap(({ cidr }) => (cidr === null ? [] : [cidr])),
  );
}

function reasonOf(fault: Error): string {
  // an AggregateError has one error per address
  const inner = fault instanceof AggregateError ? (fault.errors[0] as unknown) : fault;
  return inner instanceof Error && inner.message !== '' ? inner.message : fault.message || 'the connection failed';
}
