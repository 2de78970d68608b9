/**
 * The call of each action of a run, in two forms: as the model asked, with the values of its references; and final, as it is
 * judged, shown, approved and executed (C9, J8). Lookups of earlier outcomes compare what was asked: two calls that ask the
 * same are equal, also if a default is different each time (P6).
 *
 * Owns where final calls are recorded. Does not own the values of names, which a call without a record is resolved from.
 *
 * Invariants:
 *  1. The final call is always the same one: it is computed from the manifest and the pinned names, or read from its record.
 *  2. A recorded call of a code tool is not parsed again.
 */
import type { ActionDeclaration, ActionKey } from '../../domain/action.ts';
import { EngineError } from '../../domain/errors.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { ToolDefinition } from '../../domain/manifests/tool.ts';
import { completeRelicCall } from '../../executors/relic.ts';
import { completeParameters } from '../../executors/validate-parameters.ts';
import type { Journal } from '../../journal/journal.ts';
import type { ResolvedCall } from '../run/resolve-names.ts';
import type { RunNames } from '../run/run-names.ts';
import { completeInputs } from '../workflow/workflow-inputs.ts';
import type { ActionLog } from './action-log.ts';
import { toolOf } from './action-policy.ts';

type Target = Pick<ActionDeclaration, 'type' | 'name' | 'parameters'>;

export class Calls {
  readonly #context: { readonly journal: Pick<Journal, 'stateAt'>; readonly resolved: ResolvedAgent };
  readonly #names: Pick<RunNames, 'resolve'>;
  readonly #actions: Pick<ActionLog, 'declaration'>;
  /** Actions whose call was prepared before its judgement: completed, checked and parsed. */
  readonly #prepared = new Set<ActionKey>();
  /** The events of judgements. */
  readonly #judgedAt = new Map<ActionKey, number>();
  /** The events of the latest approval requests. */
  readonly #askedAt = new Map<ActionKey, number>();

  constructor({
    context,
    names,
    actions,
  }: {
    readonly context: { readonly journal: Pick<Journal, 'stateAt'>; readonly resolved: ResolvedAgent };
    readonly names: Pick<RunNames, 'resolve'>;
    readonly actions: Pick<ActionLog, 'declaration'>;
  }) {
    this.#context = context;
    this.#names = names;
    this.#actions = actions;
  }

  /** @param seq the event of the judgement, whose state has the final call if it cannot be computed again; null: there is none */
  judged(key: ActionKey, seq: number | null): void {
    this.#prepared.add(key);
    if (seq !== null) this.#judgedAt.set(key, seq);
  }

  /** The call is in the state of this request for an approval. */
  requested(key: ActionKey, seq: number): void {
    this.#askedAt.set(key, seq);
  }

  /** The event of the latest request for an approval; undefined if there is none. */
  requestOf(key: ActionKey): number | undefined {
    return this.#askedAt.get(key);
  }

  /** Whether its parameters were checked before its judgement. */
  isPrepared(key: ActionKey): boolean {
    return this.#prepared.has(key);
  }

  /** Whether the final call cannot be computed again: a parse may give another result each time. */
  isOnlyRecorded(key: ActionKey): boolean {
    return this.#judgedAt.has(key) && codeToolOf(this.#actions.declaration(key), this.#context.resolved) !== null;
  }

  /** As the model asked. */
  asked(key: ActionKey): ResolvedCall {
    const seq = this.#askedAt.get(key);
    if (seq === undefined) return this.#names.resolve(key);
    const state = this.#context.journal.stateAt(seq);
    return storedCall(state, 'asked') ?? recordedCall(state);
  }

  /** As it is judged, shown, approved and executed. */
  final(key: ActionKey): ResolvedCall {
    const { journal, resolved } = this.#context;
    const seq = this.#askedAt.get(key);
    const judgedAt = this.#judgedAt.get(key);
    const call = seq === undefined ? this.#names.resolve(key) : recordedCall(journal.stateAt(seq));
    const action = this.#actions.declaration(key);
    if (codeToolOf(action, resolved) !== null && this.#prepared.has(key)) {
      const judged = seq === undefined && judgedAt !== undefined ? callOf(journal.stateAt(judgedAt)) : null;
      return judged === null ? call : { ...call, parameters: judged.parameters };
    }
    return completeCall(action, call, resolved);
  }
}

/** The code tool whose schema parses the parameters of the action (K2); null for any other action. */
export function codeToolOf(
  action: Pick<Target, 'type' | 'name'>,
  resolved: Pick<ResolvedAgent, 'tools'>,
): ToolDefinition | null {
  const tool = toolOf(action, resolved);
  return tool?.implementation.type === 'code' ? tool : null;
}

/**
 * The call as its target understands it: with the defaults of its schema (D3), and the URL of a page as it is requested. The
 * schema of a code tool has defaults of its own, which the parse fills in.
 */
export function completeCall<Call extends Pick<ResolvedCall, 'parameters'>>(
  action: Target,
  call: Call,
  resolved: Pick<ResolvedAgent, 'tools' | 'relics' | 'workflows'>,
): Call {
  const parameters = completed(action, call.parameters, resolved);
  return parameters === call.parameters ? call : { ...call, parameters };
}

function completed(
  action: Target,
  parameters: JsonObject,
  resolved: Pick<ResolvedAgent, 'tools' | 'relics' | 'workflows'>,
): JsonObject {
  if (action.type === 'relic') return completeRelicCall(action, resolved.relics, parameters);
  if (action.type === 'workflow') {
    const workflow = resolved.workflows.get(action.name);
    return workflow === undefined ? parameters : completeInputs(workflow, parameters);
  }
  const tool = toolOf(action, resolved);
  if (tool === null) return parameters;
  const completed = completeParameters(tool.parameters, parameters, tool.implementation.type !== 'code');
  return isPageTool(tool) ? withParsedUrl(completed) : completed;
}

function isPageTool({ implementation }: ToolDefinition): boolean {
  if (implementation.type !== 'builtin') return false;
  return implementation.entrypoint === 'web_fetch' || implementation.entrypoint === 'web_extract';
}

/** The URL as it is requested: with its host in lower case and its path without `..`. */
function withParsedUrl(parameters: JsonObject): JsonObject {
  const { url } = parameters;
  const href = typeof url === 'string' ? URL.parse(url)?.href : undefined;
  return href === undefined || href === url ? parameters : { ...parameters, url: href };
}

/** The final call in an event's state; null if it has none. */
export function callOf(state: JsonObject | null): ResolvedCall | null {
  return storedCall(state, 'call');
}

/** The same of a request for an approval. @throws EngineError `internal` if it has none */
function recordedCall(state: JsonObject | null): ResolvedCall {
  const call = callOf(state);
  if (call === null) throw new EngineError('internal', 'The call of an approval was not recorded');
  return call;
}

function storedCall(state: JsonObject | null, member: 'call' | 'asked'): ResolvedCall | null {
  const call = state?.[member];
  if (!isJsonObject(call)) return null;
  const { parameters, inputs } = call;
  return isJsonObject(parameters) && isJsonObject(inputs) ? { parameters, inputs, warnings: [] } : null;
}
