/** Building blocks of all manifest schemas: names, texts, durations, sizes, lists of names (M1). */
import * as z from 'zod';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { SANDBOX_LEVELS } from '../../domain/manifests/program.ts';
import { toMs } from './units.ts';

/** Names appear in URLs, prompts and sandboxes: no white space, no punctuation except `_` and `-`. */
const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
export const name = z
  .string()
  .regex(NAME, { error: 'must be a letter followed by up to 63 letters, digits, "_" or "-"' });

export const text = z.string().max(limits.manifestBytes);

/** `30`, `"30s"`, `"5m"`, `"500ms"`, `"1h"`, `"7d"`: seconds unless a unit says otherwise. */
const durationError = { error: 'must be a number of seconds, or text with a unit such as "30s", "5m" or "500ms"' };
export const duration = z
  .union(
    [z.number().nonnegative(), z.string().regex(/^\s*\d+(\.\d+)?\s*(ms|s|m|h|d)\s*$/, durationError)],
    durationError,
  )
  .refine((written) => toMs(written) <= limits.durationMs, {
    error: `must be at most ${limits.durationMs / 86_400_000} days`,
  });

/** `256`, `"256Mi"`, `"256MB"`, `"1G"`: mebibytes unless a unit says otherwise. */
const memoryError = { error: 'must be a number of MiB, or text with a unit such as "256Mi" or "1G"' };
export const memory = z.union(
  [z.number().positive(), z.string().regex(/^\s*\d+(\.\d+)?\s*([KMG]i?B?)\s*$/i, memoryError)],
  memoryError,
);

/** `0.5`, `2`, `"500m"` (thousandths). */
const cpuError = { error: 'must be a number of CPUs such as 0.5, or thousandths such as "500m"' };
export const cpu = z.union([z.number().positive(), z.string().regex(/^\s*\d+(\.\d+)?m?\s*$/, cpuError)], cpuError);

export const count = z.number().int();

export const url = z.string().regex(/^https?:\/\/\S+$/i, { error: 'must be an http:// or https:// URL' });

/** Names of secrets that manifests may use (X3). */
export const secretName = z
  .string()
  .regex(/^TOOL_[A-Z0-9_]{1,64}$/, { error: 'must be the name of a secret that begins with TOOL_' });

export const names = z.array(z.string().min(1).max(255)).max(limits.manifestImports);

/** Patterns of text that does not leave the system (C9). */
export const redact = z
  .array(z.string().min(1).max(limits.redactPatternChars))
  .max(limits.redactPatterns)
  .describe(
    'Regular expressions with a greatest match length. What they match in outgoing text becomes `[redacted]`, see docs/redaction.md.',
  );

/** Whether programs see the files of the session (C7). */
export const workspace = z.enum(['none', 'session']);

/** Other programs' protocols through which it can be called (E4). */
export const expose = z.literal('mcp', { error: 'must be mcp' });

/** Any JSON value. The input was parsed from YAML or JSON, so its values need no validation. */
export const json = z.unknown() as z.ZodType<Json>;

/** Any map of JSON values. */
export const jsonMap = z.record(z.string(), json);

export const retry = z.union(
  [
    z.number().int().min(1).max(limits.maxRetryAttempts),
    z.strictObject({
      max_attempts: z.number().int().min(1).max(limits.maxRetryAttempts).optional(),
      backoff: z.enum(['none', 'linear', 'exponential']).optional(),
      delay: duration.optional(),
      max_delay: duration.optional(),
    }),
  ],
  {
    error: `must be a number of attempts from 1 to ${limits.maxRetryAttempts}, or a map of max_attempts, backoff (none, linear, exponential), delay and max_delay`,
  },
);

/** Requirements of code, scripts and containers for their runner (R2, R7). */
const sandbox = z.enum(SANDBOX_LEVELS).describe("Required sandbox level. Default: the runner's best.");
const runnerLabels = z
  .array(z.string().regex(/^[A-Za-z0-9][\w.-]{0,63}$/, { error: 'must be letters, digits, "_", "." and "-"' }))
  .max(16)
  .describe('Labels that the runner must have (RUNNER_URLS).');

export const runnerNeeds = z.strictObject({ sandbox: sandbox.optional(), labels: runnerLabels.optional() });

export const resources = z.strictObject({
  memory: memory.optional().describe('Memory limit: MiB, or text with a unit.'),
  cpu: cpu.optional().describe('CPUs: a number, or thousandths such as "500m".'),
  timeout: duration.optional().describe('The same as the field "timeout".'),
  sandbox: sandbox.optional(),
  labels: runnerLabels.optional(),
});

export const relativePath = z.string().min(1).max(255);

/** Text, or the path of a file with it. */
export const fileText = z.union([text, z.strictObject({ file: relativePath })], {
  error: 'must be text, or a map {file: path}',
});

/** Sources of an image: paths of files, or their text. */
export const imageBuild = z.strictObject({
  base: z
    .enum(['python3', 'node', 'shell'])
    .optional()
    .describe('Base image; inferred from the entrypoint by default.'),
  files: z
    .union([z.array(relativePath), z.record(relativePath, text)], {
      error: 'must be a list of paths relative to the manifest, or a map of path to text',
    })
    .optional()
    .describe('Paths relative to the manifest, or a map of path to text.'),
  entrypoint: relativePath.optional().describe('The file to start.'),
  requirements: z
    .union([z.array(z.string().min(1).max(200)), z.strictObject({ file: relativePath })], {
      error: 'must be a list of packages, or a map {file: path}',
    })
    .optional()
    .describe('Python packages, or {file: path}.'),
});

/** `import:` of agents and workflows (M2). */
export const imports = z.strictObject({
  agents: names.optional().describe('Agents, by name or path.'),
  tools: names.optional().describe('Tools, by name or path.'),
  relics: names.optional().describe('Relics, by name or path.'),
  workflows: names.optional().describe('Workflows, by name or path.'),
});

/** Common fields of all kinds. */
export const base = {
  kind: z
    .string()
    .describe('Kind of the document, also in lower case. A Monument is a collection that is only listed.'),
  version: z
    .string()
    .min(1)
    .max(64)
    .meta({ type: ['string', 'number'], description: 'Text; 1.10 without quotes means the text "1.10".' }),
  name: name.describe('Unique within its kind; used by the model and in URLs.'),
  summary: z.string().min(1).max(500).describe('One sentence; the model reads it.'),
  description: text.optional().describe('A longer text for people.'),
  author: z.string().optional().describe('Kept under metadata.'),
  state: z.string().optional().describe('Kept under metadata, for example draft or stable.'),
  tags: z.array(z.string()).optional().describe('Search terms for people.'),
  metadata: jsonMap.optional().describe('Free form. Fields whose names begin with `x-` are moved here.'),
};
