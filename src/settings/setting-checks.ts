/** Settings with whose wrong values no system starts. Others are reported (setting-issues.ts). Apart from the table, because all commands read that. */
import { parseRedact } from '../catalog/read/redact-setting.ts';
import { parseIntervals } from '../domain/intervals.ts';
import { parseEgress } from '../executors/outbound/egress-choice.ts';
import { parseRunnerUrls, parseSigningKeys } from '../executors/runner/list.ts';
import { parseApiKeys } from '../http/api-keys.ts';
import { parseTokenSecret } from '../http/tokens.ts';
import { parseRateLimit } from '../policies/rate-limit.ts';
import { parseSessionExpiry } from '../policies/session-expiry.ts';
import { parsePlatform } from './platform.ts';
import { parsePolicies } from './policies.ts';
import type { SettingName, WorkerSettings } from './setting-table.ts';

type Check = (env: Readonly<Record<string, string | undefined>>) => unknown;

const CHECKS: Readonly<Partial<Record<SettingName, Check>>> = {
  API_KEYS: ({ API_KEYS, OWNER_OF_KEYLESS }) => parseApiKeys(API_KEYS, OWNER_OF_KEYLESS),
  SESSION_TOKEN_SECRET: ({ SESSION_TOKEN_SECRET }) => parseTokenSecret(SESSION_TOKEN_SECRET),
  RUNNER_URLS: ({ RUNNER_URLS }) => parseRunnerUrls(RUNNER_URLS),
  RUNNER_SECRET: ({ RUNNER_SECRET }) => parseSigningKeys(RUNNER_SECRET),
  EGRESS: ({ EGRESS }) => parseEgress(EGRESS),
  PLATFORM_PLAN: (env) => parsePlatform(env, false),
  PLATFORM_LIMITS: (env) => parsePlatform(env, true),
  REDACT: ({ REDACT }) => parseRedact(REDACT),
  RATE_LIMIT: ({ RATE_LIMIT }) => parseRateLimit(RATE_LIMIT),
  POLICIES: ({ POLICIES }) => parsePolicies(POLICIES),
  SESSION_EXPIRY: ({ SESSION_EXPIRY }) => parseSessionExpiry(SESSION_EXPIRY),
  FEED_MIN_SECONDS: (env) => parseIntervals(env),
  CRON_MIN_SECONDS: (env) => parseIntervals(env),
};

/** @throws EngineError `internal` that names the first setting whose value cannot be read */
export function checkSettings(env: WorkerSettings): void {
  for (const check of Object.values(CHECKS)) check({ ...env });
}
