/** Errors as RFC 9457 problem documents with a stable code. Branch on `code`, never on the message. */

const PROBLEMS = {
  invalid_request: { status: 400, title: 'Invalid request' },
  invalid_json: { status: 400, title: 'The body is not JSON' },
  unauthorized: { status: 401, title: 'The request must be signed' },
  not_found: { status: 404, title: 'Unknown route' },
  unknown_job: { status: 404, title: 'Unknown job' },
  id_conflict: { status: 409, title: 'The id was used for another job' },
  missing_files: { status: 409, title: 'Files of the workspace must be sent first' },
  body_too_large: { status: 413, title: 'The body is too large' },
  unsupported: { status: 422, title: 'No sandbox supports this' },
  busy: { status: 429, title: 'The runner is full' },
  egress_off: { status: 403, title: 'Outbound requests are disabled' },
  egress_refused: { status: 403, title: 'The address is not allowed' },
  egress_failed: { status: 502, title: 'The outbound request failed' },
  egress_timeout: { status: 504, title: 'The outbound request timed out' },
  storage: { status: 503, title: 'The storage of the runner failed' },
  starting: { status: 503, title: 'The runner is starting' },
  stopping: { status: 503, title: 'The runner is stopping' },
  internal: { status: 500, title: 'Internal error of the runner' },
} as const satisfies Record<string, { readonly status: number; readonly title: string }>;

export type ProblemCode = keyof typeof PROBLEMS;

/** An error with a stable code; the app answers with its document. */
export class RunnerError extends Error {
  override readonly name = 'RunnerError';
  readonly code: ProblemCode;
  readonly headers: Readonly<Record<string, string>>;
  /** Additional members of the document. */
  readonly members: Readonly<Record<string, boolean | readonly string[]>>;

  constructor(
    code: ProblemCode,
    message: string,
    headers: Readonly<Record<string, string>> = {},
    members: RunnerError['members'] = {},
  ) {
    super(message);
    this.code = code;
    this.headers = headers;
    this.members = members;
  }

  /** Its problem document. */
  toDocument(): { readonly status: number; readonly text: string } {
    const { status, title } = PROBLEMS[this.code];
    const body = { type: 'about:blank', title, status, code: this.code, detail: this.message, ...this.members };
    return { status, text: JSON.stringify(body) };
  }

  toResponse(): Response {
    const { status, text } = this.toDocument();
    return new Response(text, {
      status,
      headers: { 'content-type': 'application/problem+json', ...this.headers },
    });
  }
}
