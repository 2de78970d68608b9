/**
 * The questions of targets (J8): an attempt ends with a question, a person answers it like a request for approval, and the
 * next attempt has the answer.
 *
 * Owns the question that an attempt has ended with until it is requested, and the answer until the action ends. Does not
 * own the request, which is an approval's, or the journaled state of the question.
 *
 * Invariants:
 *  1. The state of a question and the values of its answer are read from the journal's events, also after a crash.
 *  2. An answer goes to the attempt that follows it and to the retries of that attempt, until the next question.
 *  3. A question whose answer starts no attempt is withdrawn once, when its action ends.
 */
import { jsonChars, TooDeep } from '../../bounded/json-size.ts';
import type { ActionDeclaration, ActionError, ActionKey, Question } from '../../domain/action.ts';
import { EngineError } from '../../domain/errors.ts';
import type { EventData } from '../../domain/event.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { WorkExceeded, WorkMeter } from '../../domain/work.ts';
import type { ActionCall } from '../../executors/executor.ts';
import { schemaIssue } from '../../executors/validate-parameters.ts';
import { toolOf } from './action-policy.ts';
import type { ActionScope } from './action-scope.ts';

/** A question as people see it. */
export type ShownQuestion = NonNullable<EventData['approval_requested']['question']>;

/** `seq`: of the event of its request. `content`: null until it is approved. */
interface Asked {
  readonly seq: number;
  readonly content: JsonObject | null;
  readonly isDelivered: boolean;
}

export class Questions {
  readonly #scope: Pick<ActionScope, 'context' | 'log' | 'actions'>;
  /** Questions that are not requested yet. */
  readonly #raised = new Map<ActionKey, Question>();
  /** The latest requested question of each action. */
  readonly #asked = new Map<ActionKey, Asked>();

  constructor(scope: Pick<ActionScope, 'context' | 'log' | 'actions'>) {
    this.#scope = scope;
  }

  /** The running attempt has ended with a question. */
  raise(key: ActionKey, question: Question): void {
    this.#raised.set(key, question);
  }

  /** The question that the action's attempt has ended with. */
  take(key: ActionKey): Question {
    const question = this.#raised.get(key);
    if (question === undefined) throw new EngineError('internal', `The question of action ${key} was not recorded`);
    this.#raised.delete(key);
    return question;
  }

  /** The question is requested with the event `seq`. */
  asked(key: ActionKey, seq: number): void {
    this.#asked.set(key, { seq, content: null, isDelivered: false });
  }

  answered(key: ActionKey, content: JsonObject): void {
    const asked = this.#asked.get(key);
    if (asked !== undefined) this.#asked.set(key, { ...asked, content });
  }

  /** An attempt starts: it gets the answer, if there is one. */
  delivered(key: ActionKey): void {
    const asked = this.#asked.get(key);
    if (asked !== undefined) this.#asked.set(key, { ...asked, isDelivered: true });
  }

