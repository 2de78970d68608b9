/** Schema of `context_feeds` entries, in manifests and from the model's `add_context_feed` (F1). */
import * as z from 'zod';
import { MANIFEST_ACTION_TYPES } from '../../domain/action-types.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { DEFAULT_INTERVALS } from '../../domain/intervals.ts';
import { limits } from '../../domain/limits.ts';
import { FEED_TYPES } from '../../domain/manifests/feed.ts';
import type { FeedDefinition, FeedSource } from '../../domain/manifests/feed.ts';
import { check } from '../check/issues.ts';
import { isOn, sessionVariableIn } from '../build/variables.ts';
import { count, duration, json, jsonMap } from './fields.ts';
import { fieldName } from '../check/problem.ts';
import type { FieldPath } from '../check/problem.ts';
import { toMs } from './units.ts';

/** Ids appear in attributes of the prompt and in references (P12). */
const feedId = z
  .string()
  .regex(/^[^<>&"'\s\p{Cc}]{1,64}$/u, { error: 'must be 1 to 64 characters without white space and < > & " \'' });

const source = z.strictObject({
  type: z
    .enum(MANIFEST_ACTION_TYPES)
    .optional()
    .describe("The source's type; may be given as the feed's type instead."),
  name: z.string().min(1).max(128).optional().describe('The tool, relic, workflow, agent or internal source.'),
  action: z.string().min(1).max(128).optional().describe("A relic's endpoint, or an internal source."),
  params: jsonMap.optional().describe('Parameters of the call.'),
  parameters: jsonMap.optional().describe('The same as params.'),
});

export const feedSchema = z.strictObject({
  id: feedId.describe("The feed's name in the prompt; referenced as $id."),
  type: z
    .enum(FEED_TYPES)
    .optional()
    .describe('on_demand (default) or periodic; a source type means on_demand with that source.'),
  interval: duration
    .optional()
    .describe(
      `For periodic feeds: time between refreshes. Default 60 s, minimum ${limits.feedMinMs / 1_000} s (FEED_MIN_SECONDS).`,
    ),
  cache_ttl: duration.optional().describe('How long a value is fresh. Default 0; for periodic feeds, the interval.'),
  max_tokens: count
    .min(1)
    .max(limits.feedsPromptChars / 4)
    .optional()
    .describe('A longer value is truncated and marked. Default 1000.'),
  enabled: z
    .union([z.boolean(), z.string().max(255)], { error: 'must be true or false, or text with a ${VARIABLE}' })
    .optional()
    .describe('Default true. Text with a ${VARIABLE} is resolved in each session.'),
  source: source.optional().describe('Where the value comes from.'),
  on_error: z
    .enum(['skip', 'use_cached', 'use_default'])
    .optional()
    .describe('What the prompt shows if the source fails. Default use_cached, or use_default if there is a default.'),
  allow_unsafe: z
    .boolean()
    .optional()
    .describe('For periodic feeds: allows a source with unsafe effects. Default false.'),
  shared: z
    .boolean()
    .optional()
    .describe(
      'Fetches the value once for all sessions of the namespace. For tools, and relics that sessions share. Default false.',
    ),
  default: json.optional().describe('Shown if the source fails and no cached value is used.'),
});

export type FeedInput = z.infer<typeof feedSchema>;

/** Sources of internal feeds (F5). */
export const INTERNAL_SOURCES = [
  'system_clock',
  'random',
  'session_info',
  'agent_metadata',
  'iteration',
  'recent_actions',
  'usage',
  'variables',
] as const;

/** Receives what is found in a feed, with its path inside the feed. */
interface FeedLog {
  addIssue(path: FieldPath, message: string): void;
  addWarning(path: FieldPath, message: string): void;
}

/**
 * Converts a feed to its definition, with defaults.
 *
 * @param minMs minimum interval of a periodic feed; null = no minimum
 */
export function toFeed(input: FeedInput, minMs: number | null, { addIssue, addWarning }: FeedLog): FeedDefinition {
  const periodic = input.type === 'periodic';
  const byDefaultMs = Math.max(limits.feedIntervalMs, minMs ?? 0);
  const writtenMs = periodic ? toMs(input.interval ?? byDefaultMs / 1_000) : null;
  const intervalMs = writtenMs === null ? null : Math.max(writtenMs, minMs ?? 0);
  if (!periodic && input.interval !== undefined) addIssue(['interval'], 'is allowed only for periodic feeds');
  if (!periodic && input.allow_unsafe === true) addIssue(['allow_unsafe'], 'is allowed only for periodic feeds');
  if (minMs !== null && writtenMs !== intervalMs) {
    const found = `found ${input.interval}, so ${minMs / 1_000} s is used`;
    addWarning(['interval'], `must be at least ${minMs / 1_000} s (the setting FEED_MIN_SECONDS), ${found}`);
  }
  const source = toSource(input, addIssue);
  const cacheTtlMs = input.cache_ttl === undefined ? (intervalMs ?? 0) : toMs(input.cache_ttl);
  if (input.shared === true) {
    const issue = sharedIssue(source, Math.max(cacheTtlMs, intervalMs ?? 0));
    if (issue !== null) addIssue(['shared'], issue);
  }
  return {
    id: input.id,
    when: periodic ? 'periodic' : 'on_demand',
    intervalMs,
    cacheTtlMs,
    maxTokens: input.max_tokens ?? limits.feedTokens,
    ...toEnabled(input.enabled ?? true, addIssue),
    source,
    onError: input.on_error ?? (input.default === undefined ? 'use_cached' : 'use_default'),
    defaultValue: (input.default ?? null) as Json,
    ...(input.allow_unsafe === true ? { allowUnsafe: true } : {}),
    ...(input.shared === true ? { shared: true } : {}),
  };
}

