/** The environment, read once and checked: every setting is optional (H8). */
import { bytesToHex } from '@noble/hashes/utils.js';
import { parseClocks } from '../domain/clocks.ts';
import type { ClockLimits } from '../domain/clocks.ts';
import { limits } from '../domain/limits.ts';
import { isWithinReach } from '../domain/secrets.ts';
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
import type { AiBinding } from '../llm/providers/workers-ai.ts';
import type { WorkerSettings } from './setting-names.ts';
import type { CatalogObject } from './objects/catalog-object.ts';
import type { EndpointStatusObject } from './objects/endpoint-status-object.ts';
import type { ExecutionIndexObject } from './objects/execution-index-object.ts';
import type { IdentityObject } from './objects/identity-object.ts';
import type { RateLimitObject } from './objects/rate-limit-object.ts';
import type { RelicObject } from './objects/relic-object.ts';
import type { ScheduleObject } from './objects/schedule-object.ts';
import type { RunnerContainer } from './runner-container.ts';
import type { SessionObject } from './objects/session-object.ts';

/** Bindings and variables of the Worker (wrangler.toml, `.dev.vars`, secrets). */
export interface Env extends WorkerSettings {
  readonly SESSIONS: DurableObjectNamespace<SessionObject>;
  readonly EXECUTIONS: DurableObjectNamespace<ExecutionIndexObject>;
  readonly RATES: DurableObjectNamespace<RateLimitObject>;
  readonly ENDPOINTS: DurableObjectNamespace<EndpointStatusObject>;
  readonly SCHEDULES: DurableObjectNamespace<ScheduleObject>;
  readonly CATALOGS: DurableObjectNamespace<CatalogObject>;
  readonly RELICS: DurableObjectNamespace<RelicObject>;
  readonly IDENTITY: DurableObjectNamespace<IdentityObject>;
  /** Workers AI, in the environment `workers-ai` only (wrangler.toml). */
  readonly AI?: AiBinding;
  /** Runners as Cloudflare Containers, in the environment `containers` only (wrangler.toml). */
  readonly RUNNERS?: DurableObjectNamespace<RunnerContainer>;
  /** Made by `npm start`: which start of the Worker this is, and which earlier ones froze (docs/decisions/015). */
  readonly HOST_LIFE?: string;
  readonly HOST_FROZEN?: string;
  /** Databases that `npm start` has set aside, separated by commas. */
  readonly HOST_SET_ASIDE?: string;
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
  /** Where the runners are when they are Cloudflare Containers. */
  readonly containers: DurableObjectNamespace<RunnerContainer> | null;
  /** What requests to runners are signed with; null when nothing is set. */
  readonly runnerKey: SigningKey | null;
  readonly allowHosts: readonly string[];
  /** Who sends requests to addresses that manifests and models name (X2). */
  readonly egress: EgressChoice;
  /** Requests per minute for each API key and agent, or null. */
  readonly rateLimit: number | null;
  readonly sessionExpiryMs: number;
  /** How often feeds and schedules may start work (F3, M6). */
  readonly clocks: ClockLimits;
  readonly host: HostLife;
  /** Databases of this Worker that could not be read and were renamed. */
  readonly setAside: readonly string[];
}

export function readSettings(env: Env): Settings {
  return {
    model: { provider: env.LLM_PROVIDER, baseUrl: env.LLM_BASE_URL, apiKey: env.LLM_API_KEY, model: env.LLM_MODEL },
    keys: parseApiKeys(env.API_KEYS),
    allowedOrigins: list(env.ALLOWED_ORIGINS),
    tokenSecret: () => tokenSecretOf(env),
    runners: runnersOf(env),
    containers: containersOf(env),
    runnerHeaders: accessHeaders(env),
    runnerKey: parseSigningKeys(env.RUNNER_SECRET)[0] ?? null,
    allowHosts: list(env.ALLOW_HOSTS),
    egress: parseEgress(env.EGRESS),
    rateLimit: parseRateLimit(env.RATE_LIMIT),
    sessionExpiryMs: parseSessionExpiry(env.SESSION_EXPIRY),
    clocks: parseClocks(env),
    host: hostOf(env),
    setAside: setAsideOf(env),
  };
}

function hostOf({ HOST_LIFE: life = '', HOST_FROZEN: frozen }: Env): HostLife {
  const isWatched = /^\d{1,15}$/.test(life);
  return { life: isWatched ? Number(life) : null, frozen: isWatched ? list(frozen).map(Number) : [] };
}

function setAsideOf({ HOST_SET_ASIDE: names }: Env): readonly string[] {
  return list(names);
}

/** Runners elsewhere go before containers: whoever names them wants those. */
function containersOf({ RUNNERS: containers, RUNNER_URLS: urls = '' }: Env): Settings['containers'] {
  return urls === '' ? (containers ?? null) : null;
}

function accessHeaders({ RUNNER_ACCESS_ID: id = '', RUNNER_ACCESS_SECRET: secret = '' }: Env): Record<string, string> {
  return id === '' || secret === '' ? {} : { 'cf-access-client-id': id, 'cf-access-client-secret': secret };
}

function runnersOf(env: Env): readonly RunnerAddress[] {
  if (containersOf(env) === null) return parseRunnerUrls(env.RUNNER_URLS);
  const count = Math.min(Math.max(1, Math.trunc(Number(env.RUNNER_INSTANCES ?? 1)) || 1), limits.containerInstances);
  return Array.from({ length: count }, (_, at) => ({ url: `http://runner-${at}`, labels: [] }));
}

/**
 * Every value of the environment that must never be shown (X3).
 *
 * @param user whose session shows something: the secrets of other API keys cannot get there, and taking them out
 *   would tell whoever guesses at them when a guess is right; null = the operator's log, which shows none at all
 */
export function secretsOf(env: Env, user: { readonly owner: string | null } | null = null): string[] {
  const all = parseApiKeys(env.API_KEYS);
  const owners = all.map(({ name }) => name);
  const tools = Object.entries(env).flatMap(([name, value]) => {
    const within = user === null ? name.startsWith('TOOL_') : isWithinReach(name, { owner: user.owner, owners });
    return within && typeof value === 'string' ? [value] : [];
  });
  const keys = all.filter(({ name }) => user === null || name === user.owner).map(({ key }) => key);
  const runnerKeys = parseSigningKeys(env.RUNNER_SECRET).map(({ secret }) => secret);
  return [
    env.LLM_API_KEY,
    env.RUNNER_SECRET,
    env.RUNNER_ACCESS_SECRET,
    env.SESSION_TOKEN_SECRET,
    ...runnerKeys,
    ...keys,
    ...tools,
  ].filter((secret) => secret !== undefined);
}

/** Signs session tokens where nothing is configured: for this machine only, until the process ends. */
let ownSecret: string | null = null;

/** With API keys the secret has to be set: one that came of the keys could be guessed at by whoever holds a token. */
function tokenSecretOf({ SESSION_TOKEN_SECRET: given, API_KEYS: keys = '' }: Env): string | null {
  const set = parseTokenSecret(given);
  if (set !== null || keys.trim() !== '') return set;
  ownSecret ??= bytesToHex(crypto.getRandomValues(new Uint8Array(32)));
  return ownSecret;
}

function list(text: string | undefined): string[] {
  return (text ?? '').split(/[\s,]+/).filter(Boolean);
}
