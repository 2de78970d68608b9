/** Measures one run of a task by the events of its journal, against the ideal plan. */
import type { EventOf, SessionEvent } from '../../../src/domain/event.ts';
import type { Json } from '../../../src/domain/json.ts';
import { referenceNames } from '../../../src/protocol/references/references.ts';
import type { Kind, Task } from '../tasks/dataset.ts';
import { FORM_PROTOCOLS } from '../tasks/forms.ts';
import type { FormName } from '../tasks/forms.ts';
import type { IdealPlan } from '../tasks/ideal-plan.ts';
import { idealCompletionTokens } from '../tasks/ideal-text.ts';
import { callsOf } from './calls.ts';
import type { CallMeasures } from './calls.ts';
import { checkAnswer } from './check-answer.ts';
import { judgeGenerations, REFERENCE_WARNINGS, writtenIn } from './mistakes.ts';
import type { Mistake } from './mistakes.ts';
import { scheduleOf } from '../tasks/schedule.ts';
import type { ScheduledCall } from '../tasks/schedule.ts';
import type { TaskRun } from '../run/session.ts';

export interface RunMeasures {
  readonly task: string;
  readonly kind: Kind;
  readonly form: FormName;
  /** 1-based. */
  readonly repetition: number;
  readonly solved: boolean;
  /** Why it is not solved. */
  readonly reason: string | null;
  /** The endpoint failed: the run says nothing about the model. */
  readonly endpointError: string | null;
  /** Validity of each generation, from 0 to 1. */
  readonly validity: readonly number[];
  readonly idealGenerations: number;
  /** Compared with the plan, by tool. */
  readonly calls: CallMeasures;
  readonly rejected: number;
  readonly failed: number;
  /** Actions whose JSON was repaired. */
  readonly repaired: number;
  /** Codes of warnings. */
  readonly warnings: readonly string[];
  /** Values handed over by reference: how many the plan has and how many the run has; references without a value. */
  readonly references: {
    readonly needed: number;
    readonly used: number;
    /** To an action of the run, with a path that does not exist. */
    readonly missing: number;
    /** To no action of the run. */
    readonly unknown: number;
  };
  /** Nominal milliseconds of what the model planned, and of the ideal plan. */
  readonly makespanMs: number;
  readonly idealMs: number;
  /** As the endpoint counts them; estimated if it does not. */
  readonly usage: {
    readonly prompt: number;
    readonly completion: number;
    readonly calls: number;
    readonly estimated: boolean;
    readonly cost: number | null;
  };
  /** Weighted estimates, for comparison with the ideal: an output token counts as `OUTPUT_WEIGHT` input tokens. */
  readonly effort: number;
  readonly idealEffort: number;
  /** Milliseconds from the start of the run. Null: no action started. */
  readonly firstActionMs: number | null;
  readonly ms: number;
  readonly mistakes: readonly Mistake[];
}

/** Providers charge about this much more for an output token than for an input token. */
const OUTPUT_WEIGHT = 4;
/** A model may write as much again as the ideal text has: a thought before it acts. */
const ROOM_FOR_THOUGHTS = 2;

/** The code of a run that says nothing about the model. */
const ENDPOINT_FAILED = 'endpoint_failed';
const MODEL_ERRORS: ReadonlySet<string> = new Set(['model_unavailable', 'model_rejected']);
/**
 * The endpoint does not accept what this run sends, although it has accepted the first requests: the conversation is too
 * long, or the model has written what the endpoint cannot read. That is the result of the run.
 */
const REJECTED_REQUESTS: ReadonlySet<number> = new Set([400, 413, 422]);

export function measure(
  { task, form, repetition, ideal }: MeasuredTask,
  run: TaskRun,
  msOf: (tool: string) => number,
): RunMeasures {
  const { document, events, generations, modelFailure } = run;
  // Text that the endpoint prevented does not count as the model's.
  const judged = judgeGenerations(form, events, modelFailure === null ? generations : generations.slice(0, -1));
  const calls = callsOf(task, document.actions, events);
  const unsolved = whyUnsolved(task, run, calls);
  const warnings = document.warnings.map(({ code }) => code);
  const broken = document.warnings.filter(({ code }) => REFERENCE_WARNINGS.has(code));
  const { prompt_tokens: prompt, completion_tokens: completion, model_calls, estimated, cost } = document.usage;
  const started = events.find(({ type }) => type === 'action_started');
  const wrote = writtenIn(generations.at(-1));
  const mistakes = [
    ...judged.flatMap((one) => one.mistakes),
    ...broken.map(({ code, message }) => ({ code, message, wrote })),
    ...(calls.premature === 0 ? [] : [{ code: 'premature_call', message: prematureMessage(calls), wrote }]),
    ...(unsolved === null ? [] : [{ ...unsolved, wrote }]),
  ];
  return {
    task: task.name,
    kind: task.kind,
    form,
    repetition,
    solved: unsolved === null,
    reason: unsolved?.message ?? null,
    endpointError: unsolved?.code === ENDPOINT_FAILED ? unsolved.message : null,
    validity: judged.map(({ validity }) => validity),
    idealGenerations: ideal.generations.length,
    calls,
    rejected: events.filter(({ type }) => type === 'action_rejected').length,
    failed: events.filter(({ type }) => type === 'action_failed').length,
    repaired: events.filter((event) => event.type === 'action_queued' && event.data.repaired === true).length,
    warnings,
    references: {
      needed: ideal.handOvers,
      used: form === 'tool_calls' ? 0 : handOversIn(events, generations),
      missing: warnings.filter((code) => code === 'missing_path').length,
      unknown: warnings.filter((code) => code === 'unknown_reference').length,
    },
    makespanMs: makespanOf(events, generations.length, { slots: task.slots, msOf }),
    idealMs: ideal.schedule.makespanMs,
    usage: { prompt, completion, calls: model_calls, estimated: estimated === true, cost: cost ?? null },
    effort: generations.reduce((sum, one) => sum + one.promptTokens + OUTPUT_WEIGHT * one.completionTokens, 0),
    idealEffort: idealEffort(task, ideal, { form, promptTokens: generations[0]?.promptTokens ?? 0 }),
    firstActionMs: started === undefined ? null : started.timestamp - document.started_at,
    ms: (document.ended_at ?? document.started_at) - document.started_at,
    mistakes,
  };
}