/** Text with a variable is resolved in each session (M5). */
function toEnabled(
  written: boolean | string,
  addIssue: FeedLog['addIssue'],
): Pick<FeedDefinition, 'enabled' | 'enabledBy'> {
  if (typeof written === 'boolean') return { enabled: written };
  if (written.includes('${')) return { enabled: true, enabledBy: written };
  const enabled = isOn(written);
  if (enabled === null) addIssue(['enabled'], `must be true or false, or text with a \${VARIABLE}, found "${written}"`);
  return { enabled: enabled ?? true };
}

/** Why the value of this source cannot be shared by sessions, or null (F6). @param freshMs how long a value is fresh */
function sharedIssue({ type, params }: FeedSource, freshMs: number): string | null {
  if (type !== 'tool' && type !== 'relic') {
    return `is allowed only for tools and relics: a source of type ${type} belongs to its session`;
  }
  const variable = sessionVariableIn(JSON.stringify(params));
  if (variable !== null) {
    return `is not allowed, because the parameters contain \${${variable}}: their value differs between sessions`;
  }
  return freshMs > 0
    ? null
    : 'needs a cache_ttl above 0, or the type periodic: a value that is never fresh cannot be shared';
}

function toSource(input: FeedInput, addIssue: (path: FieldPath, message: string) => void): FeedSource {
  const { source: written } = input;
  const shorthand = input.type === 'on_demand' || input.type === 'periodic' ? undefined : input.type;
  const type = written?.type ?? shorthand;
  if (type === undefined) {
    addIssue(
      written === undefined ? ['source'] : ['source', 'type'],
      `is missing (allowed: ${MANIFEST_ACTION_TYPES.join(', ')})`,
    );
  } else if (shorthand !== undefined && shorthand !== type) {
    addIssue(['source', 'type'], `is ${type}, but the feed's type is ${shorthand}`);
  }
  const params = written?.params ?? written?.parameters ?? {};
  const internal = type === 'internal';
  const target = internal ? (written?.action ?? written?.name) : written?.name;
  const [name = '', endpoint = null] = type === 'relic' ? (target ?? '').split('.', 2) : [target ?? ''];
  if (internal && !(INTERNAL_SOURCES as readonly string[]).includes(name)) {
    const found = target === undefined ? 'is missing' : `"${name}" is not an internal source`;
    addIssue(['source', 'action'], `${found} (allowed: ${INTERNAL_SOURCES.join(', ')})`);
  }
  if (type !== undefined && type !== 'llm' && !internal && name === '') {
    addIssue(['source', 'name'], `is missing: the ${type} that provides the value`);
  }
  const action = internal ? null : (written?.action ?? endpoint);
  return {
    type: type ?? 'internal',
    name: type === 'llm' && name === '' ? 'llm' : name,
    action,
    params: params as JsonObject,
  };
}

/**
 * Validates a feed that the model adds, with the rules of manifests.
 *
 * @returns the definition, or its errors
 */
export function readFeed(
  written: JsonObject,
  minMs: number = DEFAULT_INTERVALS.feedMinMs,
): { readonly feed: FeedDefinition } | { readonly issues: readonly string[] } {
  const { value, errors } = check(feedSchema, written);
  // Other sessions trust the values of shared feeds, so only manifests define them.
  if (value?.shared === true) return { issues: ['shared: is allowed only in manifests'] };
  if (typeof value?.enabled === 'string' && isOn(value.enabled) === null) {
    return { issues: ['enabled: must be true or false'] };
  }
  if (value === null) return { issues: errors.map(({ path, message }) => `${fieldName(path)}: ${message}`) };
  const issues: string[] = [];
  const refuse = (path: FieldPath, message: string): void => void issues.push(`${fieldName(path)}: ${message}`);
  const feed = toFeed(value, minMs, { addIssue: refuse, addWarning: refuse });
  return issues.length > 0 ? { issues } : { feed };
}
