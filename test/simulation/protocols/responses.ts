/** A client of OpenAI's responses, which resumes after the last number that it has (E2). */
import type { Json } from '../../../src/domain/json.ts';
import { openai, readResponse, readRetrieveResponse } from '../../../src/surfaces/openai/index.ts';
import type { SurfaceRequest } from '../../../src/surfaces/surface.ts';
import { dataOf, errorAsOutput, tokenIn } from './client-protocol.ts';
import type { Asking, ClientProtocol, Outcome, Reading } from './client-protocol.ts';

type Item = Record<string, unknown> & { readonly type: string; readonly id: string };

interface Response {
  readonly id: string;
  readonly status: string;
  readonly output: readonly Item[];
}

interface Frame {
  readonly type: string;
  readonly sequence_number: number;
  readonly item_id?: string;
  readonly output_index?: number;
  readonly item?: Item;
  readonly delta?: string;
  readonly text?: string;
  readonly response?: Response;
}

/** All frames, as the client got them. */
interface Message {
  readonly frames: readonly Frame[];
}

function request(asking: Asking, input: Json, previous: string | null, key: string): SurfaceRequest {
  return readResponse({
    body: {
      model: 'assistant',
      input,
      stream: true,
      ...(previous === null ? {} : { previous_response_id: previous }),
    },
    params: {},
    query: {},
    key: `${key} ${asking.index}`,
    session: null,
    isKey: true,
  });
}

const framesOf = (reading: Reading | null): readonly Frame[] =>
  ((reading?.message ?? { frames: [] }) as unknown as Message).frames;

const responseIn = (reading: Reading | null): Response | undefined =>
  framesOf(reading).findLast(({ response }) => response !== undefined)?.response;

export const responsesClient: ClientProtocol = {
  surface: openai,
  decides: true,
  tellsLate: true,
  answersTogether: false,
  looksAgain: false,
  continues: ['follow'],
  options: { api: 'responses' },
  ask: (asking) => request(asking, asking.text, null, 'message'),
  follow: ({ has, runId }) => {
    const response = responseIn(has)?.id ?? (runId ?? '').replace(/^run_/, 'resp_');
    const after = framesOf(has).at(-1)?.sequence_number ?? 0;
    return readRetrieveResponse({
      body: null,
      params: { response },
      query: { stream: 'true', ...(after === 0 ? {} : { starting_after: after }) },
      key: null,
      session: null,
      isKey: true,
    });
  },
  answer: (asking, { results, decisions, round }) => {
    const requested = responseIn(asking.has)?.output ?? [];
    const input = [
      ...results.map(({ callId: call_id, result }) => ({
        type: 'function_call_output',
        call_id,
        output: JSON.stringify('output' in result ? result.output : null),
      })),
      ...decisions.map(({ approvalId, approved: approve }) => ({
        type: 'mcp_approval_response',
        approval_request_id: requested.find(({ id }) => id.endsWith(approvalId.replace(/^apr_/, '')))?.id ?? '',
        approve,
      })),
    ];
    return request(asking, input, responseIn(asking.has)?.id ?? '', `answers ${round}`);
  },
  resultOf: errorAsOutput,
  read,
  beginsAfter: (reading) => Number(/_c(\d+)$/.exec(responseIn(reading)?.id ?? '')?.[1] ?? 0),
  essence: (message) => {
    const { frames } = message as unknown as Message;
    // How much of a block was sent that a crash has cut off is not known later: it ends without content.
    const cut = new Set(
      frames.flatMap(({ type, item }) =>
        type === 'response.output_item.done' && item?.['status'] === 'incomplete' ? [item.id] : [],
      ),
    );
    return frames.filter(({ type, item_id: id = '' }) => !(type.endsWith('.delta') && cut.has(id))) as unknown as Json;
  },
};

const ENDS: Readonly<Record<string, Outcome>> = {
  'response.completed': 'success',
  'response.incomplete': 'cut',
  'response.failed': 'failed',
};

