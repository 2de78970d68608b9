/**
 * The model: writes the generations of each history, one per call. A call names its history in `model`; the last mark in
 * its messages names the message.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { AttemptEnd, GenerationScript } from '../simulation/history.ts';
import { chunksOf, isOfEndpoint } from '../simulation/endpoint.ts';
import { textOf, writtenOf } from '../simulation/script.ts';
import { marksIn } from '../simulation/seeded.ts';
import type { Forms } from '../simulation/script.ts';
import { markedIn } from '../simulation/world/marks.ts';
import { clientResultsIn, LAST, UNKNOWN } from '../simulation/world/model.ts';
import type { CutGenerations } from './cut-generations.ts';
import { bodyOf, closed, serve } from './loopback.ts';
import type { LoopbackServer } from './loopback.ts';
import { historyOfAgent, SILENT_MODEL_MS } from './manifests.ts';
import type { Play } from './play.ts';

/** Ends of an attempt whose child completes. */
const GOOD: ReadonlySet<AttemptEnd> = new Set<AttemptEnd>(['ok', 'deaf', 'lost']);

/**
 * @param playOf the history with this name
 * @param formsOf what its texts contain
 * @param cuts the generations that wait for a kill
 */
export async function serveModel(
  playOf: (name: string) => Play | undefined,
  formsOf: (play: Play) => Forms,
  cuts: CutGenerations,
): Promise<LoopbackServer> {
  return await serve(async (request, response) => {
    const { model, messages } = await bodyOf(request);
    const name = historyOfAgent(String(model));
    const play = playOf(name);
    if (play === undefined) return refuse(response);
    const told = JSON.stringify(messages);
    if (name !== model) return await answerChild(play, told, response);
    const message = markedIn(told) ?? 0;
    const call = play.callOf(message);
    const results = clientResultsIn(textsOf(messages as readonly ToldMessage[]));
    // Posted text has a session of its own, without the history.
    const isChat = play.history.messages[message]?.type === 'message';
    play.note(message, { type: 'model_called', message, call, ...(isChat ? { marks: marksIn(told) } : {}), results });
    const script = play.history.messages[message]?.generations[call] ?? LAST;
    const chunks = sentOf(message, call, script, formsOf(play));
    await write(script, chunks, { response, cuts }, (finish) =>
      play.note(message, { type: 'generation_delivered', message, call, finish }),
    );
  });
}

interface ToldMessage {
  /** Parts, if files are attached. */
  readonly content: string | readonly { readonly text?: string }[] | null;
}

function textsOf(messages: readonly ToldMessage[]): string {
  return messages
    .flatMap(({ content }) => (typeof content === 'string' ? [content] : (content ?? []).map(({ text = '' }) => text)))
    .join('\n');
}

/** What is sent of a generation: all chunks but the last, up to the cut. */
interface Sent {
  readonly chunks: readonly object[];
  readonly last: object;
  /** Of what is sent. */
  readonly chars: number;
}

function sentOf(message: number, call: number, script: GenerationScript, forms: Forms): Sent {
  const { cut, pieceChars, finish } = script;
  const last = { choices: [choice({}, cut?.cause === 'length' ? 'length' : finish)] };
  if (isOfEndpoint(script)) {
    const chunks = chunksOf(message, call, script, forms);
    const count = cut === null ? -1 : cut.chars % chunks.length;
    return { chunks: chunks.slice(0, count), last: cut === null ? (chunks.at(-1) ?? last) : last, chars: pieceChars };
  }
  const text = writtenOf(textOf(message, call, script, forms), cut);
  const chunks: object[] = [];
  for (let at = 0; at < text.length; at += pieceChars)
    chunks.push({ choices: [choice({ content: text.slice(at, at + pieceChars) }, null)] });
  return { chunks, last, chars: text.length };
}

/** @param delivered called when everything was sent */
async function write(
  { cut, finish: whole, gapMs, reportsUsage, reason }: GenerationScript,
  { chunks, last, chars }: Sent,
  { response, cuts }: { readonly response: ServerResponse; readonly cuts: CutGenerations },
  delivered: (finish: string) => void,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  // A call that fails before its first text is repeated by the provider: then the history would have another call.
  if (chunks.length === 0) send(response, { choices: [choice({ content: ' ' }, null)] });
  for (const chunk of chunks) {
    if (gapMs > 0) await delay(gapMs);
    if (response.destroyed) return;
    send(response, chunk);
  }
  if (cut !== null) await delay(cut.pauseMs);
  if (cut?.cause === 'host') await cuts.wait(response);
  if (response.destroyed) return;
  const finish = cut === null ? whole : cut.cause === 'host' || cut.cause === 'dropped' ? 'throws' : cut.cause;
  if (finish === 'silent') {
    const since = Date.now();
    await closed(response);
    if (Date.now() - since > SILENT_MODEL_MS / 2) delivered(finish);
    return;
  }
  if (finish === 'throws') {
    await delay(gapMs + 20);
    if (response.destroyed) return;
    delivered(finish);
    response.destroy();
    return;
  }
  send(response, last);
  if (reportsUsage) {
    const usage = { prompt_tokens: 100, completion_tokens: chars, total_tokens: 100 + chars };
    send(response, { choices: [], usage });
  }
  if (response.destroyed) return;
  response.end('data: [DONE]\n\n', () => delivered(reason === null ? finish : UNKNOWN));
}

/** A child does one unsafe action, then ends as the attempt of its parent says. */
async function answerChild(play: Play, told: string, response: ServerResponse): Promise<void> {
  const token = [...told.matchAll(/\bm\d+g\d+a\d+\b/g)].at(-1)?.[0] ?? '';
  const call = play.childCallOf(token);
  const { ms, end } = play.attemptOf(token, call);
  await delay(ms);
  if (response.destroyed) return;
  // Not retried, and no reason to suspect the endpoint.
  if (!GOOD.has(end) && end !== 'silent') return refuse(response);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  // Another call may be the same child's after a kill; then the work may be done already.
  const work = `<action type="tool" mode="async" id="work">{"name": "unsafe", "parameters": {"token": "child-${token}"}}</action>`;
  const answer = `<response final="true">answer of ${token}</response>`;
  send(response, { choices: [choice({ content: call === 1 ? `${work}${answer}` : answer }, null)] });
  if (end === 'silent') return await closed(response);
  send(response, { choices: [choice({}, 'stop')] });
  response.end('data: [DONE]\n\n');
}

function refuse(response: ServerResponse): void {
  response.writeHead(400, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ error: { message: 'the model refuses this request' } }));
}

function choice(delta: object, finish: string | null): object {
  return { index: 0, delta, finish_reason: finish };
}

function send(response: ServerResponse, chunk: object): void {
  response.write(`data: ${JSON.stringify(chunk)}\n\n`);
}
