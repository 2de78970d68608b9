/**
 * Decides about a request before the local platform (Miniflare) sees it: what it means to Miniflare must be what it means to
 * the Worker.
 *
 * Invariants:
 * 1. No header of a client is an instruction to Miniflare.
 * 2. No path of Miniflare's own routes passes, in any spelling.
 * 3. The path that passes is normalised, so that every later reader parses it alike.
 */
import { EngineError } from '../../src/domain/errors.ts';
import { nameOfHost } from '../../src/http/host.ts';

export interface ReceivedRequest {
  /** The request target as it was sent. */
  readonly target: string;
  /** Names and values, in turn. */
  readonly rawHeaders: readonly string[];
  /** The address of the client. */
  readonly peer: string;
}

export interface PassedRequest {
  readonly path: string;
  /** Names and values, in turn. */
  readonly headers: string[];
}

/**
 * `MF-*` replace the URL, the `Host`, the route and `cf`. `CF-*` are written by Cloudflare; the address of the client is
 * set here, except that a tunnel names the one that it forwards for. The rest belongs to one connection (RFC 9110, 7.6.1).
 */
const DROPPED =
  /^(mf-.*|x-mf-.*|cf-(?!connecting-ip$).*|cdn-loop|connection|keep-alive|proxy-.*|te|trailer|upgrade|expect|http2-settings)$/i;
/** The same of answers: Miniflare's errors carry stacks. */
const DROPPED_ANSWERS = /^(mf-.*|x-mf-.*|connection|keep-alive|proxy-connection|transfer-encoding|upgrade)$/i;
/** Objects of R2, triggers of handlers, tables of objects, images and videos. */
const RESERVED: ReadonlySet<string> = new Set(['cdn-cgi', '__cf_local']);
/** A path that is still encoded after as many rounds is refused. */
const MOST_DECODINGS = 8;

/** @throws EngineError `invalid_request` for a malformed target or `Host`; `not_found` for a path of the local platform */
export function guardRequest({ target, rawHeaders, peer }: ReceivedRequest): PassedRequest {
  const pairs = pairsOf(rawHeaders);
  const hosts = pairs.filter(([name]) => name.toLowerCase() === 'host').map(([, value]) => value);
  const [host = ''] = hosts;
  if (hosts.length !== 1 || nameOfHost(host) === null) {
    const found =
      hosts.length === 1 ? `"${host.slice(0, 200)}" is not a host with an optional port` : `found ${hosts.length}`;
    throw new EngineError('invalid_request', `A request has one valid Host header: ${found}`);
  }
  const url = urlOf(target, host);
  if (url === null) {
    throw new EngineError('invalid_request', `"${target.slice(0, 200)}" is neither a path nor an address of ${host}`);
  }
  if (isReserved(url.pathname)) {
    throw new EngineError('not_found', `No route ${url.pathname.slice(0, 200)}: it belongs to the local platform`);
  }
  const kept = pairs.filter(([name]) => !DROPPED.test(name));
  const isTunnelled = kept.some(([name]) => name.toLowerCase() === 'cf-connecting-ip');
  return {
    path: `${url.pathname}${url.search}`,
    headers: [...kept.flat(), ...(isTunnelled ? [] : ['CF-Connecting-IP', peer])],
  };
}

/** @returns names and values, in turn */
export function guardAnswer(rawHeaders: readonly string[]): string[] {
  return pairsOf(rawHeaders)
    .filter(([name]) => !DROPPED_ANSWERS.test(name))
    .flat();
}

function pairsOf(raw: readonly string[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) pairs.push([raw[at] ?? '', raw[at + 1] ?? '']);
  return pairs;
}

/** A target is a path, or the whole address (RFC 9112, 3.2): then it must name the host of the header. */
function urlOf(target: string, host: string): URL | null {
  const origin = `http://${host}`;
  if (target.startsWith('/')) return URL.parse(`${origin}${target}`);
  const url = URL.parse(target);
  const isOwn = url?.host === new URL(origin).host && url.username === '' && url.password === '';
  return isOwn && /^https?:$/.test(url.protocol) ? url : null;
}

/** Whether the path is one of Miniflare's own, decoded any number of times. */
function isReserved(pathname: string): boolean {
  let path = pathname.toLowerCase();
  for (let round = 0; round < MOST_DECODINGS; round += 1) {
    if (RESERVED.has(firstSegment(path))) return true;
    const decoded = path.replaceAll(/%([0-7][0-9a-f])/g, (_all, hex: string) => String.fromCharCode(parseInt(hex, 16)));
    if (decoded === path) return false;
    path = decoded.toLowerCase();
  }
  return true;
}

/** As a URL parser reads it: without tabs and line feeds, empty and dot segments. */
function firstSegment(path: string): string {
  const segments: string[] = [];
  for (const segment of path.replaceAll(/[\t\n\r]/g, '').split(/[/\\?#]+/)) {
    if (segment === '..') segments.pop();
    else if (segment !== '' && segment !== '.') segments.push(segment);
  }
  return segments[0] ?? '';
}
