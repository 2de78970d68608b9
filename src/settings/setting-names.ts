/**
 * The settings that the Worker reads from its environment, in addition to the `TOOL_…` secrets (H8). This list is used
 * for the type of the environment, by `npm start`, and in the test of docs/operations.md.
 */
export const WORKER_SETTINGS = [
  /** Provider preset (docs/models.md); default: detected from the URL. */
  'LLM_PROVIDER',
  'LLM_BASE_URL',
  'LLM_API_KEY',
  'LLM_MODEL',
  'API_KEYS',
  /** The namespace that owns what was made without keys (T4). */
  'OWNER_OF_KEYLESS',
  'ALLOWED_ORIGINS',
  /** Key that signs session tokens (H5). */
  'SESSION_TOKEN_SECRET',
  /** Comma-separated base URLs of runners, each with optional labels after `#` (R7). */
  'RUNNER_URLS',
  /** A secret, or `id=secret, id=secret`; the first one signs (R7). */
  'RUNNER_SECRET',
  /** A service token of Cloudflare Access, for runners behind it. */
  'RUNNER_ACCESS_ID',
  'RUNNER_ACCESS_SECRET',
  /** Number of runners as Cloudflare Containers, in the environment `containers` only (wrangler.toml). */
  'RUNNER_INSTANCES',
  /** host:port list of private addresses that outbound requests may reach (X2). */
  'ALLOW_HOSTS',
  /** Who sends the requests of tools: the platform, or a runner after a check of the address (X2). */
  'EGRESS',
  /** The plan of the account on the platform, `free` or `paid` (Z3); unset means `paid`. */
  'PLATFORM_PLAN',
  /** `free` or `paid`: a local system enforces the limits of this plan (Z3). */
  'PLATFORM_LIMITS',
  /** `1`: every key may read the messages that were sent to the model; unset: admin keys only. */
  'DEBUG_PROMPTS',
  /** Rules that decide about the actions of all agents, in YAML or JSON (C9). */
  'POLICIES',
  /** Patterns of text that leaves no session, as a JSON or YAML list (C9). */
  'REDACT',
  /** Requests per minute for each namespace and agent; unset means no limit. */
  'RATE_LIMIT',
  /** How long a session is kept after its last activity, such as `7d`; unset means 30 days. */
  'SESSION_EXPIRY',
  /** Minimum period of a periodic feed, in seconds; unset means 5. */
  'FEED_MIN_SECONDS',
  /** Minimum time between two runs of a schedule, in seconds; unset means 60. */
  'CRON_MIN_SECONDS',
  /** Where traces and metrics are sent, and what they contain (O1, O2): the standard names of OpenTelemetry. */
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OTEL_EXPORTER_OTLP_PROTOCOL',
  'OTEL_SERVICE_NAME',
  'OTEL_RESOURCE_ATTRIBUTES',
  'OTEL_SDK_DISABLED',
  'OTEL_TRACES_EXPORTER',
  'OTEL_METRICS_EXPORTER',
  'OTEL_TRACES_SAMPLER',
  'OTEL_TRACES_SAMPLER_ARG',
  'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT',
] as const;

/** An unset setting is the same as an empty one. */
export type WorkerSettings = { readonly [Name in (typeof WORKER_SETTINGS)[number]]?: string };
