/**
 * Headers that routes read from requests and set on responses (H4). A route declares them in its description
 * (openapi/describe.ts), and the OpenAPI document and docs/http.md are generated from the declarations. Not listed here:
 * headers of every request or of HTTP itself, such as `Authorization`, `Content-Type`, `Accept`, `Cache-Control` and
 * `traceparent` (docs/observability.md).
 */
import { limits } from '../domain/limits.ts';

export interface RequestHeader {
  readonly name: string;
  readonly description: string;
  /** Other values are rejected: `"Last-Event-ID" must be …`. */
  readonly pattern?: RegExp;
  readonly expected?: string;
}

export interface ResponseHeader {
  readonly name: string;
  readonly description: string;
}

export const idempotencyKey: RequestHeader = {
  name: 'Idempotency-Key',
  description:
    'Makes a repeated request safe: the same key with the same content returns the first run; with other content, 422 `idempotency_mismatch`',
  pattern: new RegExp(`^[^]{1,${limits.idempotencyKeyChars}}$`),
  expected: `1 to ${limits.idempotencyKeyChars} characters`,
};

export const creationKey: RequestHeader = {
  ...idempotencyKey,
  description:
    'Makes a repeated request safe: the same key with the same agent, user and body returns the first session; with another body, 422 `idempotency_mismatch`',
};

export const forkKey: RequestHeader = {
  ...idempotencyKey,
  description:
    'Makes a repeated request safe: the same key for the same session with the same body returns the first fork, also after further messages; with another body, 422 `idempotency_mismatch`',
};

export const lastEventId: RequestHeader = {
  name: 'Last-Event-ID',
  description: 'Number of the last event that the client has; overrides `after`',
  pattern: /^\d{0,15}$/,
  expected: 'the number of an event',
};

export const range: RequestHeader = {
  name: 'Range',
  description: 'One range of bytes, such as `bytes=0-99`; the response is then 206',
};

export const ifMatch: RequestHeader = {
  name: 'If-Match',
  description: 'The `ETag` that the file must have, or `*` for any file; otherwise 412 `precondition_failed`',
};

export const ifNoneMatch: RequestHeader = {
  name: 'If-None-Match',
  description: 'The `ETag` that the client has: the response is 304 if the file has it',
};

export const ifNew: RequestHeader = {
  name: 'If-None-Match',
  description: '`*`: the file must not exist; otherwise 412 `precondition_failed`',
};

export const ifRange: RequestHeader = {
  name: 'If-Range',
  description: 'The `ETag` that the client has a part of: `Range` counts only if the file has it',
};

export const mcpConnection: RequestHeader = {
  name: 'Mcp-Session-Id',
  description:
    'The name of the connection, as the response to `initialize` has given it; only with it can calls be cancelled by a notification',
  pattern: new RegExp(`^[\\x21-\\x7e]{1,${limits.threadNameChars}}$`),
  expected: `1 to ${limits.threadNameChars} visible characters`,
};

export const sessionName: RequestHeader = {
  name: 'X-Session-Id',
  description:
    'Keeps the conversation: the id of a session, or a name of your own for one; only the last message of the request is new then',
  pattern: new RegExp(`^[^]{1,${limits.threadNameChars}}$`),
  expected: `1 to ${limits.threadNameChars} characters`,
};

/** OpenAI's clients repeat requests by themselves. */
export const retryCount: RequestHeader = {
  name: 'X-Stainless-Retry-Count',
  description:
    'How often the client has sent this request before. Above 0, and without a key, it joins the run of the first one if that is recent and no equal request is known',
  pattern: /^\d{1,6}$/,
  expected: 'a number',
};

export const webhookSignature: RequestHeader = {
  name: 'X-Cortex-Signature',
  description: `\`t=<seconds>,v1=<hex>\`: the HMAC-SHA256 of \`<seconds>.<body>\` under the workflow's secret; at most ${limits.webhookSeconds} seconds old`,
};

/** Headers of the response that a run gives. */
export const runHeaders: readonly ResponseHeader[] = [
  { name: 'X-Session-Id', description: 'Id of the session' },
  { name: 'X-Run-Id', description: 'Id of the run. With `if_busy=steer`: of the run that has received the message' },
];

export const eventsHeaders: readonly ResponseHeader[] = [
  { name: 'X-Accel-Buffering', description: '`no`: proxies must not buffer the events' },
];

export const entityTag: ResponseHeader = { name: 'ETag', description: 'Id of the artifact, or SHA-256 of the file' };

export const downloadHeaders: readonly ResponseHeader[] = [
  { name: 'Content-Disposition', description: 'Always a download, with the file name' },
  { name: 'X-Content-Type-Options', description: '`nosniff`' },
  { name: 'Content-Security-Policy', description: 'Blocks scripts' },
  { name: 'Cross-Origin-Resource-Policy', description: '`same-site`' },
];

export const fileHeaders: readonly ResponseHeader[] = [
  ...downloadHeaders,
  { name: 'Accept-Ranges', description: '`bytes`' },
  entityTag,
  { name: 'Vary', description: '`accept-encoding`: a range is of bytes that are not compressed' },
  { name: 'Content-Range', description: 'With status 206: the range and the whole size' },
];

/** Headers of problem documents, and of failed runs. */
export const problemHeaders: readonly ResponseHeader[] = [
  { name: 'Retry-After', description: 'With status 429 or 503: seconds until the next attempt' },
  { name: 'WWW-Authenticate', description: 'With status 401: `Bearer`' },
  { name: 'Allow', description: 'With status 405: the methods of the route' },
];

interface HeaderParameter {
  readonly name: string;
  readonly in: 'header';
  readonly description: string;
  readonly schema: object;
}

/** As OpenAPI parameters. */
export function headerParameters(headers: readonly RequestHeader[]): HeaderParameter[] {
  return headers.map(({ name, description, pattern }) => ({
    name,
    in: 'header',
    description,
    schema: { type: 'string', ...(pattern === undefined ? {} : { pattern: pattern.source }) },
  }));
}

/** As `headers` of an OpenAPI response. */
export function headerObjects(headers: readonly ResponseHeader[]): Record<string, object> {
  return Object.fromEntries(
    headers.map(({ name, description }) => [name, { description, schema: { type: 'string' } }]),
  );
}
