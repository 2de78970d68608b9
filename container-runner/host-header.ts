/** Refuses requests without exactly one valid `Host` (R1), before anything makes a URL of it. */
import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';

import { RunnerError } from './problem.ts';

/** A name or an address, and a port if there is one. */
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?$/i;

function hasValidHost({ rawHeaders }: IncomingMessage): boolean {
  const hosts = rawHeaders.filter((_text, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'host');
  const [host = ''] = hosts;
  return hosts.length === 1 && HOST.test(host) && URL.canParse(`http://${host}`);
}

function refuse(response: ServerResponse): void {
  const problem = new RunnerError('invalid_request', 'A request has one Host header: a host with an optional port');
  const { status, text } = problem.toDocument();
  const headers = { 'content-type': 'application/problem+json', 'content-length': Buffer.byteLength(text) };
  // The body of the request is not read.
  response.writeHead(status, { ...headers, connection: 'close' }).end(text);
}

/** A server that passes the requests with a valid host to `listener`. */
export function createHostCheckedServer(listener: RequestListener): Server {
  return createServer({ requireHostHeader: false }, (request, response) =>
    hasValidHost(request) ? listener(request, response) : refuse(response),
  );
}
