/**
 * Failures of the system, and invalid requests. A model's mistake is never thrown: it becomes an event and feedback for
 * the model. There is one class, a closed set of codes, and one table.
 */

/** `no`: do not retry; `later`: the same request may succeed later. */
export type RetryClass = 'no' | 'later';

interface ErrorRow {
  readonly status: number;
  readonly retry: RetryClass;
  readonly title: string;
}

/**
 * Every code that an HTTP client can receive, with its status, retry class and title (H4): codes of refused requests,
 * and codes of failed runs. docs/runs.md has this table.
 */
export const ERROR_TABLE = {
  invalid_request: { status: 400, retry: 'no', title: 'Invalid request' },
  invalid_json: { status: 400, retry: 'no', title: 'The body is not JSON' },
  invalid_history: { status: 400, retry: 'no', title: 'The history is not a possible conversation' },
  unsupported_content: { status: 400, retry: 'no', title: 'This type of content is not supported' },
  invalid_content: { status: 400, retry: 'no', title: 'A part of the message is not valid' },
  content_type_mismatch: { status: 400, retry: 'no', title: 'The file is not of the stated type' },
  content_too_large: { status: 413, retry: 'no', title: 'The files of the message are too large' },
  unsupported_media_type: { status: 415, retry: 'no', title: 'This type of image is not supported' },
  url_refused: { status: 400, retry: 'no', title: 'The URL of a file is not allowed' },
  url_failed: { status: 502, retry: 'later', title: 'The URL of a file could not be fetched' },
  url_timeout: { status: 504, retry: 'later', title: 'The URL of a file did not answer in time' },
  unauthorized: { status: 401, retry: 'no', title: 'A valid API key is required' },
  forbidden: { status: 403, retry: 'no', title: 'Not allowed' },
  forbidden_origin: { status: 403, retry: 'no', title: 'Requests from this origin or host are not allowed' },
  not_found: { status: 404, retry: 'no', title: 'No such route' },
  unknown_agent: { status: 404, retry: 'no', title: 'No such agent' },
  unknown_workflow: { status: 404, retry: 'no', title: 'No such workflow' },
  unknown_session: { status: 404, retry: 'no', title: 'No such session' },
  unknown_run: { status: 404, retry: 'no', title: 'No such run' },
  unknown_action: { status: 404, retry: 'no', title: 'No such action' },
  unknown_execution: { status: 404, retry: 'no', title: 'No such execution' },
  unknown_artifact: { status: 404, retry: 'no', title: 'No such artifact' },
  unknown_content: { status: 404, retry: 'no', title: 'No such file of a message' },
  unknown_file: { status: 404, retry: 'no', title: 'No such file in the workspace' },
  unknown_fact: { status: 404, retry: 'no', title: 'No such fact about the user' },
  memory_full: { status: 409, retry: 'no', title: 'The limit of facts about the user is reached' },
  memory_unavailable: { status: 503, retry: 'later', title: 'The facts about the user could not be reached' },
  workspace_full: { status: 413, retry: 'no', title: 'The files of the workspace are too large or too many' },
  precondition_failed: { status: 412, retry: 'no', title: 'The file is not the expected one' },
  unknown_approval: { status: 404, retry: 'no', title: 'No such approval' },
  unknown_call: { status: 404, retry: 'no', title: 'No such call of a client tool' },
  call_settled: { status: 409, retry: 'no', title: 'The call of a client tool is closed' },
  client_tools_denied: { status: 403, retry: 'no', title: 'The agent accepts no tools with a message' },
  invalid_client_tools: { status: 400, retry: 'no', title: 'The tools of the message are not valid' },
  invalid_answer: { status: 400, retry: 'no', title: 'The values do not answer the question' },
  approval_closed: { status: 409, retry: 'no', title: 'The approval is no longer open' },
  method_not_allowed: { status: 405, retry: 'no', title: 'The route does not allow this method' },
  run_in_progress: { status: 409, retry: 'later', title: 'A run is in progress' },
  body_too_large: { status: 413, retry: 'no', title: 'The body is too large' },
  history_too_large: { status: 413, retry: 'no', title: 'The history is too large' },
  variables_quota: { status: 413, retry: 'no', title: 'The session variables exceed their total size' },
  range_not_satisfiable: { status: 416, retry: 'no', title: 'The range is outside the file' },
  idempotency_mismatch: { status: 422, retry: 'no', title: 'The idempotency key was used with a different body' },
  too_many_readers: { status: 429, retry: 'later', title: 'Too many streams are open on this session' },
  rate_limited: { status: 429, retry: 'later', title: 'Too many requests per minute' },
  queue_full: { status: 429, retry: 'later', title: 'Too many messages are queued' },
  large_bodies_busy: { status: 503, retry: 'later', title: 'Other large messages are being received' },
  session_full: { status: 507, retry: 'no', title: 'The session is full' },
  not_supported: { status: 400, retry: 'no', title: 'This is not supported' },
  not_configured: { status: 501, retry: 'no', title: 'A required setting is missing' },
  internal: { status: 500, retry: 'later', title: 'Internal error' },
  storage_unavailable: { status: 503, retry: 'later', title: 'The storage could not be reached' },
  directory_unavailable: { status: 503, retry: 'later', title: 'The list of sessions could not be read' },
  model_unavailable: { status: 502, retry: 'later', title: 'The model could not be reached' },
  model_timeout: { status: 504, retry: 'later', title: 'The model did not answer in time' },
  model_rejected: { status: 502, retry: 'no', title: 'The model endpoint rejected the request' },
  runner_unavailable: { status: 503, retry: 'later', title: 'The runner could not be reached' },
  runner_busy: { status: 503, retry: 'later', title: 'The runner is at capacity' },
  runner_rejected: { status: 502, retry: 'no', title: 'The runner rejected the job' },
  platform_limit: { status: 507, retry: 'no', title: 'The platform allows no further requests' },
  schema_too_new: { status: 503, retry: 'later', title: 'The stored session was written by a newer version' },
  schema_too_old: { status: 410, retry: 'no', title: 'The stored session was written before schema 1' },
  too_deep: { status: 422, retry: 'no', title: 'Sub-agents are nested too deeply' },
  not_recoverable: { status: 500, retry: 'no', title: 'The run cannot be recovered from the journal' },
  unknown_manifest: { status: 404, retry: 'no', title: 'No such manifest' },
  manifest_in_use: { status: 409, retry: 'no', title: 'Other manifests depend on it' },
  manifest_read_only: { status: 409, retry: 'no', title: 'Bundled manifests are read-only' },
  catalog_busy: { status: 429, retry: 'later', title: 'Too many catalogue changes are queued' },
  manifest_damaged: { status: 500, retry: 'no', title: 'The stored manifest is damaged' },
  invalid_manifest: { status: 400, retry: 'no', title: 'Invalid manifest' },
  budget_exceeded: { status: 422, retry: 'no', title: 'The run used up a budget without an answer' },
  max_iterations: { status: 422, retry: 'no', title: 'The run used up its iterations without an answer' },
  no_progress: { status: 502, retry: 'later', title: 'The model neither answered nor acted' },
  generation_error: { status: 502, retry: 'later', title: "The model's output ended early" },
  generation_abort: { status: 502, retry: 'later', title: "The model's output was stopped" },
  generation_content_filter: { status: 502, retry: 'later', title: "A content filter stopped the model's output" },
  input_cut: { status: 400, retry: 'no', title: 'The posted text ended early' },
  step_failed: { status: 500, retry: 'no', title: 'A step of the workflow failed' },
  too_many_actions: { status: 422, retry: 'no', title: 'The workflow needs too many actions' },
  too_large: { status: 422, retry: 'no', title: 'The steps of the workflow are too large' },
  interrupted: { status: 500, retry: 'later', title: 'The host was restarted, and the run could not continue' },
  recovery_exhausted: { status: 500, retry: 'later', title: 'The host was restarted too often during the run' },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERROR_TABLE;

/** Why a run failed. */
export interface RunError {
  readonly code: ErrorCode;
  readonly message: string;
}

/** The HTTP status of a failed run; 500 for a code of another version. */
export function runErrorStatus(code: string): number {
  return Object.hasOwn(ERROR_TABLE, code) ? ERROR_TABLE[code as ErrorCode].status : ERROR_TABLE.internal.status;
}

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

/** The message of any thrown value. */
export function messageOf(fault: unknown): string {
  return fault instanceof Error ? fault.message : String(fault);
}

/** The same for a session that never existed, was deleted, or belongs to others: an answer does not say which (T5). */
export function unknownSession(): EngineError {
  return new EngineError('unknown_session', 'This session does not exist');
}
