/** Sessions and turns over HTTP/1.1, as cheap as possible for the process of the load generator. */
import { Agent, request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { FIRST, LAST } from './script.ts';

/** A kind of session: ours, or the bare object. */
export interface Subject {
  readonly name: string;
  readonly newPath: string;
  readonly turnPath: (session: string) => string;
  readonly readerPath: (session: string) => string;
  /** Null: a run ends when its client leaves. */
  readonly cancelPath: ((session: string) => string) | null;
  /** Text at the end of a complete answer. */
  readonly end: string;
}

export const OURS: Subject = {
  name: 'Cortex Edge',
  newPath: '/agent/assistant/session',
  turnPath: (session) => `/agent/session/${session}/message`,
  readerPath: (session) => `/agent/session/${session}/events`,
  cancelPath: (session) => `/agent/session/${session}/cancel`,
  end: 'agent_completed',
};

export const BARE: Subject = {
  name: 'bare object',
  newPath: '/bare/new',
  turnPath: (session) => `/bare/${session}`,
  readerPath: (session) => `/bare/${session}`,
  cancelPath: null,
  end: LAST,
};

export interface Turn {
  /** From `since` to the first text of the answer, and to its end, in ms. */
  readonly firstMs: number;
  readonly totalMs: number;
  /** Number of the turn since the bare object was constructed; null for others. */
  readonly turnOfObject: number | null;
}

/** The server closes connections that are idle for five seconds, so they are not used again shortly before. */
const agent = new Agent({ keepAlive: true, maxSockets: Infinity, timeout: 3_000 });
const TIMEOUT_MS = 120_000;
/** Kept of the text that was read, because a marker can be cut. */
const TAIL_CHARS = 4_096;

/** @throws Error the connection failed, or another status */
async function open(
  url: string,
  method: string,
  body: object | null,
  statuses: readonly number[],
): Promise<IncomingMessage> {
  return await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = body === null ? {} : { 'content-type': 'application/json' };
    const sent = request(url, { method, headers, agent, timeout: TIMEOUT_MS }, (response) => {
      if (statuses.includes(response.statusCode ?? 0)) return resolve(response);
      void textOf(response).then(
        (text) => reject(new Error(`${method} ${url}: ${response.statusCode} ${text.slice(0, 500)}`)),
        reject,
      );
    });
    sent.on('timeout', () => sent.destroy(new Error(`${method} ${url}: no data for ${TIMEOUT_MS} ms`)));
    sent.on('error', reject);
    sent.end(body === null ? undefined : JSON.stringify(body));
  });
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const piece of response.setEncoding('utf8')) text += String(piece);
  return text;
}

async function idIn(response: IncomingMessage): Promise<string> {
  const { session_id: id } = JSON.parse(await textOf(response)) as { readonly session_id: string };
  return id;
}

export async function createSession(base: string, subject: Subject): Promise<string> {
  return await idIn(await open(`${base}${subject.newPath}`, 'POST', { user_id: 'u' }, [201]));
}

/** A copy of one of our sessions, with its history. */
export async function forkSession(base: string, session: string): Promise<string> {
  return await idIn(await open(`${base}/agent/session/${session}/fork`, 'POST', {}, [200, 201]));
}

/**
 * Sends a message and reads the answer to its end.
 *
 * @param since the time from which the turn is measured (`performance.now()`)
 * @throws Error no answer, or not a complete one
 */
export async function takeTurn(
  base: string,
  subject: Subject,
  { session, content, since = performance.now() }: { session: string; content: string; since?: number },
): Promise<Turn> {
  const response = await open(`${base}${subject.turnPath(session)}`, 'POST', { content }, [200]);
  const number = response.headers['x-turn'];
  let firstMs = Number.NaN;
  let tail = '';
  for await (const piece of response.setEncoding('latin1')) {
    tail = (tail + String(piece)).slice(-TAIL_CHARS);
    if (Number.isNaN(firstMs) && tail.includes(FIRST)) firstMs = performance.now() - since;
  }
  if (!tail.includes(subject.end)) throw new Error(`${subject.name}: the answer is incomplete: …${tail.slice(-300)}`);
  const turnOfObject = number === undefined ? null : Number(number);
  return { firstMs, totalMs: performance.now() - since, turnOfObject };
}

/** Sends a message whose answer does not end, and waits for its first text. Returns a function that leaves. */
export async function holdTurn(base: string, subject: Subject, session: string, content: string): Promise<() => void> {
  const response = await open(`${base}${subject.turnPath(session)}`, 'POST', { content }, [200]);
  return await firstText(response, FIRST);
}

/** Opens a stream without a run. Returns a function that closes it. */
export async function openReader(base: string, subject: Subject, session: string): Promise<() => void> {
  return await firstText(await open(`${base}${subject.readerPath(session)}`, 'GET', null, [200]), '');
}

/** Resolves once the stream has sent this text, and discards the rest. */
async function firstText(response: IncomingMessage, text: string): Promise<() => void> {
  const leave = (): void => void response.destroy();
  response.on('error', () => undefined);
  return await new Promise((resolve, reject) => {
    let tail = '';
    response.on('data', (piece: Buffer) => {
      tail = (tail + piece.toString('latin1')).slice(-TAIL_CHARS);
      if (tail.includes(text)) resolve(leave);
    });
    response.on('end', () => reject(new Error(`the stream ended: …${tail.slice(-300)}`)));
    if (text === '') resolve(leave);
  });
}

/** Calls `work` for 0 to `count - 1`, `atOnce` of them at a time. */
export async function inParallel(count: number, atOnce: number, work: (n: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, worker));
}
