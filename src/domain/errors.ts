/**
 * Our failures and invalid requests. A model's mistake is never thrown: it becomes an event and a line for the model.
 * One class, a closed set of codes, one table.
 */

/** How a caller should treat the error: `no`: do not retry; `later`: the same request may succeed later. */
export type RetryClass = 'no' | 'later';

interface ErrorRow {
  readonly status: number;
  readonly retry: RetryClass;
  readonly title: string;
}

/** Every code that an HTTP client can see, with its status, retry class and title (H4). */
export const ERROR_TABLE = {
  invalid_request: { status: 400, retry: 'no', title: 'The request is not valid' },
  invalid_json: { status: 400, retry: 'no', title: 'The body is not JSON' },
  unsupported_content: { status: 400, retry: 'no', title: 'This kind of content is not supported' },
  unauthorized: { status: 401, retry: 'no', title: 'A valid API key is needed' },
  forbidden: { status: 403, retry: 'no', title: 'Not allowed' },
  forbidden_origin: { status: 403, retry: 'no', title: 'Requests from this origin or host are refused' },
  not_found: { status: 404, retry: 'no', title: 'No such route' },
  unknown_agent: { status: 404, retry: 'no', title: 'No such agent' },
  unknown_workflow: { status: 404, retry: 'no', title: 'No such workflow' },
  unknown_session: { status: 404, retry: 'no', title: 'No such session' },
  unknown_run: { status: 404, retry: 'no', title: 'No such run' },
  unknown_execution: { status: 404, retry: 'no', title: 'No such execution' },
  unknown_artifact: { status: 404, retry: 'no', title: 'No such artifact' },
  unknown_approval: { status: 404, retry: 'no', title: 'No such approval' },
  approval_closed: { status: 409, retry: 'no', title: 'The approval is not open any more' },
  method_not_allowed: { status: 405, retry: 'no', title: 'The route does not take this method' },
  run_in_progress: { status: 409, retry: 'later', title: 'A run is in progress' },
  body_too_large: { status: 413, retry: 'no', title: 'The body is too large' },
  variables_quota: { status: 413, retry: 'no', title: 'The variables of the session are too large together' },
  range_not_satisfiable: { status: 416, retry: 'no', title: 'The artifact has no such bytes' },
  idempotency_mismatch: { status: 422, retry: 'no', title: 'The idempotency key was used with another body' },
  too_many_readers: { status: 429, retry: 'later', title: 'Too many streams are open on this session' },
  rate_limited: { status: 429, retry: 'later', title: 'Too many requests in a minute' },
  queue_full: { status: 429, retry: 'later', title: 'Too many messages are waiting' },
  session_full: { status: 507, retry: 'no', title: 'The session has no room for more' },
  not_configured: { status: 501, retry: 'no', title: 'A setting that this needs is missing' },
  internal: { status: 500, retry: 'later', title: 'Something went wrong on our side' },
  model_unavailable: { status: 502, retry: 'later', title: 'The model could not be reached' },
  model_timeout: { status: 504, retry: 'later', title: 'The model did not answer in time' },
  model_rejected: { status: 502, retry: 'no', title: 'The model endpoint refused the request' },
  runner_unavailable: { status: 503, retry: 'later', title: 'The runner could not be reached' },
  runner_busy: { status: 503, retry: 'later', title: 'The runner has no free place' },
  runner_rejected: { status: 502, retry: 'no', title: 'The runner refused the job' },
  schema_too_new: { status: 503, retry: 'later', title: 'The stored session was written by a newer version' },
  too_deep: { status: 422, retry: 'no', title: 'Too many sessions stand above this one' },
  not_recoverable: { status: 500, retry: 'no', title: 'The run cannot go on from its record' },
  unknown_manifest: { status: 404, retry: 'no', title: 'No such manifest' },
  manifest_in_use: { status: 409, retry: 'no', title: 'Other manifests need it as it is' },
  manifest_read_only: { status: 403, retry: 'no', title: 'The manifest comes with the system' },
  catalog_busy: { status: 429, retry: 'later', title: 'Too many changes of the catalogue are waiting' },
  manifest_damaged: { status: 500, retry: 'no', title: 'What is stored of the manifest cannot be read' },
  invalid_manifest: { status: 400, retry: 'no', title: 'The manifest is not valid' },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERROR_TABLE;

/** An error with a stable code. Branch on `code`, never on the message. */
export class EngineError extends Error {
  override readonly name = 'EngineError';
  readonly code: ErrorCode;
  /** Additional members of the problem document, for example `issues` or `run_id`. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, details: Readonly<Record<string, unknown>> = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.details = details;
  }

  get status(): number {
    return ERROR_TABLE[this.code].status;
  }
}

/** The message of anything that was thrown. */
export function messageOf(fault: unknown): string {
  return fault instanceof Error ? fault.message : String(fault);
}
