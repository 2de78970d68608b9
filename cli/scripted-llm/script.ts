/** Converts a YAML script to the replies of the scripted server. */
import { z } from 'zod';
import { readYaml } from '../../src/catalog/read/yaml-file.ts';
import type { ScriptedReply, SeenRequest, StreamStep } from './server.ts';
import { SHAPE_NAMES, shapeOf } from './shapes.ts';

const shape = z.enum(SHAPE_NAMES as [(typeof SHAPE_NAMES)[number], ...(typeof SHAPE_NAMES)[number][]]);
const pace = z.strictObject({ chars: z.number().int().min(1).default(4), ms: z.number().min(0).default(0) });

const FAULTS = ['stall', 'cut', 'close', 'garbage', 'wrong_json', 'error'] as const;

/** All of them. */
const texts = z.union([z.string(), z.array(z.string())]).optional();

const reply = z.strictObject({
  /** Only for requests of this model, whose last message contains this text or these texts, and whose system prompt contains that one. */
  when: z.strictObject({ model: z.string().optional(), contains: texts, prompt: texts }).optional(),
  /** How often this reply is used before the next matching one; unlimited with `when`. */
  times: z.number().int().min(1).optional(),
  shape: shape.optional(),
  pace: pace.optional(),
  /** Delay before the first token. */
  first_token_ms: z.number().min(0).optional(),
  reasoning: z.string().optional(),
  text: z.string().optional(),
  tool_calls: z
    .array(z.strictObject({ id: z.string().optional(), name: z.string(), arguments: z.json().default({}) }))
    .optional(),
  finish: z.string().optional(),
  /** The reported usage; `none` = no usage. */
  usage: z
    .union([
      z.literal('none'),
      z.strictObject({
        prompt: z.number().int().default(10),
        completion: z.number().int().default(5),
        cached: z.number().int().default(0),
      }),
    ])
    .optional(),
  /** A fault of the stream, after this many characters of text. */
  fault: z
    .union([z.enum(FAULTS), z.strictObject({ type: z.enum(FAULTS), after: z.number().int().min(0).default(0) })], {
      error: `expected one of ${FAULTS.join(', ')}, or {type, after}`,
    })
    .optional(),
  /** An error instead of a stream. */
  status: z.number().int().min(300).max(599).optional(),
  message: z.string().optional(),
  retry_after: z.union([z.number(), z.string()]).optional(),
});

const script = z.strictObject({
  shape: shape.default('openai'),
  pace: pace.optional(),
  replies: z.array(reply).min(1),
});

type Reply = z.infer<typeof reply>;
type Script = z.infer<typeof script>;

/** What a script chooses its replies by: a request to an endpoint, or a part of one. */
type Asked = Pick<SeenRequest, 'body'>;

/**
 * @param yaml the script (docs/models.md)
 * @returns the reply to each request; the last reply without `when` repeats
 * @throws Error that names the invalid field
 */
export function readScript(yaml: string): (request: SeenRequest) => ScriptedReply {
  const { choose, script: read } = readReplies(yaml);
  return (request) => {
    const chosen = choose(request);
    if (chosen === null)
      return { status: 400, body: { error: { message: 'no reply of the script matches this request' } } };
    return answerOf(chosen, read);
  };
}

/**
 * A script as a model in process: the text of the reply to each conversation.
 *
 * @throws Error as `readScript`; the function throws for a reply that is an error or has native calls
 */
export function scriptedTexts(
  yaml: string,
): (messages: readonly { readonly role: string; readonly content: string }[]) => string {
  const { choose } = readReplies(yaml);
  return (messages) => {
    const chosen = choose({ body: { messages } });
    if (chosen?.text === undefined)
      throw new Error(`no reply of the script has a text: ${messages.at(-1)?.content ?? ''}`);
    return chosen.text;
  };
}

