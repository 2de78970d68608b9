/**
 * Fetches the files of messages by their URLs (C2), under the same rules as the requests of tools (X2), with limits of
 * their own: a file may be larger than what a tool reads, and a file that was cut is none.
 *
 * Invariants
 * 1. An error says nothing that the caller does not know: its URL is judged in detail, what it leads to is not.
 * 2. A caller who is not the operator reaches public hosts only.
 */
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { FileFetch } from '../../domain/ports/outbound.ts';
import { checkUrl } from './address.ts';
import type { AddressPolicy } from './address.ts';
import { OutboundError } from '../../domain/outbound-error.ts';
import { createOutboundFetch } from './outbound.ts';
import type { OutboundOptions } from './outbound.ts';

const LIMITS = {
  // A byte more than a file may have: its reader sees that it is too large.
  fetchBytes: limits.messagePartBytes + 1,
  fetchRedirects: limits.fetchRedirects,
  fetchTimeoutMs: limits.messageUrlsMs,
};
/** Part of the file only; the request did not ask for a range. */
const PARTIAL = 206;

export function createFileFetch(options: Omit<OutboundOptions, 'limits'>): FileFetch {
  const policies: Record<'operator' | 'public', AddressPolicy> = {
    operator: { allowHosts: options.allowHosts },
    public: { allowHosts: [], remedy: false },
  };
  return async (url, { signal, operatorHosts }) => {
    const policy = operatorHosts ? policies.operator : policies.public;
    const checked = checkUrl(url, policy);
    if (!checked.ok) throw new EngineError('url_refused', `the URL is not allowed: it ${checked.reason}`);
    const fetch = createOutboundFetch({ ...options, allowHosts: policy.allowHosts, limits: LIMITS });
    try {
      const response = await fetch(url, { signal });
      const { status, headers, body } = response;
      if (status < 200 || status > 299 || status === PARTIAL) {
        void body?.cancel().catch(() => {});
        throw new EngineError('url_failed', `the URL answered with the status ${status}`);
      }
      return { contentType: headers.get('content-type'), body: piecesOf(body) };
    } catch (fault) {
      throw problemOf(fault);
    }
  };
}

async function* piecesOf(body: Response['body']): AsyncGenerator<Uint8Array> {
  if (body === null) return;
  try {
    yield* body as ReadableStream<Uint8Array>;
  } catch (fault) {
    throw problemOf(fault);
  }
}

function problemOf(fault: unknown): EngineError {
  if (fault instanceof EngineError) return fault;
  if (!(fault instanceof OutboundError))
    return new EngineError('url_failed', 'the URL could not be fetched', {}, fault);
  switch (fault.code) {
    case 'address_refused':
      return new EngineError('url_refused', 'the URL leads to an address that is not allowed', {}, fault);
    case 'too_many_redirects':
      return new EngineError('url_failed', `the URL redirects more than ${limits.fetchRedirects} times`, {}, fault);
    case 'fetch_timeout':
      return new EngineError('url_timeout', 'the URL did not answer in time', {}, fault);
    case 'egress_unavailable':
      return new EngineError('runner_unavailable', 'the runner, which fetches URLs, is not available', {}, fault);
    case 'platform_limit':
      return new EngineError('platform_limit', fault.message, {}, fault);
    case 'fetch_failed':
    case 'header_refused':
    // A file of a message has no policies.
    case 'redirect_refused':
    case 'response_too_large':
      return new EngineError('url_failed', 'the server of the URL could not be reached, or ended early', {}, fault);
  }
}
