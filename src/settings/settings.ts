/** Reads and checks the Worker's variables; every setting is optional (H8). Pure. */
import { bytesToHex } from '@noble/hashes/utils.js';
import { parseRedact } from '../catalog/read/redact-setting.ts';
import { parseIntervals } from '../domain/intervals.ts';
import type { IntervalLimits } from '../domain/intervals.ts';
import { limits } from '../domain/limits.ts';
import type { ApiKey } from '../http/api-keys.ts';
import { parseTokenSecret } from '../http/tokens.ts';
import { parseEgress } from '../executors/outbound/egress-choice.ts';
import type { EgressChoice } from '../executors/outbound/egress-choice.ts';
import { parseRunnerUrls, parseSigningKeys } from '../executors/runner/list.ts';
import type { RunnerAddress, SigningKey } from '../executors/runner/list.ts';
import type { PolicyRule } from '../domain/policy.ts';
import { parsePlatform } from './platform.ts';
import type { PlatformSettings } from './platform.ts';
import { parsePolicies } from './policies.ts';
import { parseTelemetry } from './telemetry.ts';
import type { TelemetrySettings } from './telemetry.ts';
import { parseRateLimit } from '../policies/rate-limit.ts';
import { parseSessionExpiry } from '../policies/session-expiry.ts';
import type { HostLife } from '../engine/replay/recovery-queue.ts';
import type { ModelConfig } from '../llm/routing/select.ts';
import { apiKeysOf } from './keys.ts';
import type { WorkerSettings } from './setting-table.ts';

/** Variables of the Worker. */
export interface Variables extends WorkerSettings {
  /**
   * Set by `npm start`: the number of this start of the Worker, and the earlier ones that froze (docs/decisions/015).
   */
  readonly HOST_LIFE?: string;
  readonly HOST_FROZEN?: string;
  /** Databases that `npm start` has moved aside, comma-separated. */
  readonly HOST_SET_ASIDE?: string;
}

/** The binding of runners as Cloudflare Containers, if the deployment has it. */
interface Containers {
  readonly RUNNERS?: unknown;
}

export interface Settings {
  readonly model: ModelConfig;
  readonly keys: readonly ApiKey[];
  readonly allowedOrigins: readonly string[];
  /** Key that signs session tokens; null means that no tokens can be issued. */
  readonly tokenSecret: () => string | null;
  readonly runners: readonly RunnerAddress[];
  /** Headers sent with every request to external runners. */
  readonly runnerHeaders: Readonly<Record<string, string>>;
  /**
   * The runners are Cloudflare Containers: they are reached through the binding; `runners` has one address for each.
   */
  readonly hasContainers: boolean;
  /** Key that signs requests to runners; null if none is configured. */
  readonly runnerKey: SigningKey | null;
  readonly allowHosts: readonly string[];
  /** Who sends requests to addresses from manifests and models (X2). */
  readonly egress: EgressChoice;
  readonly platform: PlatformSettings;
  /** Requests per minute for each namespace and agent, or null. */
  readonly rateLimit: number | null;
  /** Whether every key may read the messages that were sent to the model; otherwise admin keys only. */
  readonly debugPrompts: boolean;
  /** Rules that decide about all actions (C9). */
  readonly policies: readonly PolicyRule[];
  /** Patterns of text that leaves no session (C9). */
  readonly redact: readonly string[];
  /** Where traces and metrics are sent; null: nowhere (O1). */
  readonly telemetry: TelemetrySettings | null;
  readonly sessionExpiryMs: number;
  /** Minimum intervals of feeds and schedules (F3, M6). */
  readonly intervals: IntervalLimits;
  readonly host: HostLife;
  /** Databases of this Worker that could not be read and were renamed. */
  readonly setAside: readonly string[];
}

/** @throws EngineError `internal` for an invalid setting */
export function readSettings(env: Variables & Containers): Settings {
  return {
    model: { provider: env.LLM_PROVIDER, baseUrl: env.LLM_BASE_URL, apiKey: env.LLM_API_KEY, model: env.LLM_MODEL },
    keys: apiKeysOf(env),
    allowedOrigins: list(env.ALLOWED_ORIGINS),
    tokenSecret: () => tokenSecretOf(env),
    runners: runnersOf(env),
    hasContainers: hasContainers(env),
    runnerHeaders: accessHeaders(env),
    runnerKey: parseSigningKeys(env.RUNNER_SECRET)[0] ?? null,
    allowHosts: list(env.ALLOW_HOSTS),
    egress: parseEgress(env.EGRESS),
    platform: parsePlatform(env, hostOf(env).life !== null),
    rateLimit: parseRateLimit(env.RATE_LIMIT),
    debugPrompts: parseSwitch(env.DEBUG_PROMPTS) ?? false,
    policies: parsePolicies(env.POLICIES),
    redact: parseRedact(env.REDACT),
    telemetry: parseTelemetry(env).settings,
    sessionExpiryMs: parseSessionExpiry(env.SESSION_EXPIRY),
    intervals: parseIntervals(env),
    host: hostOf(env),
    setAside: setAsideOf(env),
  };
}

/** @returns null if the text is neither on nor off; unset and empty mean off */
export function parseSwitch(text: string | undefined): boolean | null {
  const written = text?.trim().toLowerCase() ?? '';
  if (['1', 'true', 'yes', 'on'].includes(written)) return true;
  return ['', '0', 'false', 'no', 'off'].includes(written) ? false : null;
}

function hostOf({ HOST_LIFE: life = '', HOST_FROZEN: frozen }: Variables): HostLife {
  const isWatched = /^\d{1,15}$/.test(life);
  return { life: isWatched ? Number(life) : null, frozen: isWatched ? list(frozen).map(Number) : [] };
}

function setAsideOf({ HOST_SET_ASIDE: names }: Variables): readonly string[] {
  return list(names);
}

/** Runners in RUNNER_URLS take precedence over containers. */
function hasContainers({ RUNNERS: containers, RUNNER_URLS: urls = '' }: Variables & Containers): boolean {
  return urls === '' && containers !== undefined;
}

/** For runners behind Cloudflare Access; none without both settings. */
export function accessHeaders({
  RUNNER_ACCESS_ID: id = '',
  RUNNER_ACCESS_SECRET: secret = '',
}: Variables): Record<string, string> {
  return id === '' || secret === '' ? {} : { 'cf-access-client-id': id, 'cf-access-client-secret': secret };
}

function runnersOf(env: Variables & Containers): readonly RunnerAddress[] {
  if (!hasContainers(env)) return parseRunnerUrls(env.RUNNER_URLS);
  const count = Math.min(Math.max(1, Math.trunc(Number(env.RUNNER_INSTANCES ?? 1)) || 1), limits.containerInstances);
  return Array.from({ length: count }, (_, at) => ({ url: `http://runner-${at}`, labels: [] }));
}

/** Signs session tokens if nothing is configured: valid on this machine only, until the process ends. */
let ownSecret: string | null = null;

/** With API keys the secret must be set: a secret derived from the keys could be guessed by a token holder. */
function tokenSecretOf({ SESSION_TOKEN_SECRET: given, API_KEYS: keys = '' }: Variables): string | null {
  const set = parseTokenSecret(given);
  if (set !== null || keys.trim() !== '') return set;
  ownSecret ??= bytesToHex(crypto.getRandomValues(new Uint8Array(32)));
  return ownSecret;
}

function list(text: string | undefined): string[] {
  return (text ?? '').split(/[\s,]+/).filter(Boolean);
}
