/**
 * Spans of what was observed in a run, by the GenAI conventions of OpenTelemetry (O1).
 *
 * The span of a run contains those of its model calls, of the attempts of its actions, and of the times in which it waited
 * for a person. The run of a sub-agent or workflow is a child of the attempt that started it.
 */
import type { ActionType } from '../domain/action-types.ts';
import type { SessionEvent } from '../domain/event.ts';
import type { TraceParent } from '../domain/trace.ts';
import type {
  Observation,
  ObservedAction,
  ObservedApproval,
  ObservedAttempt,
  ObservedEnd,
  ObservedGeneration,
  ObservedRun,
  ObservedUsage,
} from './observe.ts';
import type { Attributes, Span, SpanEvent, SpanLink } from './otlp.ts';
import type { RunTrace } from './run-trace.ts';

/** The run whose spans these are. */
export interface TracedRun {
  readonly runId: string;
  readonly trace: RunTrace;
  readonly sessionId: string;
  /** Name of the agent or workflow. */
  readonly agent: string;
  readonly kind: 'agent' | 'workflow';
  /** Of the API key; null: the deployment has no keys. */
  readonly namespace: string | null;
  /** Name of the first model; null: the run has none. */
  readonly model: string | null;
}

/** Texts of the run that may be exported, because the operator has asked for them. */
export interface SpanContent {
  /** Called with every event of the run, in order. */
  readonly see: (event: SessionEvent) => void;
  /** @returns null: there is none */
  readonly error: (seq: number) => string | null;
  readonly attributes: (observed: Observation) => Attributes;
}

/** Actions without an attempt that the span of a run lists: a bound of its size. */
const MOST_EVENTS = 128;

const OPERATIONS: Readonly<Partial<Record<ActionType, string>>> = {
  agent: 'invoke_agent',
  workflow: 'invoke_workflow',
  llm: 'chat',
};

/** What the spans of one run are made of: the events of the root are gathered until it ends. */
export class SpanBuilder {
  readonly #run: TracedRun;
  readonly #content: SpanContent | null;
  readonly #events: SpanEvent[] = [];
  #omitted = 0;

  /** @param content null: no text is exported */
  constructor(run: TracedRun, content: SpanContent | null) {
    this.#run = run;
    this.#content = content;
  }

  /** @returns null for what has no span of its own */
  take(observed: Observation): Span | null {
    switch (observed.kind) {
      case 'generation':
        return this.#generation(observed);
      case 'attempt':
        return this.#attempt(observed);
      case 'approval':
        return this.#approval(observed);
      case 'action':
        this.#ended(observed);
        return null;
      case 'call':
        return null;
      case 'run':
        return this.#root(observed);
    }
  }

