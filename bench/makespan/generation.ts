/** The output of a scripted model: protocol text in either form, or native calls, cut into tokens. */
import { decode, encode } from 'gpt-tokenizer';
import { renderAction } from '../../src/protocol/prompt/examples.ts';
import type { WorkAction, Workload } from './workloads.ts';

/** One piece of text, or of a native call's arguments, per token. */
export type Segment =
  | { readonly type: 'text'; readonly pieces: readonly string[]; readonly closes: string | null }
  | {
      readonly type: 'call';
      readonly id: string;
      readonly name: string;
      /** Tokens before the arguments: the marker and the name. */
      readonly headTokens: number;
      readonly pieces: readonly string[];
      /** Tokens after the arguments: the end marker. */
      readonly tailTokens: number;
    };

export interface Generation {
  readonly segments: readonly Segment[];
}

export type Form = 'full' | 'compact';

/** Output options of this system's model. */
export interface OutputForm {
  readonly form: Form;
  /** Answers in the generation with the plan, with references to the results. */
  readonly oneGeneration: boolean;
  /** Every action and the answer get as many tokens as in native calls, whatever their text. */
  readonly equalTokens: boolean;
}

/** The text token by token (o200k). */
export function tokensOf(text: string): string[] {
  return encode(text).map((token) => decode([token]));
}

export function tokenCount(segment: Segment): number {
  return segment.pieces.length + (segment.type === 'call' ? segment.headTokens + segment.tailTokens : 0);
}

/** The action in protocol text, as the prompt teaches it: in the compact form it has an id only if something refers to it. */
export function actionText(action: WorkAction, form: Form, referred: ReadonlySet<string>): string {
  const parameters = parametersOf(action, (id) => `$${id}.q`);
  const id = form === 'full' || referred.has(action.id) ? { id: action.id } : {};
  return `${renderAction({ name: action.tool, mode: 'async', parameters, ...id }, form)}\n`;
}

/** The actions that another action or the answer refers to. */
export function referencedIds(workload: Workload, oneGeneration: boolean): Set<string> {
  const inputs = workload.actions.flatMap(({ after }) => after);
  return new Set([...inputs, ...(oneGeneration ? told(workload).map(({ id }) => id) : [])]);
}

/** The action as a native call, with its inputs written out, because they are known by then. */
export function nativeSegment(action: WorkAction, actions: ReadonlyMap<string, WorkAction>): Segment {
  const pieces = tokensOf(JSON.stringify(parametersOf(action, (id) => actions.get(id)?.q ?? '')));
  return {
    type: 'call',
    id: action.id,
    name: action.tool,
    headTokens: tokensOf(`<tool_call>{"name":"${action.tool}","arguments":`).length,
    pieces,
    tailTokens: tokensOf('}</tool_call>\n').length,
  };
}

function parametersOf(action: WorkAction, value: (id: string) => string): Record<string, string | number> {
  return {
    ...(action.ms > 0 ? { delay_ms: action.ms } : {}),
    q: action.q,
    ...(action.after.length > 0 ? { of: action.after.map((id) => value(id)).join(' ') } : {}),
  };
}

/** All generations of a run of this system: plans in batches, then the answer. */
export function protocolGenerations(workload: Workload, output: OutputForm): Generation[] {
  const byId = new Map(workload.actions.map((action) => [action.id, action]));
  const referred = referencedIds(workload, output.oneGeneration);
  const generations: Segment[][] = [];
  for (let at = 0; at < workload.actions.length; at += workload.batch) {
    generations.push(
      workload.actions.slice(at, at + workload.batch).map((action) => {
        const text = actionText(action, output.form, referred);
        const pieces = output.equalTokens ? cut(text, tokenCount(nativeSegment(action, byId))) : tokensOf(text);
        return { type: 'text', pieces, closes: action.id };
      }),
    );
  }
  if (workload.thinkingTokens > 0) {
    generations[0]?.push(text('<thought>'), thinking(workload.thinkingTokens), text('</thought>\n'));
  }
  const plain = answerOf(workload, (id) => byId.get(id)?.q ?? '');
  const content = output.oneGeneration ? answerOf(workload, (id) => `$${id}.q`) : plain;
  const answer = `<response final="true">${content}</response>`;
  const pieces = output.equalTokens ? cut(answer, tokensOf(plain).length) : tokensOf(answer);
  if (!output.oneGeneration) generations.push([]);
  generations.at(-1)?.push({ type: 'text', pieces, closes: null });
  return generations.map((segments) => ({ segments }));
}

/** The next output of a model with native calls: all calls whose inputs are known, or the answer. */
export function nativeGeneration(workload: Workload, done: ReadonlySet<string>): Generation & { calls: WorkAction[] } {
  const byId = new Map(workload.actions.map((action) => [action.id, action]));
  const calls = workload.actions
    .filter(({ id, after }) => !done.has(id) && after.every((other) => done.has(other)))
    .slice(0, workload.batch);
  if (calls.length === 0) return { segments: [text(answerOf(workload, (id) => byId.get(id)?.q ?? ''))], calls };
  const segments: Segment[] = calls.map((action) => nativeSegment(action, byId));
  if (done.size === 0 && workload.thinkingTokens > 0) segments.push(thinking(workload.thinkingTokens));
  return { segments, calls };
}

/** About forty tokens with the first results of the plan's last actions. */
function answerOf(workload: Workload, value: (id: string) => string): string {
  const results = told(workload).map(({ id }) => value(id));
  return `This is what I found: ${results.join(', ')}. The sources agree on the main points; figures are rounded, and the notes are kept for later.`;
}

/** Up to four actions whose results no other action uses. */
function told({ actions }: Workload): WorkAction[] {
  const needed = new Set(actions.flatMap(({ after }) => after));
  return actions.filter(({ id }) => !needed.has(id)).slice(0, 4);
}

function text(content: string): Segment {
  return { type: 'text', pieces: tokensOf(content), closes: null };
}

function thinking(tokens: number): Segment {
  return {
    type: 'text',
    pieces: Array.from({ length: tokens }, (_, at) => (at % 12 === 11 ? ' so.' : ' then')),
    closes: null,
  };
}

/** The text in exactly `count` pieces. */
function cut(content: string, count: number): string[] {
  return Array.from({ length: count }, (_, at) =>
    content.slice(Math.floor((at * content.length) / count), Math.floor(((at + 1) * content.length) / count)),
  );
}
