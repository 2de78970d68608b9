/** The environment, read once and checked: every setting is optional (H8). */
import { limits } from '../domain/limits.ts';
import type { ApiKey } from '../http/auth.ts';
import { parseApiKeys } from '../http/auth.ts';
import { parseRunnerUrls, parseSigningKeys } from '../executors/runner-list.ts';
import type { RunnerAddress, SigningKey } from '../executors/runner-list.ts';
import { parseRateLimit } from '../engine/rate-limit.ts';
import { parseSessionExpiry } from '../engine/session-expiry.ts';
import type { ModelConfig } from '../llm/select.ts';
import type { AiBinding } from '../llm/workers-ai.ts';
import type { CatalogObject } from './catalog-object.ts';
import type { EndpointStatusObject } from './endpoint-status-object.ts';
import type { ExecutionIndexObject } from './execution-index-object.ts';
import type { RateLimitObject } from './rate-limit-object.ts';
import type { RelicObject } from './relic-object.ts';
import type { ScheduleObject } from './schedule-object.ts';
import type { RunnerContainer } from './runner-container.ts';
import type { SessionObject } from './session-object.ts';

/** Bindings and variables of the Worker (wrangler.toml, `.dev.vars`, secrets). */
export interface Env {
  readonly SESSIONS: DurableObjectNamespace<SessionObject>;
  readonly EXECUTIONS: DurableObjectNamespace<ExecutionIndexObject>;
  readonly RATES: DurableObjectNamespace<RateLimitObject>;
  readonly ENDPOINTS: DurableObjectNamespace<EndpointStatusObject>;
  readonly SCHEDULES: DurableObjectNamespace<ScheduleObject>;
  readonly CATALOGS: DurableObjectNamespace<CatalogObject>;
  readonly RELICS: DurableObjectNamespace<RelicObject>;
  /** Workers AI, in the environment `workers-ai` only (wrangler.toml). */
  readonly AI?: AiBinding;
  /** Whose ways the endpoint has (docs/models.md); by default its address tells. */
  readonly LLM_PROVIDER?: string;
  readonly LLM_BASE_URL?: string;
  readonly LLM_API_KEY?: string;
  readonly LLM_MODEL?: string;
  readonly API_KEYS?: string;
  readonly ALLOWED_ORIGINS?: string;
  /** What session tokens are signed with (H5); without it, something that comes of `API_KEYS`. */
  readonly SESSION_TOKEN_SECRET?: string;
  /** Comma-separated base URLs of runners, each with its labels behind `#` (R7). */
  readonly RUNNER_URLS?: string;
  /** A secret, or `id=secret, id=secret`: the first one signs (R7). */
  readonly RUNNER_SECRET?: string;
  /** A service token of Cloudflare Access, when runners stand behind it. */
  readonly RUNNER_ACCESS_ID?: string;
  readonly RUNNER_ACCESS_SECRET?: string;
  /** Runners as Cloudflare Containers, in the environment `containers` only (wrangler.toml), and how many there are. */
  readonly RUNNERS?: DurableObjectNamespace<RunnerContainer>;
  readonly RUNNER_INSTANCES?: string;
  /** host:port list that outbound requests may reach although they are private (X2). */
  readonly ALLOW_HOSTS?: string;
  /** Requests per minute for each API key and agent; unset = no limit. */
  readonly RATE_LIMIT?: string;
  /** How long a session is kept after it was last heard of, such as `7d`; unset = 30 days. */
  readonly SESSION_EXPIRY?: string;
}

export interface Settings {
  readonly model: ModelConfig;
  readonly keys: readonly ApiKey[];
  readonly allowedOrigins: readonly string[];
  /** What session tokens are signed with. */
  readonly tokenSecret: () => string;
  readonly runners: readonly RunnerAddress[];
  /** Sent with every request to runners elsewhere. */
  readonly runnerHeaders: Readonly<Record<string, string>>;
  /** Where the runners are when they are Cloudflare Containers. */
  readonly containers: DurableObjectNamespace<RunnerContainer> | null;
  /** What requests to runners are signed with; null when nothing is set. */
  readonly runnerKey: SigningKey | null;
  readonly allowHosts: readonly string[];
  /** Requests per minute for each API key and agent, or null. */
  readonly rateLimit: number | null;
  readonly sessionExpiryMs: number;
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
    rateLimit: parseRateLimit(env.RATE_LIMIT),
    sessionExpiryMs: parseSessionExpiry(env.SESSION_EXPIRY),
  };
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

/** Every value of the environment that must never be shown (X3). */
export function secretsOf(env: Env): string[] {
  const tools = Object.entries(env).flatMap(([name, value]) =>
    name.startsWith('TOOL_') && typeof value === 'string' ? [value] : [],
  );
  const keys = parseApiKeys(env.API_KEYS).map(({ key }) => key);
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

function tokenSecretOf(env: Env): string {
  const { SESSION_TOKEN_SECRET: given, API_KEYS: keys } = env;
  if (given !== undefined && given !== '') return given;
  // The keys themselves never sign anything: who guesses at signatures must not be guessing at keys.
  if (keys !== undefined && keys.trim() !== '') return `session tokens of ${keys}`;
  ownSecret ??= [...crypto.getRandomValues(new Uint8Array(32))].map((byte) => byte.toString(16)).join('-');
  return ownSecret;
}

function list(text: string | undefined): string[] {
  return (text ?? '').split(/[\s,]+/).filter(Boolean);
}
