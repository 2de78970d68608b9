/** Common parts of all definitions: base fields, retries, timeouts, images (M1). */
import type { RetryPolicy } from '../../domain/action.ts';
import type { IntervalLimits } from '../../domain/intervals.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { ImageBuild, ManifestBase, RunnerNeeds, SandboxLevel, ScriptRuntime } from '../../domain/manifest.ts';
import type { WorkMeter } from '../../domain/work.ts';
import type { FieldPath } from '../check/problem.ts';
import type { ToolInput } from '../schema/schema.ts';
import { toMs } from '../schema/units.ts';

/** What the loader provides to a builder. */
export interface BuildContext {
  addIssue(path: FieldPath, message: string): void;
  /** The text of a file, by its path relative to the manifest; reports an issue and returns null if it is missing. */
  readFile(path: string, field: FieldPath): string | null;
  /** Unknown fields by path, kept under `metadata`. */
  readonly unknown: JsonObject;
  /** Minimum intervals of feeds and schedules; null for a manifest that is already stored, which stays valid. */
  readonly intervals: IntervalLimits | null;
  /** Charged for parsing schemas; one meter for the whole manifest. */
  readonly work: WorkMeter;
}

type BaseInput = Pick<
  ToolInput,
  'name' | 'version' | 'summary' | 'description' | 'author' | 'state' | 'tags' | 'metadata'
>;

export function toBase(input: BaseInput, unknown: JsonObject): ManifestBase {
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
      ...unknown,
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
): number | null {
  if (timeout === undefined) return null;
  const ms = toMs(timeout);
  if (ms < 1 || ms > limits.maxActionTimeoutMs) {
    context.addIssue(field, `must be between 1 ms and ${limits.maxActionTimeoutMs / 1_000} s, found ${timeout}`);
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

type BuildInput = NonNullable<Extract<ToolInput['implementation'], { type: 'container' }>['build']>;

/** Requires exactly one of an image name and a build. */
export function toImage(
  written: { readonly image?: string | undefined; readonly build?: BuildInput | undefined },
  context: BuildContext,
): { readonly image: string | null; readonly build: ImageBuild | null } {
  const { image, build } = written;
  if ((image === undefined) === (build === undefined)) {
    context.addIssue(['implementation'], 'needs exactly one of "image" (a name) and "build" (its files)');
  }
  return { image: image ?? null, build: build === undefined ? null : toBuild(build, context) };
}

function toBuild(build: BuildInput, context: BuildContext): ImageBuild {
  const field = ['implementation', 'build'];
  const files: Record<string, string> = {};
  if (Array.isArray(build.files)) {
    for (const [index, path] of build.files.entries()) {
      const text = context.readFile(path, [...field, 'files', index]);
      // in the image, files are relative to the entry point's folder
      if (text !== null) files[inside(path, build.entrypoint)] = text;
    }
  } else Object.assign(files, build.files);
  let entrypoint = build.entrypoint ?? '';
  if (build.entrypoint !== undefined && !Object.hasOwn(files, entrypoint)) {
    entrypoint = inside(build.entrypoint, build.entrypoint);
    if (!Object.hasOwn(files, entrypoint)) {
      const text = context.readFile(build.entrypoint, [...field, 'entrypoint']);
      if (text !== null) files[entrypoint] = text;
    }
  }
  if (build.entrypoint === undefined && !Object.hasOwn(files, 'Dockerfile')) {
    context.addIssue([...field, 'entrypoint'], 'is missing: the file to start');
  }
  const { requirements = [] } = build;
  return {
    base: build.base ?? runtimeOf(entrypoint) ?? 'python3',
    files,
    entrypoint,
    requirements: Array.isArray(requirements) ? requirements : readRequirements(requirements.file, context),
  };
}

/** Maps `./search/lib/a.py` to `lib/a.py` if the entry point is `./search/main.py`. */
function inside(path: string, entrypoint: string | undefined): string {
  const plain = path.replace(/^(\.{0,2}\/)+/, '');
  const folder = (entrypoint ?? '').replace(/^(\.{0,2}\/)+/, '').replace(/[^/]*$/, '');
  return folder !== '' && plain.startsWith(folder) ? plain.slice(folder.length) : plain;
}

function readRequirements(path: string, context: BuildContext): string[] {
  const text = context.readFile(path, ['implementation', 'build', 'requirements', 'file']) ?? '';
  return text
    .split('\n')
    .map((line) => line.replace(/#.*$/, '').trim())
    .filter((line) => line !== '');
}