function readReplies(yaml: string): { readonly choose: (request: Asked) => Reply | null; readonly script: Script } {
  const { documents, errors } = readYaml(yaml.trim() === '' ? '{}' : yaml);
  const [fault] = errors;
  if (fault !== undefined) throw new Error(`line ${fault.line}, column ${fault.column}: ${fault.message}`);
  const read = script.safeParse(documents[0]?.value ?? {});
  if (!read.success) throw new Error(z.prettifyError(read.error));
  const given = new Map<Reply, number>();
  const choose = (request: Asked): Reply | null => {
    const fits = (candidate: Reply): boolean => matches(candidate, request);
    const left = (candidate: Reply): boolean => {
      const most = candidate.times ?? (candidate.when === undefined ? 1 : Infinity);
      return (given.get(candidate) ?? 0) < most;
    };
    const { replies } = read.data;
    const chosen =
      replies.find((candidate) => candidate.when !== undefined && fits(candidate) && left(candidate)) ??
      replies.find((candidate) => candidate.when === undefined && left(candidate)) ??
      replies.findLast((candidate) => candidate.when === undefined) ??
      null;
    if (chosen !== null) given.set(chosen, (given.get(chosen) ?? 0) + 1);
    return chosen;
  };
  return { choose, script: read.data };
}

function matches({ when }: Reply, { body }: Asked): boolean {
  if (when === undefined) return true;
  if (when.model !== undefined && body['model'] !== when.model) return false;
  const messages: unknown[] = Array.isArray(body['messages']) ? body['messages'] : [];
  const has = (message: unknown, wanted: string | readonly string[] = []): boolean => {
    const found = textOf(message);
    return [wanted].flat().every((text) => found.includes(text));
  };
  return has(messages.at(-1), when.contains) && has(messages.find(isSystem), when.prompt);
}

/** Its text as it is, and everything of it as JSON. */
function textOf(message: unknown): string {
  const content: unknown =
    typeof message === 'object' && message !== null && 'content' in message ? message.content : '';
  return `${typeof content === 'string' ? content : ''}\n${JSON.stringify(message ?? '')}`;
}

function isSystem(message: unknown): boolean {
  return typeof message === 'object' && message !== null && 'role' in message && message.role === 'system';
}

function answerOf(chosen: Reply, { shape: common, pace: commonPace }: Script): ScriptedReply {
  const form = shapeOf(chosen.shape ?? common);
  if (chosen.status !== undefined) {
    const { status, message = `scripted ${chosen.status}`, retry_after: retryAfter } = chosen;
    return {
      status,
      body: form.error(status, message),
      ...(retryAfter === undefined ? {} : { headers: { 'retry-after': String(retryAfter) } }),
    };
  }
  const { chars, ms } = chosen.pace ?? commonPace ?? { chars: 4, ms: 0 };
  const steps: StreamStep[] = [];
  if (form.comment !== null) steps.push({ comment: form.comment });
  if (chosen.first_token_ms !== undefined) steps.push({ pauseMs: chosen.first_token_ms });
  steps.push(...form.opening.map((chunk) => ({ chunk })));
  const paced = (text: string, write: (delta: string) => Record<string, unknown>): void => {
    for (let at = 0; at < text.length; at += chars) {
      steps.push({ chunk: write(text.slice(at, at + chars)) });
      if (ms > 0) steps.push({ pauseMs: ms });
    }
  };
  const fault = typeof chosen.fault === 'string' ? { type: chosen.fault, after: 0 } : chosen.fault;
  paced(chosen.reasoning ?? '', form.reasoning);
  const text = chosen.text ?? '';
  paced(fault === undefined ? text : text.slice(0, fault.after), form.text);
  if (fault !== undefined) return { stream: [...steps, ...broken(fault.type)] };
  const calls = chosen.tool_calls ?? [];
  for (const [index, { id = `call_${index + 1}`, name, arguments: args }] of calls.entries()) {
    const written = typeof args === 'string' ? args : JSON.stringify(args);
    steps.push(...form.call({ id, name, arguments: written }, index).map((chunk) => ({ chunk })));
  }
  const { usage = { prompt: 10, completion: 5, cached: 0 } } = chosen;
  const finish = chosen.finish ?? (calls.length > 0 ? 'tool_calls' : 'stop');
  steps.push(...form.closing(finish, usage === 'none' ? null : usage).map((chunk) => ({ chunk })));
  return { stream: steps };
}

function broken(fault: (typeof FAULTS)[number]): StreamStep[] {
  switch (fault) {
    case 'stall':
      return ['STALL'];
    case 'cut':
      return ['CUT'];
    case 'close':
      return ['CLOSE'];
    case 'garbage':
      return [{ data: '{"choices": [{"delta": ' }, 'CLOSE'];
    case 'wrong_json':
      // valid JSON of an unknown format
      return [{ chunk: { surprise: [1, 2, 3] } }, { chunk: 'text' }, 'CLOSE'];
    case 'error':
      return [{ chunk: { error: { code: 502, message: 'scripted error in the stream' } } }, 'CLOSE'];
  }
}