function read(text: string, before: Reading | null): Reading {
  const mistakes: string[] = [];
  const frames = [...framesOf(before)];
  const hadFrames = frames.length;
  let outcome: Outcome | null = null;
  for (const frame of dataOf(text) as (Frame | null)[]) {
    if (frame === null) {
      mistakes.push('a frame is not JSON');
      continue;
    }
    if (outcome !== null) mistakes.push(`${frame.type} follows the end of the response`);
    if (frame.type === 'error') {
      outcome = 'lost';
      continue;
    }
    const last = frames.at(-1)?.sequence_number ?? 0;
    if (frame.sequence_number <= last) mistakes.push(`frame ${frame.sequence_number} comes after ${last}`);
    frames.push(frame);
    outcome = ENDS[frame.type] ?? null;
  }
  if (frames.length > 0 && frames[0]?.type !== 'response.created')
    mistakes.push('the first frame is not response.created');
  mistakes.push(...mistakesIn(frames));
  const { response } = frames.at(-1) ?? {};
  const pending = outcome === 'success' ? pendingIn(response?.output ?? []) : [];
  if (pending.length > 0) outcome = 'waiting';
  if (outcome === 'failed' && response?.status === 'cancelled') outcome = 'cancelled';
  const isOver = outcome !== null && outcome !== 'lost';
  return {
    message: { frames } as unknown as Json,
    outcome,
    calls: pending.flatMap(({ type, call_id: id, arguments: parameters }) =>
      type === 'function_call' ? [{ id: String(id), token: tokenIn(parameters) }] : [],
    ),
    approvals: pending.flatMap(({ type, id }) => (type === 'mcp_approval_request' ? [`apr_${id.slice(-32)}`] : [])),
    open: isOver && frames.length > hadFrames ? openIn(frames) : [],
    mistakes,
  };
}

/** What the run waits for: calls without a result, and requests without a call. */
function pendingIn(output: readonly Item[]): readonly Item[] {
  return output.filter(
    ({ type, id }) =>
      type === 'function_call' ||
      (type === 'mcp_approval_request' && !output.some((item) => item['approval_request_id'] === id)),
  );
}

function openIn(frames: readonly Frame[]): string[] {
  const done = new Set(frames.flatMap(({ type, item }) => (type === 'response.output_item.done' ? [item?.id] : [])));
  return frames.flatMap(({ type, item }) =>
    type === 'response.output_item.added' && !done.has(item?.id) ? [`the item ${item?.id}`] : [],
  );
}

/** Whether items are added in order and once, and texts are what their pieces say. */
function* mistakesIn(frames: readonly Frame[]): Generator<string> {
  const items: Item[] = [];
  const done = new Set<string>();
  const texts = new Map<string, string>();
  for (const { type, item, item_id: id = '', output_index: index, delta, text, response } of frames) {
    if (type === 'response.output_item.added' && item !== undefined) {
      if (index !== items.length) yield `the item ${item.id} has the index ${index}, after ${items.length}`;
      if (items.some((other) => other.id === item.id)) yield `the item ${item.id} is added twice`;
      items.push(item);
    } else if (type === 'response.output_item.done' && item !== undefined) {
      if (items[index ?? -1]?.id !== item.id) yield `the item ${item.id} is done and was not added`;
      if (done.has(item.id)) yield `the item ${item.id} is done twice`;
      done.add(item.id);
      items[index ?? -1] = item;
    } else if (type.endsWith('.delta')) {
      if (!items.some((item_) => item_.id === id) || done.has(id)) yield `${type} of ${id}, which is not open`;
      texts.set(id, (texts.get(id) ?? '') + String(delta));
    } else if (type.endsWith('text.done') && texts.get(id) !== text) {
      yield `the pieces of ${id} are ${JSON.stringify(texts.get(id))}, and its text is ${JSON.stringify(text)}`;
    } else if (response !== undefined && response.status !== 'in_progress') {
      const [given, seen] = [response.output, items].map((list) => JSON.stringify(list));
      if (given !== seen) yield `the response has the items ${given}, and the client has ${seen}`;
    }
  }
}
