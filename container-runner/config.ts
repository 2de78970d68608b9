/** The runner's settings, from the environment. */
import { z } from 'zod';

import { parseKeys } from './keys.ts';
import { imagePattern, imageReference } from './images/image-name.ts';
import { limits } from './limits.ts';
import { type OperatorLimits, operatorLimitsOf, operatorLimitVariables } from './operator-limits.ts';
import { SANDBOX_LEVELS, type SandboxLevel } from './sandbox/sandbox.ts';

export interface RunnerConfig {
  readonly host: string;
  readonly port: number;
  readonly stateDir: string;
  /** A secret, or a list of `id=secret` (keys.ts). */
  readonly secret: string;
  /** Host and port by which the Worker knows this runner; null = any. */
  readonly publicHost?: string | null;
  /** The only level to use; null = the best that works. */
  readonly sandbox: SandboxLevel | null;
  /** Jobs may run as plain processes of this machine's user. */
  readonly allowProcess: boolean;
  /** Sends requests of tools, for a Worker that cannot pin addresses (X2); false = refuses them. */
  readonly egress?: boolean;
  readonly logLevel: string;
  /** What jobs and relics may ask for at most; those of limits.ts where it is absent. */
  readonly operatorLimits?: OperatorLimits;
  /** Milliseconds that running jobs get to end by themselves when the runner is told to stop. */
  readonly drainMs?: number;
  /** Path of the Docker engine's socket; null = where engines listen, `off` = no engine. */
  readonly dockerSocket: string | null;
  /** Sandboxes held ready, of each kind. */
  readonly warm: number;
  /** Images that jobs may name, as patterns; what is not in the engine is not fetched. */
  readonly images: readonly string[];
  /** Where pip looks for the packages of tools; null = where it looks by itself. */
  readonly pipIndex: string | null;
  /** Images of the operator's instead of those made from the parts of this machine. */
  readonly baseImages: { readonly shell?: string; readonly python3?: string; readonly node?: string };
}

const flag = z.enum(['0', '1', 'true', 'false', '']).transform((text) => text === '1' || text === 'true');

const environment = z.object({
  RUNNER_HOST: z.string().min(1).default('127.0.0.1'),
  RUNNER_PORT: z.coerce.number().int().min(0).max(65_535).default(8790),
  CORTEX_STATE_DIR: z.string().min(1).default('.cortex'),
  RUNNER_SECRET: z
    .string({ error: `is not set; it is shared with the Worker and has at least ${limits.secretChars} characters` })
    .min(limits.secretChars, `must have at least ${limits.secretChars} characters`)
    .superRefine((text, context) => {
      try {
        parseKeys(text);
      } catch (fault) {
        context.addIssue({ code: 'custom', message: fault instanceof Error ? fault.message : 'is not valid' });
      }
    }),
  RUNNER_PUBLIC_URL: z.url({ protocol: /^https?$/, error: 'must be an http or https address' }).optional(),
  RUNNER_SANDBOX: z.enum(SANDBOX_LEVELS).optional(),
  RUNNER_ALLOW_PROCESS: flag.default(false),
  RUNNER_DOCKER: z.string().optional(),
  RUNNER_WARM: z.coerce.number().int().min(0).max(limits.maxWarm).default(limits.warm),
  RUNNER_IMAGES: z
    .string()
    .default('*')
    .transform((text) => text.split(/[\s,]+/).filter((pattern) => pattern !== ''))
    .pipe(z.array(imagePattern)),
  RUNNER_PIP_INDEX: z.url({ protocol: /^https?$/ }).optional(),
  RUNNER_IMAGE_SHELL: imageReference.optional(),
  RUNNER_IMAGE_PYTHON: imageReference.optional(),
  RUNNER_IMAGE_NODE: imageReference.optional(),
  RUNNER_DRAIN_SECONDS: z.coerce.number().min(0).max(limits.maxDrainSeconds).default(limits.drainSeconds),
  ...operatorLimitVariables,
  RUNNER_EGRESS: flag.default(true),
  RUNNER_LOG: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info'),
});

/** Every variable that the runner reads. */
export const RUNNER_SETTINGS: readonly string[] = Object.keys(environment.shape);

/** @throws Error that names each wrong variable */
export function readConfig(variables: Readonly<Record<string, string | undefined>>): RunnerConfig {
  // an empty variable is one that was not set
  const given = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ''));
  const parsed = environment.safeParse(given);
  if (!parsed.success) {
    throw new Error(parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('\n'));
  }
  const { data } = parsed;
  return {
    host: data.RUNNER_HOST,
    port: data.RUNNER_PORT,
    stateDir: data.CORTEX_STATE_DIR,
    secret: data.RUNNER_SECRET,
    publicHost: data.RUNNER_PUBLIC_URL === undefined ? null : new URL(data.RUNNER_PUBLIC_URL).host,
    sandbox: data.RUNNER_SANDBOX ?? null,
    allowProcess: data.RUNNER_ALLOW_PROCESS,
    egress: data.RUNNER_EGRESS,
    logLevel: data.RUNNER_LOG,
    operatorLimits: operatorLimitsOf(data),
    drainMs: data.RUNNER_DRAIN_SECONDS * 1_000,
    dockerSocket: data.RUNNER_DOCKER ?? null,
    warm: data.RUNNER_WARM,
    images: data.RUNNER_IMAGES,
    pipIndex: data.RUNNER_PIP_INDEX ?? null,
    baseImages: {
      ...(data.RUNNER_IMAGE_SHELL === undefined ? {} : { shell: data.RUNNER_IMAGE_SHELL }),
      ...(data.RUNNER_IMAGE_PYTHON === undefined ? {} : { python3: data.RUNNER_IMAGE_PYTHON }),
      ...(data.RUNNER_IMAGE_NODE === undefined ? {} : { node: data.RUNNER_IMAGE_NODE }),
    },
  };
}
