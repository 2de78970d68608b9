/**
 * The settings that the Worker reads from its environment, beside the `TOOL_…` secrets (H8). The one list: the type of
 * the environment, what `npm start` hands on and the test of docs/operations.md come from it.
 */
export const WORKER_SETTINGS = [
  /** Whose ways the endpoint has (docs/models.md); by default its address tells. */
  'LLM_PROVIDER',
  'LLM_BASE_URL',
  'LLM_API_KEY',
  'LLM_MODEL',
  'API_KEYS',
  'ALLOWED_ORIGINS',
  /** What session tokens are signed with (H5). */
  'SESSION_TOKEN_SECRET',
  /** Comma-separated base URLs of runners, each with its labels behind `#` (R7). */
  'RUNNER_URLS',
  /** A secret, or `id=secret, id=secret`: the first one signs (R7). */
  'RUNNER_SECRET',
  /** A service token of Cloudflare Access, when runners stand behind it. */
  'RUNNER_ACCESS_ID',
  'RUNNER_ACCESS_SECRET',
  /** How many runners there are as Cloudflare Containers, in the environment `containers` only (wrangler.toml). */
  'RUNNER_INSTANCES',
  /** host:port list that outbound requests may reach although they are private (X2). */
  'ALLOW_HOSTS',
  /** Who sends the requests of tools: the platform, or a runner to addresses that were judged (X2). */
  'EGRESS',
  /** Requests per minute for each API key and agent; unset = no limit. */
  'RATE_LIMIT',
  /** How long a session is kept after it was last heard of, such as `7d`; unset = 30 days. */
  'SESSION_EXPIRY',
  /** Least period of a periodic feed, in seconds; unset = 5. */
  'FEED_MIN_SECONDS',
  /** Least time between two runs of a schedule, in seconds; unset = 60. */
  'CRON_MIN_SECONDS',
] as const;

/** Unset is the same as empty. */
export type WorkerSettings = { readonly [Name in (typeof WORKER_SETTINGS)[number]]?: string };
