/** What the client throws. */

/** Codes of the client itself; all others are of the server (docs/runs.md#http-status). */
const CONNECTION_LOST = 'connection_lost';
const INVALID_RESPONSE = 'invalid_response';

/** Failures of a server that are final, although their statuses are those of passing ones. */
const FINAL_CODES: ReadonlySet<string> = new Set([
  'model_rejected',
  'runner_rejected',
  'not_recoverable',
  'manifest_damaged',
  'step_failed',
]);
const PASSING_STATUSES: ReadonlySet<number> = new Set([429, 500, 502, 503, 504]);

export interface CortexErrorInit {
  readonly code: string;
  readonly message: string;
  /** Default: 0. */
  readonly status?: number;
  readonly retryAfterMs?: number | null;
  readonly problem?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

/** A refused request, a failed run, or a lost connection. Branch on `code`, never on the message. */
export class CortexError extends Error {
  override readonly name = 'CortexError';
  /** A code of the server, or `connection_lost` or `invalid_response`. */
  readonly code: string;
  /** The HTTP status; 0 without one: the connection was lost, or a run has failed. */
  readonly status: number;
  /** When the server wants the next attempt, in milliseconds from its answer; null if it has not said. */
  readonly retryAfterMs: number | null;
  /** The server's problem document; empty without one. */
  readonly problem: Readonly<Record<string, unknown>>;

  constructor({ code, message, status = 0, retryAfterMs = null, problem = {}, cause }: CortexErrorInit) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = status;
    this.retryAfterMs = retryAfterMs;
    this.problem = problem;
  }

  /** Whether the same request may succeed soon. The client has retried it already. */
  get isPassing(): boolean {
    if (this.code === CONNECTION_LOST) return true;
    // The first of two equal decisions is being written.
    if (this.problem['approval_status'] === 'deciding') return true;
    return PASSING_STATUSES.has(this.status) && !FINAL_CODES.has(this.code);
  }
}

export function connectionLost(message: string, cause?: unknown): CortexError {
  return new CortexError({ code: CONNECTION_LOST, message, cause });
}

/** The answer is not of a Cortex Edge. */
export function invalidResponse(message: string, status: number): CortexError {
  return new CortexError({ code: INVALID_RESPONSE, message, status });
}

/** The server cannot know a key or a token that no header can carry. */
export function invalidToken(): CortexError {
  return new CortexError({
    code: 'unauthorized',
    message: 'The key or token has a space, a control character or a character above U+00FF',
  });
}

/** An id that would lead to another path. */
export function unusableId(): CortexError {
  return new CortexError({ code: 'invalid_request', message: 'An id must not be "." or ".."' });
}

/** The error that a response with an error status tells of. */
export async function errorOf(response: Response): Promise<CortexError> {
  const { status } = response;
  const text = await response.text();
  const problem = parseObject(text);
  const { code, detail } = problem;
  const seconds = Number(response.headers.get('retry-after') ?? '');
  return new CortexError({
    // A proxy answers without one.
    code: typeof code === 'string' ? code : `http_${status}`,
    message: typeof detail === 'string' ? detail : `HTTP ${status}: ${text.slice(0, 200)}`,
    status,
    retryAfterMs: seconds > 0 ? seconds * 1_000 : null,
    problem,
  });
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
  } catch {
    return {};
  }
}
