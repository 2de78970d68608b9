/** A job as the Worker asks for it (R1), and what becomes of it. */
import { z } from 'zod';

import { limits } from './limits.ts';
import { Refusal } from './problem.ts';
import type { Interpreter } from './sandbox/sandbox.ts';
import { SANDBOX_LEVELS } from './sandbox/sandbox.ts';

/** A runtime key with its attempt: no white space, no controls, nothing that a path or a log line could trip over. */
export const jobId = z
  .string()
  .max(limits.jobIdChars)
  .regex(/^[\w.:~@/-]+$/, 'letters, digits and _.:~@/- only');
export const sessionId = z
  .string()
  .max(limits.sessionChars)
  .regex(/^[\w.:~@-]+$/, 'letters, digits and _.:~@- only');

const jobLimits = z.strictObject({
  timeout_ms: z.int().min(1).max(limits.maxTimeoutMs).default(limits.timeoutMs),
  memory_mb: z.int().min(limits.minMemoryMb).max(limits.maxMemoryMb).default(limits.memoryMb),
  cpus: z.number().min(limits.minCpus).max(limits.maxCpus).default(limits.cpus),
  processes: z.int().min(1).max(limits.maxProcesses).default(limits.processes),
  disk_mb: z.int().min(1).max(limits.maxDiskMb).default(limits.diskMb),
  output_bytes: z.int().min(limits.minOutputBytes).max(limits.outputBytes).default(limits.outputBytes),
});

const common = {
  session: sessionId,
  code: z.string(),
  inputs: z.record(z.string(), z.json()).default({}),
  limits: jobLimits.prefault({}),
  /** A level that must not be replaced by a weaker one. */
  sandbox: z.enum(SANDBOX_LEVELS).optional(),
};

/** Closed: what is not named here cannot be asked for. */
export const jobRequest = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('python'), ...common }),
  z.strictObject({ kind: z.literal('shell'), ...common }),
  z.strictObject({ kind: z.literal('tool'), runtime: z.enum(['python3', 'node', 'shell']), ...common }),
]);
export type JobRequest = z.infer<typeof jobRequest>;

export function interpreterOf(job: JobRequest): Interpreter {
  switch (job.kind) {
    case 'python':
      return 'python3';
    case 'shell':
      return 'shell';
    case 'tool':
      return job.runtime;
  }
}

/** Why a job ended (R4). */
export type JobEnd = 'exited' | 'timeout' | 'killed' | 'oom' | 'output_limit' | 'lost';

export interface Outcome {
  readonly end: JobEnd;
  /** Null unless the program ended by itself. */
  readonly exitCode: number | null;
  readonly truncated: boolean;
}

/** @throws Refusal `invalid_json`, `invalid_request` */
export function parseJob(text: string): JobRequest {
  if (depthOf(text) > limits.jsonDepth) {
    throw new Refusal('invalid_request', `The body is nested deeper than ${limits.jsonDepth} levels`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (fault) {
    throw new Refusal('invalid_json', fault instanceof Error ? fault.message : 'not JSON');
  }
  const parsed = jobRequest.safeParse(value);
  if (!parsed.success) {
    const said = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'body'}: ${issue.message}`);
    throw new Refusal('invalid_request', said.slice(0, 5).join('; '));
  }
  return parsed.data;
}

/** Nesting of a JSON text, counted without building it: a deep one must not reach a recursive parser. */
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
