/** A job request of the Worker (R1), and its outcome. */
import { z } from 'zod';

import { imageBuild } from '../images/image-build.ts';
import { imageReference } from '../images/image-name.ts';
import { limits } from '../limits.ts';
import { RunnerError } from '../problem.ts';
import { type Interpreter, INTERPRETERS, SANDBOX_LEVELS } from '../sandbox/sandbox.ts';
import type { WireResult } from '../workspace/receiver.ts';
import { jobWorkspace } from '../workspace/request.ts';

/** A runtime key with its attempt; only characters that are safe in paths and log lines. */
export const jobId = z
  .string()
  .max(limits.jobIdChars)
  .regex(/^[\w.:~@/-]+$/, 'letters, digits and _.:~@/- only');
export const sessionId = z
  .string()
  .max(limits.sessionChars)
  .regex(/^[\w.:~@-]+$/, 'letters, digits and _.:~@- only');

/** The operator sets the maximum values (operator-limits.ts). */
const jobLimits = z.strictObject({
  timeout_ms: z.int().min(1).default(limits.timeoutMs),
  memory_mb: z.int().min(limits.minMemoryMb).default(limits.memoryMb),
  cpus: z.number().min(limits.minCpus).default(limits.cpus),
  processes: z.int().min(1).default(limits.processes),
  disk_mb: z.int().min(1).default(limits.diskMb),
  output_bytes: z.int().min(limits.minOutputBytes).max(limits.outputBytes).default(limits.outputBytes),
});

const common = {
  session: sessionId,
  inputs: z.record(z.string(), z.json()).default({}),
  limits: jobLimits.prefault({}),
  /** A required level; never replaced by a weaker one. */
  sandbox: z.enum(SANDBOX_LEVELS).optional(),
  /** Absent: the program has no workspace (C7). */
  workspace: jobWorkspace.optional(),
};

/** Closed: unknown fields are rejected. */
const jobRequest = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('python'), code: z.string(), ...common }),
  z.strictObject({ kind: z.literal('shell'), code: z.string(), ...common }),
  z.strictObject({
    kind: z.literal('docker'),
    image: imageReference,
    /** A shell command; default: the image's own command. */
    command: z.string().optional(),
    /** Appended to the command verbatim. */
    args: z.array(z.string()).max(limits.imageArguments).default([]),
    ...common,
  }),
  z
    .strictObject({
      kind: z.literal('tool'),
      runtime: z.enum(INTERPRETERS).optional(),
      code: z.string().optional(),
      /** Of a script, instead of the inputs as JSON. */
      args: z.array(z.string()).max(limits.imageArguments).optional(),
      image: imageReference.optional(),
      build: imageBuild.optional(),
      ...common,
    })
    .check(({ value, issues }) => {
      const { runtime, code, image, build } = value;
      const ways = [code, image, build].filter((way) => way !== undefined).length;
      if (ways === 1 && (code === undefined) === (runtime === undefined)) return;
      const message = 'a tool needs code with a runtime, or an image, or a build';
      issues.push({ code: 'custom', message, path: [code === undefined ? 'code' : 'runtime'], input: value });
    }),
]);
export type JobRequest = z.infer<typeof jobRequest>;

/** An expected job, with the fields that are needed to reserve a sandbox. */
const prewarmRequest = z.strictObject({
  session: sessionId,
  kind: z.enum(['python', 'shell', 'docker', 'tool']),
  runtime: z.enum(INTERPRETERS).optional(),
  sandbox: z.enum(SANDBOX_LEVELS).optional(),
});
export type PrewarmRequest = z.infer<typeof prewarmRequest>;

/** The interpreter of the job; null for images, which bring their own. */
export function interpreterOf({ kind, runtime }: PrewarmRequest): Interpreter | null {
  switch (kind) {
    case 'python':
      return 'python3';
    case 'shell':
      return 'shell';
    case 'docker':
      return null;
    case 'tool':
      return runtime ?? null;
  }
}

/** Why a job ended (R4); `build_failed`: its image could not be built, and it never ran. */
export type JobEnd = 'exited' | 'timeout' | 'killed' | 'oom' | 'output_limit' | 'lost' | 'build_failed';

export interface Outcome {
  readonly end: JobEnd;
  /** Null unless the program ended on its own. */
  readonly exitCode: number | null;
  readonly truncated: boolean;
  /** What the program left in its workspace; absent unless it had one and `exited`. */
  readonly workspace?: WireResult;
}

/** @throws RunnerError `invalid_json`, `invalid_request` */
export function parseJob(text: string): JobRequest {
  return parseBody(text, jobRequest);
}

/** @throws RunnerError `invalid_json`, `invalid_request` */
export function parsePrewarm(text: string): PrewarmRequest {
  return parseBody(text, prewarmRequest);
}

/** Parses a body and checks its nesting. @throws RunnerError `invalid_json`, `invalid_request` */
export function parseBody<Schema extends z.ZodType>(text: string, schema: Schema): z.output<Schema> {
  if (depthOf(text) > limits.jsonDepth) {
    throw new RunnerError('invalid_request', `The body is nested deeper than ${limits.jsonDepth} levels`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (fault) {
    throw new RunnerError('invalid_json', fault instanceof Error ? fault.message : 'not JSON');
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) {
    const issues = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'body'}: ${issue.message}`);
    throw new RunnerError('invalid_request', issues.slice(0, 5).join('; '));
  }
  return parsed.data;
}

/** Nesting of a JSON text, counted without parsing, because the parser is recursive. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (inString) {
      if (char === 0x5c) at += 1;
      else if (char === 0x22) inString = false;
    } else if (char === 0x22) inString = true;
    else if (char === 0x7b || char === 0x5b) {
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if (char === 0x7d || char === 0x5d) depth -= 1;
  }
  return deepest;
}
