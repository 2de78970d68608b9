/** Common parts of all definitions: base fields, retries, timeouts, images (M1). */
import type { RetryPolicy } from '../../domain/action.ts';
import type { DescribedTool } from '../../domain/code-tool.ts';
import type { IntervalLimits } from '../../domain/intervals.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { ManifestBase } from '../../domain/manifests/base.ts';
import type { RunnerNeeds, SandboxLevel, ScriptRuntime } from '../../domain/manifests/program.ts';
import type { WorkMeter } from '../../domain/work.ts';
import type { FieldPath } from '../check/problem.ts';
import type { ToolInput } from '../schema/schema.ts';
import { toMs } from '../schema/units.ts';

/** What the loader provides to a builder. */
export interface BuildContext {
  addIssue(path: FieldPath, message: string): void;
  warn(path: FieldPath, message: string): void;
  /** The text of a file, by its path relative to the manifest; reports an issue and returns null if it is missing. */
  readFile(path: string, field: FieldPath): string | null;
  /** Whether there is a file, by its path relative to the manifest. */
  hasFile(path: string): boolean;
  /** The files below a folder, both relative to the manifest; at most `limits.contextFiles` and one more. */
  listFiles(folder: string): readonly string[];
  /** The code tools of the project by name; none if the manifest is not part of a project. */
  readonly codeTools: ReadonlyMap<string, DescribedTool>;
  /** Free fields by path, kept under `metadata`. */
  readonly free: JsonObject;
  /** Minimum intervals of feeds and schedules; null for a manifest that is already stored, which stays valid. */
  readonly intervals: IntervalLimits | null;
  /** Charged for parsing schemas; one meter for the whole manifest. */
  readonly work: WorkMeter;
}

type BaseInput = Pick<
  ToolInput,
  'name' | 'version' | 'summary' | 'description' | 'author' | 'state' | 'tags' | 'metadata'
>;

export function toBase(input: BaseInput, free: JsonObject): ManifestBase {
  return {
    name: input.name,
    version: input.version,
    summary: input.summary,
    description: input.description ?? '',
    tags: input.tags ?? [],
    metadata: {
      ...input.metadata,
      ...(input.author === undefined ? {} : { author: input.author }),
      ...(input.state === undefined ? {} : { state: input.state }),
      ...free,
    },
  };
}

export function toRetry(retry: NonNullable<ToolInput['retry']>): RetryPolicy {
  const policy = typeof retry === 'number' ? { max_attempts: retry } : retry;
  return {
    maxAttempts: policy.max_attempts ?? limits.retryAttempts,
    backoff: policy.backoff ?? 'exponential',
    delayMs: policy.delay === undefined ? limits.retryDelayMs : toMs(policy.delay),
    maxDelayMs: policy.max_delay === undefined ? limits.retryMaxDelayMs : toMs(policy.max_delay),
  };
}

export function toTimeoutMs(
  timeout: number | string | undefined,
  field: FieldPath,
  context: Pick<BuildContext, 'addIssue'>,
  mostMs: number = limits.maxActionTimeoutMs,
): number | null {
  if (timeout === undefined) return null;
  const ms = toMs(timeout);
  if (ms < 1 || ms > mostMs) {
    context.addIssue(field, `must be between 1 ms and ${mostMs / 1_000} s, found ${timeout}`);
  }
  return ms;
}

const RUNTIME_BY_SUFFIX: readonly (readonly [RegExp, ScriptRuntime])[] = [
  [/\.py$/, 'python3'],
  [/\.[cm]?[jt]s$/, 'node'],
  [/\.(sh|bash)$/, 'shell'],
];

/** Infers the interpreter from a script's file extension. */
export function runtimeOf(path: string): ScriptRuntime | undefined {
  return RUNTIME_BY_SUFFIX.find(([suffix]) => suffix.test(path))?.[1];
}

/** Converts runner requirements to the executors' form; omits absent fields. */
export function toNeeds(
  written: { readonly sandbox?: SandboxLevel | undefined; readonly labels?: readonly string[] | undefined } | undefined,
): RunnerNeeds {
  const { sandbox: level, labels } = written ?? {};
  return {
    ...(level === undefined ? {} : { sandbox: level }),
    ...(labels === undefined || labels.length === 0 ? {} : { labels: [...new Set(labels)] }),
  };
}