  /** The answer for the action's next attempt; undefined if its target has not asked. */
  answerOf(key: ActionKey): ActionCall['answer'] {
    const asked = this.#asked.get(key);
    if (asked === undefined || asked.content === null) return undefined;
    return { state: this.#stateOf(asked), content: asked.content };
  }

  /** The action has ended. */
  close(key: ActionKey): void {
    const asked = this.#asked.get(key);
    this.#raised.delete(key);
    this.#asked.delete(key);
    if (asked !== undefined && !asked.isDelivered) this.#withdraw(key, asked);
  }

  /** The run has ended. */
  closeAll(): void {
    for (const key of this.#asked.keys()) this.close(key);
  }

  #withdraw(key: ActionKey, asked: Asked): void {
    const { context, log, actions } = this.#scope;
    const action = actions.declaration(key);
    const { withdraw } = context.executors[action.type];
    if (withdraw === undefined || log.replaying) return;
    const runtimeKey = `${context.sessionKey}/${context.runNumber}/${key}`;
    const withdrawn = async (): Promise<void> =>
      withdraw(
        { action, runtimeKey, tool: toolOf(action, context.resolved), state: this.#stateOf(asked) },
        { mcp: context.mcp ?? null },
      );
    // The action has ended, whatever the target says.
    log.afterSync(() => void withdrawn().catch(() => undefined));
  }

  #stateOf({ seq }: Asked): JsonObject {
    const state = this.#scope.context.journal.stateAt(seq)?.['question'];
    return isJsonObject(state) ? state : {};
  }
}

/** The question as people see it, or why they cannot be asked. */
export function shownQuestion(
  { id }: Pick<ActionDeclaration, 'id'>,
  question: Question,
): { readonly shown: ShownQuestion } | { readonly error: ActionError } {
  const { from, message, schema, url } = question;
  const issue = issueOf(question);
  if (issue !== null) {
    const text = `Action "${id}" cannot ask a person the question of its target: ${issue}`;
    return { error: { code: 'invalid_question', message: text, retryable: false } };
  }
  return {
    shown: {
      from: cut(from.replaceAll(/\s+/g, ' '), limits.questionFromChars),
      message: cut(message, limits.questionChars),
      ...(schema === null ? {} : { schema }),
      ...(url === undefined ? {} : { url }),
    },
  };
}

function cut(text: string, maxChars: number): string {
  return (text.length <= maxChars ? text : `${text.slice(0, maxChars - 1)}…`).toWellFormed();
}

function issueOf({ schema, state, url }: Question): string | null {
  if (url !== undefined && !isShowable(url)) {
    return `its "url" must be an HTTP(S) URL without a user name, of at most ${limits.questionUrlChars} characters`;
  }
  const meter = new WorkMeter(limits.schemaSteps);
  return (
    sizeIssue('state', state, limits.questionStateChars, meter) ??
    (schema === null
      ? null
      : (sizeIssue('schema', schema, limits.questionSchemaChars, meter) ?? formIssue(schema, meter)))
  );
}

function isShowable(url: string): boolean {
  if (url.length > limits.questionUrlChars || !URL.canParse(url)) return false;
  const { protocol, username, password } = new URL(url);
  return (protocol === 'https:' || protocol === 'http:') && username === '' && password === '';
}

function sizeIssue(name: string, value: JsonObject, maxChars: number, meter: WorkMeter): string | null {
  try {
    if (jsonChars(value, maxChars, limits.outcomeDepth, meter) <= maxChars) return null;
  } catch (fault) {
    if (!(fault instanceof TooDeep || fault instanceof WorkExceeded)) throw fault;
  }
  return `its "${name}" is too large (allowed: ${maxChars} characters)`;
}

const PRIMITIVES: ReadonlySet<Json | undefined> = new Set(['string', 'number', 'integer', 'boolean']);

/** Why a schema is not a flat object of primitives; null if it is one. */
function formIssue(schema: JsonObject, meter: WorkMeter): string | null {
  const { type, properties = {} } = schema;
  if (type !== 'object' || !isJsonObject(properties)) return 'its "schema" must describe an object';
  const entries = Object.entries(properties);
  if (entries.length > limits.questionValues) {
    return `its "schema" has ${entries.length} values (allowed: ${limits.questionValues})`;
  }
  for (const [name, property] of entries) {
    if (!isPrimitive(property)) {
      return `the value "${cut(name, limits.excerptChars)}" of its "schema" must be a string, a number, an integer, a boolean, or a list of strings`;
    }
  }
  const unusable = schemaIssue(schema, meter);
  return unusable === null ? null : `its "schema" cannot be used: ${unusable}`;
}

/** A list of strings is a choice of several. */
function isPrimitive(property: Json | undefined): boolean {
  if (!isJsonObject(property)) return false;
  const { type, items } = property;
  if (type === 'array') return isJsonObject(items) && (items['type'] ?? 'string') === 'string';
  return PRIMITIVES.has(type);
}
