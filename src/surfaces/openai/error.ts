/** Errors as OpenAI clients read them: `{error: {message, type, param, code}}` (E2). */
import type { EngineError } from '../../domain/errors.ts';
import type { JsonObject } from '../../domain/json.ts';
import { LOST } from '../surface.ts';
import type { StreamEnd, SurfaceError } from '../surface.ts';

/** @param type clients show it with the message; the stable code is `code` */
export function errorBody(message: string, code: string, type = 'server_error'): { readonly error: JsonObject } {
  return { error: { message, type, param: null, code } };
}

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
};

export function errorOf({ message, code, status }: EngineError): SurfaceError {
  const type = TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'server_error');
  return {
    body: JSON.stringify(errorBody(message, code, type)),
    contentType: 'application/json',
    // The client would repeat these three times, with the same result.
    ...(status === 409 ? { headers: { 'x-should-retry': 'false' } } : {}),
  };
}

/** Why a stream ends before its run does. */
export function lostBody(how: StreamEnd): { readonly error: JsonObject } {
  const { code, message } = LOST[how];
  return errorBody(message, code);
}

/** Ends every stream: what follows is not read. */
export const DONE = 'data: [DONE]\n\n';

/**
 * The frame of a stream that ends before its run does, for both APIs. Some clients of responses repeat a request whose
 * first frame is an error of the server, although the run continues; so it is called an error of the request.
 *
 * @param number of the last frame
 */
export function lostFrame(how: StreamEnd, number = 0): string {
  const { code, message } = LOST[how];
  const body = errorBody(message, code, 'invalid_request_error');
  const frame = { type: 'error', sequence_number: number, code, message, param: null, ...body };
  return `event: error\ndata: ${JSON.stringify(frame)}\n\n`;
}
