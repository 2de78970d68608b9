/** The runner's settings, from the environment. */
import { z } from 'zod';

import { parseKeys } from './keys.ts';
import { imagePattern, imageReference } from './images/image-name.ts';
import { limits } from './limits.ts';
import { type OperatorLimits, operatorLimitsOf, operatorLimitVariables } from './operator-limits.ts';
import { SANDBOX_LEVELS, type SandboxLevel } from './sandbox/sandbox.ts';
import { otlpVariables, spanExportOf, type SpanExportSettings } from './telemetry/otlp-settings.ts';

export interface RunnerConfig {
  readonly host: string;
  readonly port: number;
  readonly stateDir: string;
  /** A secret, or a list of `id=secret` (keys.ts). */
  readonly secret: string;
  /** Host and port of this runner as the Worker sees it; null = any. */
  readonly publicHost?: string | null;
  /** The only level to use; null = the best available one. */
  readonly sandbox: SandboxLevel | null;
  /** Allows jobs as plain processes of this machine's user. */
  readonly allowProcess: boolean;
  /** Sends outbound requests of tools, for a Worker that cannot pin addresses (X2); false = rejects them. */
  readonly egress?: boolean;
  readonly logLevel: string;
  /** Maximum resources of jobs and relics; default: limits.ts. */
  readonly operatorLimits?: OperatorLimits;
  /** Time for running jobs to end after SIGTERM, in milliseconds. */
  readonly drainMs?: number;
  /** Path of the Docker engine's socket; null = the default, `off` = no engine. */
  readonly dockerSocket: string | null;
  /** Number of warm sandboxes of each kind. */
  readonly warm: number;
  /** Images that jobs may name, as patterns; images are never pulled. */
  readonly images: readonly string[];
  /** Package index for the packages of tools; null = pip's default. */
  readonly pipIndex: string | null;
  /** Exports the spans of jobs (O1); null = does not. */
  readonly spans?: SpanExportSettings | null;
  /** Images of the operator that replace the built base images. */
  readonly baseImages: { readonly shell?: string; readonly python3?: string; readonly node?: string };
}

const flag = z.enum(['0', '1', 'true', 'false', '']).transform((text) => text === '1' || text === 'true');

const environment = z.object({
  RUNNER_HOST: z.string().min(1).default('127.0.0.1'),
  RUNNER_PORT: z.coerce.number().int().min(0).max(65_535).default(8790),
  CORTEX_STATE_DIR: z.string().min(1).default('.cortex'),
  RUNNER_SECRET: z
    .string({
      error: `is not set; set it to a secret of at least ${limits.secretChars} characters, the same as for the Worker`,
    })
    .min(limits.secretChars, `must have at least ${limits.secretChars} characters`)
    .superRefine((text, context) => {
      try {
        parseKeys(text);
      } catch (fault) {
        context.addIssue({
          code: 'custom',
          message: fault instanceof Error ? fault.message : 'must be a secret, or a list of id=secret',
        });
      }
    }),
  RUNNER_PUBLIC_URL: z.url({ protocol: /^https?$/, error: 'must be an HTTP(S) URL' }).optional(),
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
  ...otlpVariables,
  RUNNER_EGRESS: flag.default(true),
  RUNNER_LOG: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info'),
});

/** Every environment variable that the runner reads. */
export const RUNNER_SETTINGS: readonly string[] = Object.keys(environment.shape);

/** Variables with the same prefix: those of GitHub's runners, and settings of the Worker. */
const OF_OTHERS =
  /^RUNNER_(?:OS|ARCH|NAME|TEMP|TOOL_CACHE|TOOLSDIRECTORY|WORKSPACE|DEBUG|ENVIRONMENT|TRACKING_ID|USER|PERFLOG|MANUALLY_TRAP_SIG|ALLOW_RUNASROOT|URLS|INSTANCES|ACCESS_ID|ACCESS_SECRET)$/;

function isKnown(name: string): boolean {
  return RUNNER_SETTINGS.includes(name) || OF_OTHERS.test(name);
}

/** The setting with the most equal characters at its beginning and end. */
function nearestTo(name: string): string {
  const common = (a: string, b: string): number => {
    let length = 0;
    while (length < a.length && a[length] === b[length]) length += 1;
    return length;
  };
  const reversed = (text: string): string => [...text].toReversed().join('');
  const likeness = (one: string): number => common(one, name) + common(reversed(one), reversed(name));
  return RUNNER_SETTINGS.toSorted((a, b) => likeness(b) - likeness(a))[0] ?? '';
}

/** @throws Error that names each invalid variable */
export function readConfig(variables: Readonly<Record<string, string | undefined>>): RunnerConfig {
  const unknown = Object.keys(variables).filter((name) => name.startsWith('RUNNER_') && !isKnown(name));
  if (unknown.length > 0) {
    throw new Error(unknown.map((name) => `${name}: unknown setting (did you mean ${nearestTo(name)}?)`).join('\n'));
  }
  // an empty variable counts as unset
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
    spans: spanExportOf(data),
    baseImages: {
      ...(data.RUNNER_IMAGE_SHELL === undefined ? {} : { shell: data.RUNNER_IMAGE_SHELL }),
      ...(data.RUNNER_IMAGE_PYTHON === undefined ? {} : { python3: data.RUNNER_IMAGE_PYTHON }),
      ...(data.RUNNER_IMAGE_NODE === undefined ? {} : { node: data.RUNNER_IMAGE_NODE }),
    },
  };
}
