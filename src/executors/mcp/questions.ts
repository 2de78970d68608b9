/**
 * Questions of MCP servers to people (elicitation), as questions of an action.
 *
 * A server may ask several questions at once; people answer them one after the other. A question for a secret is declined
 * without asking: a form is no place for passwords, and the protocol forbids it.
 */
import type { ElicitRequest, ElicitResult, InputRequiredResult } from '@modelcontextprotocol/client';
import type { Question } from '../../domain/action.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';

type ElicitParams = ElicitRequest['params'];

/** What is left to ask before the server can be called again; the state of a question. */
export interface OpenQuestions {
  /** How often the server has asked in this call, from 1. */
  readonly round: number;
  /** The server's own state, which it gets back. */
  readonly requestState: string | null;
  readonly requests: Readonly<Record<string, ElicitParams>>;
  readonly answers: Readonly<Record<string, ElicitResult>>;
}

/** @returns the reason if the server asks for something that cannot be asked here */
export function openQuestions(
  { inputRequests = {}, requestState }: InputRequiredResult,
  round = 1,
): OpenQuestions | string {
  const entries = Object.entries(inputRequests);
  if (entries.length > limits.mcpQuestions)
    return `asks ${entries.length} questions at once (most: ${limits.mcpQuestions})`;
  const requests: Record<string, ElicitParams> = {};
  for (const [key, request] of entries) {
    if (request.method !== 'elicitation/create') return `asks for ${request.method}, which this client does not offer`;
    requests[key] = request.params as ElicitParams;
  }
  const open = { round, requestState: requestState ?? null, requests, answers: {} };
  return JSON.stringify(open).length > limits.mcpStateChars
    ? `sends a state of more than ${limits.mcpStateChars} characters`
    : open;
}

/** The first question that no answer is known for; questions for secrets are answered on the way. */
export function nextQuestion(
  server: string,
  open: OpenQuestions,
): { readonly open: OpenQuestions; readonly question: Question | null; readonly declined: readonly string[] } {
  const answers = { ...open.answers };
  const declined: string[] = [];
  for (const [key, params] of Object.entries(open.requests)) {
    if (Object.hasOwn(answers, key)) continue;
    const secret = secretIn(params);
    if (secret === null) {
      const now = { ...open, answers };
      return { open: now, question: questionOf(server, params, { key, ...now } as unknown as JsonObject), declined };
    }
    answers[key] = { action: 'decline' };
    declined.push(secret);
  }
  return { open: { ...open, answers }, question: null, declined };
}

/** The questions after a person has answered the one with this state. */
export function answered(state: JsonObject, content: JsonObject): OpenQuestions {
  const { key, ...open } = state as unknown as OpenQuestions & { readonly key: string };
  const params = open.requests[key];
  const answer = params === undefined ? { action: 'decline' as const } : acceptance(params, content);
  return { ...open, answers: { ...open.answers, [key]: answer } };
}

/** A person's answer: what they left out has the server's default. */
export function acceptance(params: ElicitParams, content: JsonObject): ElicitResult {
  const properties = schemaOf(params)?.['properties'];
  const defaults = Object.entries(isJsonObject(properties) ? properties : {}).flatMap(([name, spec]) => {
    const value = isJsonObject(spec) ? spec['default'] : undefined;
    return value === undefined ? [] : [[name, value] as const];
  });
  return { action: 'accept', content: { ...Object.fromEntries(defaults), ...content } } as ElicitResult;
}

export function questionOf(server: string, params: ElicitParams, state: JsonObject): Question {
  const { message } = params;
  const schema = schemaOf(params);
  return {
    from: `MCP server "${server}"`,
    message: message.slice(0, limits.mcpDescriptionChars),
    schema,
    ...('url' in params && typeof params.url === 'string' ? { url: params.url } : {}),
    state,
  };
}

/** Null if a yes or no is enough. */
function schemaOf(params: ElicitParams): JsonObject | null {
  if (!('requestedSchema' in params)) return null;
  const schema = params.requestedSchema as Json | undefined;
  if (!isJsonObject(schema)) return null;
  const properties = schema['properties'];
  return isJsonObject(properties) && Object.keys(properties).length > 0 ? schema : null;
}

/** Whether a question is small enough for a person, and for the work of judging it. */
export function isAskable(params: ElicitParams): boolean {
  return JSON.stringify(params).length <= limits.mcpStateChars;
}

/** In words: `apiKey` and `api_key` are read as `api key`. */
const SECRET =
  /pass ?(word|wd|phrase|code)|secret|(api|access|private|signing) ?key|credential|\btoken\b|\bpin\b|\bcvv\b|\bssn\b|credit ?card/i;

/** `Do not enter your PIN` is no question for one. */
const WARNING = /\b(do not|don't|never|not|no|without)\b/i;

/** The field in which the server asks for a secret; null if it does not. */
export function secretIn(params: ElicitParams): string | null {
  const properties = schemaOf(params)?.['properties'];
  if (!isJsonObject(properties)) return null;
  const isAsked = (text: Json | undefined): boolean => isSecret(text) && !WARNING.test(String(text));
  const isAskedByMessage = isAsked(params.message);
  for (const [name, spec] of Object.entries(properties)) {
    const { title, description, format } = isJsonObject(spec) ? spec : {};
    if (format === 'password' || isSecret(name) || isSecret(title)) return name;
    if (isAskedByMessage || isAsked(description)) return name;
  }
  return null;
}

function isSecret(text: Json | undefined): boolean {
  return typeof text === 'string' && SECRET.test(inWords(text));
}

function inWords(text: string): string {
  return text.replace(/([a-z])([A-Z])/g, '$1 $2').replaceAll(/[\s_-]+/g, ' ');
}
