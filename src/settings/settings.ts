/** The Worker's variables, read and checked: every setting is optional (H8). Pure. */
import { bytesToHex } from '@noble/hashes/utils.js';
import { parseIntervals } from '../domain/intervals.ts';
import type { IntervalLimits } from '../domain/intervals.ts';
import { limits } from '../domain/limits.ts';
import type { ApiKey } from '../http/auth.ts';
import { parseApiKeys } from '../http/auth.ts';
import { parseTokenSecret } from '../http/tokens.ts';
import { parseEgress } from '../executors/outbound/egress-choice.ts';
import type { EgressChoice } from '../executors/outbound/egress-choice.ts';
import { parseRunnerUrls, parseSigningKeys } from '../executors/runner/list.ts';
import type { RunnerAddress, SigningKey } from '../executors/runner/list.ts';
import { parseRateLimit } from '../policies/rate-limit.ts';
import { parseSessionExpiry } from '../policies/session-expiry.ts';
import type { HostLife } from '../engine/replay/recovery-queue.ts';
import type { ModelConfig } from '../llm/routing/select.ts';
import type { WorkerSettings } from './setting-names.ts';

/** Variables of the Worker. */
export interface Variables extends WorkerSettings {
  /** Made by `npm start`: which start of the Worker this is, and which earlier ones froze (docs/decisions/015). */
  readonly HOST_LIFE?: string;
  readonly HOST_FROZEN?: string;
  /** Databases that `npm start` has set aside, separated by commas. */
  readonly HOST_SET_ASIDE?: string;
}

/** The binding of runners as Cloudflare Containers, where the deployment has it. */
interface Containers {
  readonly RUNNERS?: unknown;
}

export interface Settings {
  readonly model: ModelConfig;
  readonly keys: readonly ApiKey[];
  readonly allowedOrigins: readonly string[];
  /** What session tokens are signed with; null = none can be given out. */
  readonly tokenSecret: () => string | null;
  readonly runners: readonly RunnerAddress[];
  /** Sent with every request to runners elsewhere. */
  readonly runnerHeaders: Readonly<Record<string, string>>;
  /** The runners are Cloudflare Containers: they are reached over the binding, and `runners` has one address for each. */
  readonly hasContainers: boolean;
  /** What requests to runners are signed with; null when nothing is set. */
  readonly runnerKey: SigningKey | null;
  readonly allowHosts: readonly string[];
  /** Who sends requests to addresses that manifests and models name (X2). */
  readonly egress: EgressChoice;
  /** Requests per minute for each API key and agent, or null. */
  readonly rateLimit: number | null;
  readonly sessionExpiryMs: number;
  /** How often feeds and schedules may start work (F3, M6). */
  readonly intervals: IntervalLimits;
  readonly host: HostLife;
  /** Databases of this Worker that could not be read and were renamed. */
  readonly setAside: readonly string[];
}

/** @throws EngineError `internal` for a setting that cannot be read */
export function readSettings(env: Variables & Containers): Settings {
  return {
    model: { provider: env.LLM_PROVIDER, baseUrl: env.LLM_BASE_URL, apiKey: env.LLM_API_KEY, model: env.LLM_MODEL },
    keys: parseApiKeys(env.API_KEYS),
    allowedOrigins: list(env.ALLOWED_ORIGINS),
    tokenSecret: () => tokenSecretOf(env),
    runners: runnersOf(env),
    hasContainers: hasContainers(env),
    runnerHeaders: accessHeaders(env),
    runnerKey: parseSigningKeys(env.RUNNER_SECRET)[0] ?? null,
    allowHosts: list(env.ALLOW_HOSTS),
    egress: parseEgress(env.EGRESS),
    rateLimit: parseRateLimit(env.RATE_LIMIT),
    sessionExpiryMs: parseSessionExpiry(env.SESSION_EXPIRY),
    intervals: parseIntervals(env),
    host: hostOf(env),
    setAside: setAsideOf(env),
  };
}

function hostOf({ HOST_LIFE: life = '', HOST_FROZEN: frozen }: Variables): HostLife {
  const isWatched = /^\d{1,15}$/.test(life);
  return { life: isWatched ? Number(life) : null, frozen: isWatched ? list(frozen).map(Number) : [] };
}

function setAsideOf({ HOST_SET_ASIDE: names }: Variables): readonly string[] {
  return list(names);
}

/** Runners that RUNNER_URLS names go before containers. */
function hasContainers({ RUNNERS: containers, RUNNER_URLS: urls = '' }: Variables & Containers): boolean {
  return urls === '' && containers !== undefined;
}

function accessHeaders({
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

/** Signs session tokens where nothing is configured: for this machine only, until the process ends. */
let ownSecret: string | null = null;

/** With API keys the secret has to be set: one that came of the keys could be guessed at by whoever holds a token. */
function tokenSecretOf({ SESSION_TOKEN_SECRET: given, API_KEYS: keys = '' }: Variables): string | null {
  const set = parseTokenSecret(given);
  if (set !== null || keys.trim() !== '') return set;
  ownSecret ??= bytesToHex(crypto.getRandomValues(new Uint8Array(32)));
  return ownSecret;
}

function list(text: string | undefined): string[] {
  return (text ?? '').split(/[\s,]+/).filter(Boolean);
}
