/** Dry-runs protocol texts of the original system, and notes what this system reads differently. */
import type { ActionDeclaration } from '../../src/domain/action.ts';
import type { ManifestFile } from '../../src/domain/catalog.ts';
import type { ProtocolEvent } from '../../src/domain/protocol-event.ts';
import { planText } from '../../src/dry-run/dry-run.ts';
import { createParser } from '../../src/protocol/parser/parser.ts';

export interface ProtocolText {
  /** `program`: the file runs as it is. `prompt`: a text with examples, each of which is a program. */
  readonly form: 'program' | 'prompt';
  readonly actions: number;
  readonly responses: number;
  readonly rejected: readonly ProtocolNote[];
  readonly notes: readonly ProtocolNote[];
}

export interface ProtocolNote {
  /** 1-based; null if the note is about the whole text. */
  readonly line: number | null;
  readonly message: string;
}

const ACTION = /<action[\s>/]/;
const ACTION_OR_RESPONSE = /<(action|response)[\s>/]/;
/** Folders and files with texts that teach the protocol; documents about it only describe it. */
const PROMPT_NAME = /prompt|persona|harness|protocol/i;
const DOCUMENT_NAME = /(^|\/)(docs?\/|readme|changelog)/i;

/**
 * The protocol text of a file; null if it has none.
 *
 * @param isReferred whether a manifest names the file
 */
export function protocolText({ path, text }: ManifestFile, isReferred: boolean): ProtocolText | null {
  if (/\.(protocol|xml)$/i.test(path)) {
    return /\.protocol$/i.test(path) || ACTION_OR_RESPONSE.test(text) ? read('program', [text]) : null;
  }
  if (!/\.(md|markdown|txt)$/i.test(path) || !(isReferred || isPrompt(path))) return null;
  const examples = examplesOf(text);
  return examples.length === 0 ? null : read('prompt', examples);
}

function isPrompt(path: string): boolean {
  return PROMPT_NAME.test(path) && !DOCUMENT_NAME.test(path);
}

/** The code blocks with actions or responses, each at its line of the file; without any, the whole text with actions. */
function examplesOf(text: string): readonly string[] {
  const blocks: string[] = [];
  let open: { readonly fence: string; readonly line: number; readonly lines: string[] } | null = null;
  for (const [index, line] of text.split('\n').entries()) {
    const fence = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1] ?? null;
    if (open === null) {
      if (fence !== null) open = { fence, line: index + 1, lines: [] };
    } else if (fence?.startsWith(open.fence) === true) {
      blocks.push('\n'.repeat(open.line) + open.lines.join('\n'));
      open = null;
    } else open.lines.push(line);
  }
  const examples = blocks.filter((block) => ACTION_OR_RESPONSE.test(block));
  return examples.length === 0 && ACTION.test(text) ? [text] : examples;
}

function read(form: ProtocolText['form'], programs: readonly string[]): ProtocolText {
  const all = programs.map((program) => readProgram(program, form));
  return {
    form,
    actions: all.reduce((sum, { actions }) => sum + actions, 0),
    responses: all.reduce((sum, { responses }) => sum + responses, 0),
    rejected: all.flatMap(({ rejected }) => rejected),
    notes: all.flatMap(({ notes }) => notes),
  };
}

function readProgram(text: string, form: ProtocolText['form']): Omit<ProtocolText, 'form'> {
  const parser = createParser({ json: 'repair', actInReasoning: false });
  const events = [...parser.feed(text), ...parser.end()];
  const lineOf = (offset: number): number => text.slice(0, offset).split('\n').length;
  const actions = events.flatMap((event) => (event.type === 'action_declared' ? [event.action] : []));
  const rejected = events.flatMap((event) => (event.type === 'action_rejected' ? [event.rejection] : []));
  const known = new Set(rejected.map(({ id, code }) => `${id} ${code}`));
  const plan = planText(text, null) as unknown as { readonly rejected: readonly PlanRejection[] };
  const unplanned = plan.rejected.filter(({ id, code }) => !known.has(`${id} ${code}`));
  const lineOfAction = (id: string): number | null => {
    const action = actions.find((one) => one.id === id);
    return action === undefined ? null : lineOf(action.span.start);
  };
  const notes: ProtocolNote[] = [...warningsOf(events, lineOf), ...differencesOf(events, actions, lineOf, form)];
  return {
    actions: actions.length,
    responses: events.filter(({ type }) => type === 'response_started').length,
    rejected: [
      ...rejected.map(({ line, message }) => ({ line, message: `rejected: ${message}` })),
      ...unplanned.map(({ id, message }) => ({ line: lineOfAction(id), message: `rejected: ${message}` })),
    ],
    notes: notes.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0)),
  };
}

interface PlanRejection {
  readonly id: string;
  readonly code: string;
  readonly message: string;
}

function warningsOf(events: readonly ProtocolEvent[], lineOf: (offset: number) => number): ProtocolNote[] {
  return events.flatMap((event) =>
    event.type === 'warning' ? [{ line: lineOf(event.offset), message: warningText(event.code, event.message) }] : [],
  );
}

function warningText(code: string, message: string): string {
  return code === 'foreign_form' ? message : `${code}: ${message}`;
}

/** Forms that the original's versions read differently from each other, or from this system. */
function differencesOf(
  events: readonly ProtocolEvent[],
  actions: readonly ActionDeclaration[],
  lineOf: (offset: number) => number,
  form: ProtocolText['form'],
): ProtocolNote[] {
  const notes: ProtocolNote[] = [];
  let responseLine = 1;
  for (const event of events) {
    if (event.type === 'response_started') {
      responseLine = lineOf(event.offset);
      if (event.final === null) notes.push({ line: responseLine, message: WITHOUT_FINAL });
      else if (event.final && actions.length > 0) notes.push({ line: responseLine, message: FINAL_WITH_ACTIONS });
    } else if (event.type === 'response_reference') {
      const { raw, path } = event.reference;
      if (raw.startsWith('${') && path.length === 0) notes.push({ line: responseLine, message: wholeResult(raw) });
    } else if (event.type === 'action_declared') {
      const { action } = event;
      const line = lineOf(action.span.start);
      if (action.embeddedInThought) notes.push({ line, message: IN_THOUGHT });
      if (action.mode === 'async' && (action.dependsOn?.length ?? 0) > 0) notes.push({ line, message: ASYNC_DEPENDS });
    }
  }
  const hasProgram = events.some(({ type }) => /^(action_|response_started)/.test(type));
  if (!hasProgram && form === 'program') notes.push({ line: null, message: ONLY_TEXT });
  return notes;
}

const WITHOUT_FINAL =
  'a response without "final": the remaining work decides (1.0: final; agent-lib: not final); protocol.response_default of the agent sets it';
const FINAL_WITH_ACTIONS =
  'final="true" next to actions: it waits for the values that it names; the run goes on if an action fails';
const IN_THOUGHT = 'an action inside a thought: it runs (1.1: the same; agent-lib: text)';
const ASYNC_DEPENDS = 'depends_on of an async action: allowed (agent-lib: an error)';
const ONLY_TEXT = 'neither an action nor a response: the text is the answer (agent-lib: never an answer)';

function wholeResult(raw: string): string {
  return `${raw} is the whole result (agent-lib: its member output, stdout or content); name the member, such as \${id.output}`;
}
