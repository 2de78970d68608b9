/** What an evaluation needs of a recorded run: its message, what came before it, its actions and its answer (O3). */
import type { ActionType } from '../../src/domain/action.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import { isJsonObject, parseObject } from '../../src/domain/json.ts';
import type { Json, JsonObject } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import type { RunStatus } from '../../src/domain/session.ts';
import { fold } from '../../src/view/reduce.ts';
import { emptyView } from '../../src/view/run-view.ts';
import { recordedRun } from '../terminal/recorded-run.ts';
import type { Turn } from './dataset.ts';

export interface RecordedAction {
  readonly type: ActionType;
  readonly name: string;
  /** As executed. */
  readonly parameters: JsonObject;
}

export interface Recording {
  readonly session_id: string;
  readonly run_id: string;
  readonly status: RunStatus;
  readonly agent: string;
  readonly message: string;
  /** The branch that the run follows, oldest first. */
  readonly history: readonly Turn[];
  /** Session variables when the run began, as far as the export tells. */
  readonly variables: JsonObject;
  /** The answer that every request for approval got; null without one, and if they differ. */
  readonly approvals: 'approve' | 'deny' | null;
  /** Actions that have completed, in the order of their declaration. */
  readonly actions: readonly RecordedAction[];
  /** Null without one. */
  readonly answer: string | null;
  /** What a case cannot hold, each as a sentence. */
  readonly notes: readonly string[];
}

/** A run with its place among the others. */
interface Place {
  readonly input: JsonObject;
  parent: string | null;
  answer: string | null;
}

/**
 * @param lines of an export
 * @param wanted id of the run; undefined: the last one
 * @throws Error for a line that is not JSON, an export without the run, and a run that was not started by a message
 */
export async function readRecording(lines: AsyncIterable<string>, wanted: string | undefined): Promise<Recording> {
  const seen = new Surroundings();
  const { run_id: id, status, events } = await recordedRun(seen.passedOn(lines), wanted);
  const place = seen.places.get(id);
  const { type, content } = place?.input ?? {};
  if (place === undefined || type !== 'message') {
    throw new Error(`the run ${id} was not started by a message, so it cannot be a case`);
  }
  const message = textOf(content);
  if (message === '') throw new Error(`the message of the run ${id} has no text, so it cannot be a case`);
  const notes = [
    ...(isRedacted(message) ? ['the message has redacted text: write another text in its place'] : []),
    ...(hasFiles(content) ? ['the images and files of the message are left out'] : []),
    ...(place.input['tools'] === undefined ? [] : ['the client tools of the message are left out']),
    ...(place.input['instructions'] === undefined ? [] : ['the instructions of the application are left out']),
    ...(events.some((event) => event.type === 'message_received') ? ['messages during the run are left out'] : []),
  ];
  const history = seen.historyOf(place.parent, notes);
  const variables = withoutRedacted(seen.variablesAt(events[0]?.seq ?? Infinity, notes), notes);
  const approvals = approvalsIn(events, notes);
  return {
    session_id: seen.session.id,
    run_id: id,
    status,
    agent: seen.session.agent,
    message,
    history,
    variables,
    approvals,
    actions: actionsIn(events),
    answer: place.answer,
    notes,
  };
}

/** What the lines of an export say, without the events of one run. */
class Surroundings {
  readonly places = new Map<string, Place>();
  session = { id: '', agent: '' };
  readonly #seeded: Turn[] = [];
  #unseeded = 0;
  #seededWithFiles = 0;
  #latest: string | null = null;
  #variables: JsonObject = {};
  readonly #changes: { readonly seq: number; readonly key: string; readonly value: Json | undefined }[] = [];

  async *passedOn(lines: AsyncIterable<string>): AsyncGenerator<string> {
    for await (const line of lines) {
      const value = parseObject(line);
      if (value !== null) this.#take(value);
      yield line;
    }
  }

