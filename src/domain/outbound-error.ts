/** Why an outbound request of a tool was not sent, or got no response (X2). */
export type OutboundCode =
  | 'address_refused'
  | 'header_refused'
  | 'redirect_refused'
  | 'too_many_redirects'
  | 'egress_unavailable'
  | 'platform_limit'
  | 'fetch_timeout'
  | 'response_too_large'
  | 'fetch_failed';

/** A request that was not sent, or got no response. */
export class OutboundError extends Error {
  override readonly name = 'OutboundError';
  readonly code: OutboundCode;
  readonly retryable: boolean;
  /** Nothing was sent. */
  readonly beforeDispatch: boolean;

  constructor(code: OutboundCode, message: string, beforeDispatch: boolean, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.retryable = code === 'egress_unavailable' || code === 'fetch_timeout' || code === 'fetch_failed';
    this.beforeDispatch = beforeDispatch;
  }
}