/** @returns null if the run is solved: the answer is right, and the tools have returned what it needs */
function whyUnsolved(
  task: Task,
  { document: { status, error, response }, modelFailure }: TaskRun,
  { missing }: CallMeasures,
): Pick<Mistake, 'code' | 'message'> | null {
  if (status !== 'completed') {
    const message = error?.message ?? 'no reason';
    const isModelError = error !== null && MODEL_ERRORS.has(error.code);
    if (!isModelError) return { code: 'wrong_answer', message: `the run is ${status}: ${message}` };
    // Without a failure of the request, the endpoint has withheld the answer: a content filter.
    const isRejected =
      error.code === 'model_rejected' &&
      (modelFailure === null || (modelFailure.status !== null && REJECTED_REQUESTS.has(modelFailure.status)));
    return { code: isRejected ? 'model_rejected' : ENDPOINT_FAILED, message };
  }
  const message = checkAnswer(task.expect, response);
  if (message !== null) return { code: 'wrong_answer', message };
  if (missing === 0) return null;
  return { code: 'missing_call', message: `calls that the answer needs have not completed: ${missing}` };
}

function prematureMessage({ premature }: CallMeasures): string {
  return `calls that depend on a result were made before it was read, or are not needed: ${premature}`;
}

export interface MeasuredTask {
  readonly task: Task;
  readonly form: FormName;
  readonly repetition: number;
  readonly ideal: IdealPlan;
}

/** Every generation has at least the first prompt; the whole completion is written once. */
function idealEffort(
  task: Task,
  ideal: IdealPlan,
  { form, promptTokens }: { readonly form: FormName; readonly promptTokens: number },
): number {
  const completion = idealCompletionTokens(task, ideal, FORM_PROTOCOLS[form].form);
  return ideal.generations.length * promptTokens + OUTPUT_WEIGHT * ROOM_FOR_THOUGHTS * completion;
}

/** Pairs of an action, or of the responses of a generation, and the name of an action that they refer to. */
function handOversIn(events: readonly SessionEvent[], generations: TaskRun['generations']): number {
  const names = new Set<string>();
  let count = 0;
  const add = (value: Json): void => {
    count += referenceNames(value).filter((name) => names.has(name)).length;
  };
  for (const event of events) {
    if (event.type !== 'action_queued') continue;
    add(event.data.parameters);
    names.add(event.action_id);
    if (event.data.output_key !== null) names.add(event.data.output_key);
  }
  // The text as it was written: in the journal, references have become values.
  for (const { text } of generations) {
    for (const [, response = ''] of text.matchAll(/<response\b[^>]*>([^]*?)(?:<\/response\s*>|$)/gi)) add(response);
  }
  return count;
}

/** The nominal time of what the model planned. Rejected and skipped actions take none. */
function makespanOf(
  events: readonly SessionEvent[],
  generations: number,
  { slots, msOf }: { readonly slots: number; readonly msOf: (tool: string) => number },
): number {
  const attempts = new Map<string, number>();
  const waves = new Map<string, number>();
  const keyOf = (iteration: number, id: string): string => `${iteration}/${id}`;
  for (const event of events) {
    if (event.type === 'action_started') {
      attempts.set(keyOf(event.iteration, event.action_id), event.data.attempt);
    } else if (event.type === 'plan_generated') {
      for (const [wave, ids] of event.data.waves.entries())
        for (const id of ids) waves.set(keyOf(event.iteration, id), wave);
    }
  }
  const queued = events.filter((event): event is EventOf<'action_queued'> => event.type === 'action_queued');
  const plan = Array.from({ length: generations }, (_, index): ScheduledCall[] => {
    const own = queued.filter(({ iteration }) => iteration === index + 1);
    return own.map(({ action_id: id, action_name: name, data }, at) => {
      const key = keyOf(index + 1, id);
      // A sync action holds the later ones back; the plan report has them in later waves (S4).
      const barriers = own.slice(0, at).filter((other) => {
        const otherWave = waves.get(keyOf(index + 1, other.action_id)) ?? 0;
        return other.data.mode === 'sync' && (waves.get(key) ?? 0) > otherWave;
      });
      const needs = [...data.depends_on, ...barriers.map((other) => other.action_id)];
      return {
        key,
        ms: msOf(name ?? '') * (attempts.get(key) ?? 0),
        needs: needs.map((other) => keyOf(index + 1, other)),
      };
    });
  });
  return scheduleOf(plan, slots).makespanMs;
}