  /** @param notes gets what is left out */
  historyOf(parent: string | null, notes: string[]): Turn[] {
    const turns: Turn[][] = [];
    let [withFiles, withoutText] = [this.#seededWithFiles, 0];
    const passed = new Set<string>();
    for (let id = parent; id !== null;) {
      const place = this.places.get(id);
      if (place === undefined) break;
      // No system writes it, but a file may say that a run follows itself.
      if (passed.has(id)) throw new Error(`the run ${id} follows itself: not an export of a session`);
      passed.add(id);
      const { type, content } = place.input;
      const asked = type === 'message' ? textOf(content) : '';
      if (asked === '') withoutText += 1;
      else {
        if (hasFiles(content)) withFiles += 1;
        const answered: Turn[] =
          (place.answer ?? '') === '' ? [] : [{ role: 'assistant', content: place.answer ?? '' }];
        turns.unshift([{ role: 'user', content: asked }, ...answered]);
      }
      id = place.parent;
    }
    if (this.#unseeded > 0) notes.push(`${this.#unseeded} messages of the seeded history without text are left out`);
    if (withoutText > 0) notes.push(`earlier runs without a text message are left out of the history: ${withoutText}`);
    if (withFiles > 0)
      notes.push(`the images and files of messages of the history are left out: ${withFiles} messages`);
    const all = [...this.#seeded, ...turns.flat()];
    const most = limits.seededMessages;
    if (all.length > most) notes.push(`the ${all.length - most} oldest messages of the history are left out`);
    const kept = all.slice(-most);
    const redacted = kept.filter(({ content }) => isRedacted(content)).length;
    if (redacted > 0) {
      notes.push(`messages of the history have redacted text: ${redacted}; write another text in its place`);
    }
    return kept;
  }

  /** The export has the variables at its end; changes before and after the run are events. */
  variablesAt(seq: number, notes: string[]): JsonObject {
    const variables = { ...this.#variables };
    const unknown = new Set<string>();
    for (const change of this.#changes) {
      if (change.seq >= seq) continue;
      if (change.value === undefined) delete variables[change.key];
      else variables[change.key] = change.value;
    }
    const before = new Set(this.#changes.filter((change) => change.seq < seq).map(({ key }) => key));
    for (const { key } of this.#changes) if (!before.has(key)) unknown.add(key);
    for (const key of unknown) delete variables[key];
    if (unknown.size > 0) {
      notes.push(`the first values of these variables are not recorded: ${[...unknown].join(', ')}`);
    }
    return variables;
  }

  #take(line: JsonObject): void {
    const { session, seeded, run, variables } = line;
    if (isJsonObject(session ?? null)) {
      const { session_id: id, agent } = session as JsonObject;
      this.session = { id: String(id ?? ''), agent: String(agent ?? '') };
    } else if (isJsonObject(seeded ?? null)) this.#takeSeeded(seeded as JsonObject);
    else if (isJsonObject(run ?? null)) this.#takeRun(run as JsonObject);
    else if (isJsonObject(variables ?? null)) this.#variables = variables as JsonObject;
    else if (typeof line['seq'] === 'number') this.#takeEvent(line as unknown as SessionEvent);
  }

  #takeSeeded({ role, content }: JsonObject): void {
    const text = textOf(content);
    if ((role === 'user' || role === 'assistant') && text !== '') {
      this.#seeded.push({ role, content: text });
      if (hasFiles(content)) this.#seededWithFiles += 1;
    } else this.#unseeded += 1;
  }

  #takeRun({ run_id: id, input }: JsonObject): void {
    if (typeof id !== 'string') return;
    this.places.set(id, {
      input: isJsonObject(input ?? null) ? (input as JsonObject) : {},
      parent: this.#latest,
      answer: null,
    });
    this.#latest = id;
  }

  #takeEvent(event: SessionEvent): void {
    const place = this.places.get(event.run_id ?? '');
    if (event.type === 'run_branched' && place !== undefined) place.parent = event.data.parent_run;
    if (event.type === 'agent_completed' && place !== undefined) place.answer = event.data.response;
    if (event.type === 'variable_changed') {
      this.#changes.push({ seq: event.seq ?? 0, key: event.data.key, value: event.data.value });
    }
  }
}

/** Those that have completed, with the parameters that were executed. */
function actionsIn(events: readonly SessionEvent[]): RecordedAction[] {
  const { actions } = events.reduce((view, event) => fold(view, event), emptyView(''));
  return actions.flatMap(({ status, type, name, parameters }) =>
    status === 'completed' && type !== null ? [{ type, name: name ?? type, parameters: parameters ?? {} }] : [],
  );
}

/** One answer for all requests, as a case has it. @param notes gets what a case cannot repeat */
function approvalsIn(events: readonly SessionEvent[], notes: string[]): Recording['approvals'] {
  const resolved = events.filter((event) => event.type === 'approval_resolved').map(({ data }) => data);
  const answers = new Set(resolved.map(({ approved }) => approved));
  if (resolved.some(({ content }) => content !== undefined)) {
    notes.push('the values that answered questions are left out: a case only approves or denies');
  }
  if (answers.size > 1) {
    notes.push('some approvals were granted and others denied: set "approvals" to approve or deny');
    return null;
  }
  const [approved] = answers;
  return approved === undefined ? null : approved ? 'approve' : 'deny';
}

/** Variables whose text a pattern has hidden would have another value in the case. @param notes gets their names */
function withoutRedacted(variables: JsonObject, notes: string[]): JsonObject {
  const hidden = Object.entries(variables).filter((entry) => isRedacted(JSON.stringify(entry)));
  if (hidden.length === 0) return variables;
  const keys = hidden.map(([key]) => key);
  notes.push(`these variables have redacted text and are left out: ${keys.join(', ')}`);
  return Object.fromEntries(Object.entries(variables).filter(([key]) => !keys.includes(key)));
}

/** Whether a pattern has hidden a part of the text (docs/redaction.md). */
export function isRedacted(text: string): boolean {
  return /\[redacted(?: \d+)?\]/.test(text);
}

/** The text of a content: a text, or the text parts of a list. */
function textOf(content: Json | undefined): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .flatMap((part) => (isJsonObject(part) && typeof part['text'] === 'string' ? [part['text']] : []))
    .join('\n');
}

function hasFiles(content: Json | undefined): boolean {
  return Array.isArray(content) && content.some((part) => isJsonObject(part) && part['type'] !== 'text');
}
