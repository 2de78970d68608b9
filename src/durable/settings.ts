/** The environment, read once and checked: every setting is optional (H8). */
import type { ApiKey } from '../http/auth.ts';
import { parseApiKeys } from '../http/auth.ts';
import { parseRunnerUrls, parseSigningKeys } from '../executors/runner-list.ts';
import type { RunnerAddress, SigningKey } from '../executors/runner-list.ts';
import type { ModelConfig } from '../llm/select.ts';
import type { ExecutionIndexObject } from './execution-index-object.ts';
import type { SessionObject } from './session-object.ts';

/** Bindings and variables of the Worker (wrangler.toml, `.dev.vars`, secrets). */
export interface Env {
  readonly SESSIONS: DurableObjectNamespace<SessionObject>;
  readonly EXECUTIONS: DurableObjectNamespace<ExecutionIndexObject>;
  readonly LLM_BASE_URL?: string;
  readonly LLM_API_KEY?: string;
  readonly LLM_MODEL?: string;
  readonly API_KEYS?: string;
  readonly ALLOWED_ORIGINS?: string;
  /** Comma-separated base URLs of runners, each with its labels behind `#` (R7). */
  readonly RUNNER_URLS?: string;
  /** A secret, or `id=secret, id=secret`: the first one signs (R7). */
  readonly RUNNER_SECRET?: string;
  /** host:port list that outbound requests may reach although they are private (X2). */
  readonly ALLOW_HOSTS?: string;
}

export interface Settings {
  readonly model: ModelConfig;
  readonly keys: readonly ApiKey[];
  readonly allowedOrigins: readonly string[];
  readonly runners: readonly RunnerAddress[];
  /** What requests to runners are signed with; null when nothing is set. */
  readonly runnerKey: SigningKey | null;
  readonly allowHosts: readonly string[];
}

export function readSettings(env: Env): Settings {
  return {
    model: { baseUrl: env.LLM_BASE_URL, apiKey: env.LLM_API_KEY, model: env.LLM_MODEL },
    keys: parseApiKeys(env.API_KEYS),
    allowedOrigins: list(env.ALLOWED_ORIGINS),
    runners: parseRunnerUrls(env.RUNNER_URLS),
    runnerKey: parseSigningKeys(env.RUNNER_SECRET)[0] ?? null,
    allowHosts: list(env.ALLOW_HOSTS),
  };
}

/** Every value of the environment that must never be shown (X3). */
export function secretsOf(env: Env): string[] {
  const tools = Object.entries(env).flatMap(([name, value]) =>
    name.startsWith('TOOL_') && typeof value === 'string' ? [value] : [],
  );
  const keys = parseApiKeys(env.API_KEYS).map(({ key }) => key);
  const runnerKeys = parseSigningKeys(env.RUNNER_SECRET).map(({ secret }) => secret);
  return [env.LLM_API_KEY, env.RUNNER_SECRET, ...runnerKeys, ...keys, ...tools].filter(
    (secret) => secret !== undefined,
  );
}

function list(text: string | undefined): string[] {
  return (text ?? '').split(/[\s,]+/).filter(Boolean);
}