  #generation(observed: ObservedGeneration): Span {
    const { iteration, firstMs, startMs, usage } = observed;
    const model = usage?.model ?? this.#run.model;
    return this.#span(observed, this.#run.trace.generation(iteration), {
      name: model === null ? 'chat' : `chat ${model}`,
      kind: 'client',
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.request.model': model ?? undefined,
        'gen_ai.request.stream': true,
        'cortex.iteration': iteration,
        'gen_ai.response.time_to_first_chunk': firstMs === null ? undefined : { double: (firstMs - startMs) / 1_000 },
        ...usageOf(usage),
      },
    });
  }

  #attempt(observed: ObservedAttempt): Span {
    const { action, attempt, iteration, queuedMs, usage } = observed;
    const { trace } = this.#run;
    const operation = OPERATIONS[action.type] ?? 'execute_tool';
    const of = { iteration, actionId: action.id, attempt };
    return this.#span(observed, trace.attempt(of), {
      name: `${operation} ${nameOf(action)}`,
      kind: operation === 'execute_tool' ? 'internal' : 'client',
      attributes: {
        'gen_ai.operation.name': operation,
        ...targetOf(observed),
        'cortex.action.type': action.type,
        'cortex.action.id': action.id,
        'cortex.action.attempt': attempt,
        'cortex.action.reused': attempt === 0 ? true : undefined,
        'cortex.action.queue_ms': queuedMs ?? undefined,
        'cortex.action.retried': observed.willRetry ? true : undefined,
        'cortex.iteration': iteration,
        ...usageOf(usage),
      },
      links: this.#links(observed),
    });
  }

  /** The attempts that it depended on, and the failed one before it. */
  #links({ dependsOn, retryOf }: ObservedAttempt): readonly SpanLink[] {
    const { trace } = this.#run;
    const link = ({ traceId, spanId }: TraceParent, type: string): SpanLink => ({
      traceId,
      spanId,
      attributes: { 'cortex.link': type },
    });
    return [
      ...dependsOn.map((on) => link(trace.attempt(on), 'dependency')),
      ...(retryOf === null ? [] : [link(trace.attempt(retryOf), 'retry')]),
    ];
  }

  #approval(observed: ObservedApproval): Span {
    const { approvalId, action, decision, isQuestion } = observed;
    return this.#span(observed, this.#run.trace.approval(approvalId), {
      name: `${isQuestion ? 'question' : 'approval'} ${nameOf(action)}`,
      kind: 'internal',
      attributes: {
        'cortex.approval.id': approvalId,
        'cortex.approval.decision': decision,
        'cortex.action.type': action.type,
        'cortex.action.id': action.id,
      },
    });
  }

  /** An action that ended without an attempt is an event of the run. */
  #ended({ action, status, error, hasStarted, isReused, endMs }: ObservedEnd): void {
    if (hasStarted || isReused) return;
    if (this.#events.length === MOST_EVENTS) {
      this.#omitted += 1;
      return;
    }
    this.#events.push({
      name: `cortex.action.${status}`,
      atMs: endMs,
      attributes: {
        // What was rejected may have any text as its name and id.
        'cortex.action.id': status === 'rejected' ? undefined : action.id,
        'gen_ai.tool.name': status === 'rejected' ? undefined : nameOf(action),
        'cortex.action.type': action.type,
        'error.type': error ?? undefined,
      },
    });
  }

  #root(observed: ObservedRun): Span {
    const { runId, trace, agent, kind, namespace } = this.#run;
    const { status, iterations, version, usage } = observed;
    const span = this.#span(observed, trace.root(), {
      name: `invoke_${kind} ${agent}`,
      kind: 'internal',
      attributes: {
        'gen_ai.operation.name': `invoke_${kind}`,
        ...(kind === 'agent'
          ? { 'gen_ai.agent.name': agent, 'gen_ai.agent.version': version ?? undefined }
          : { 'gen_ai.workflow.name': agent }),
        'cortex.run.id': runId,
        'cortex.run.status': status,
        'cortex.run.iterations': iterations,
        'cortex.namespace': namespace ?? undefined,
        'cortex.events.omitted': this.#omitted === 0 ? undefined : this.#omitted,
        ...usageOf(usage),
      },
      events: [...this.#events],
    });
    return { ...span, parentSpanId: trace.parent?.spanId ?? null };
  }

  #span(
    observed: ObservedRun | ObservedApproval | ObservedAttempt | ObservedGeneration,
    { traceId, spanId }: TraceParent,
    {
      links = [],
      events = [],
      attributes,
      ...head
    }: Pick<Span, 'name' | 'kind' | 'attributes'> & Partial<Pick<Span, 'links' | 'events'>>,
  ): Span {
    const { startMs, endMs, seq } = observed;
    const error = 'error' in observed ? observed.error : null;
    return {
      ...head,
      traceId,
      spanId,
      parentSpanId: this.#run.trace.root().spanId,
      startMs,
      endMs,
      attributes: {
        ...attributes,
        'gen_ai.conversation.id': this.#run.sessionId,
        'error.type': error ?? undefined,
        ...this.#content?.attributes(observed),
      },
      links,
      events,
      isError: error !== null,
      message: error === null ? null : (this.#content?.error(seq) ?? null),
    };
  }
}

/** A name as manifests may have it. A model may write any text as the name of what it calls. */
const NAME = /^[\w.:/-]{1,128}$/;

function nameOf({ name, type }: ObservedAction): string {
  return NAME.test(name) ? name : type;
}

/** The names that the conventions have for what an action calls. */
function targetOf({ action }: ObservedAttempt): Attributes {
  const name = nameOf(action);
  if (action.type === 'agent') return { 'gen_ai.agent.name': name };
  if (action.type === 'workflow') return { 'gen_ai.workflow.name': name };
  if (action.type === 'llm') return {};
  return {
    'gen_ai.tool.name': name,
    'gen_ai.tool.call.id': action.id,
    'gen_ai.tool.type': action.type === 'tool' ? 'function' : 'extension',
  };
}

function usageOf(usage: ObservedUsage | null): Attributes {
  if (usage === null) return {};
  const { inputTokens, outputTokens, cachedTokens, cost, isEstimated } = usage;
  return {
    'gen_ai.usage.input_tokens': inputTokens,
    'gen_ai.usage.output_tokens': outputTokens,
    'gen_ai.usage.cache_read.input_tokens': cachedTokens === 0 ? undefined : cachedTokens,
    'cortex.usage.estimated': isEstimated ? true : undefined,
    'cortex.usage.cost': cost === null ? undefined : { double: cost },
  };
}
