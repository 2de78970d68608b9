/** Errors of MCP servers and of the library as failures of an attempt, with stable codes. */
import { ProtocolError, ProtocolErrorCode, SdkError, SdkErrorCode } from '@modelcontextprotocol/client';
import type { ActionError } from '../../domain/action.ts';
import { messageOf } from '../../domain/errors.ts';
import { failure } from '../../domain/failure.ts';
import type { Failure } from '../../domain/failure.ts';
import { limits } from '../../domain/limits.ts';
import { isOverload } from '../failure.ts';
import { ConnectFault } from './connection.ts';
import type { McpConnection } from './connection.ts';

/**
 * @param fault what connecting or the call has thrown
 * @param http of the connection of the call; null if there was none
 */
export function failureOfServer(server: string, fault: unknown, http: McpConnection['http'] | null): Failure {
  if (fault instanceof ConnectFault) return notConnected(server, fault);
  return failureOfRequest(server, fault, http, {});
}

/** Nothing was sent, so even an unsafe action may be tried again. */
function notConnected(server: string, { cause, http }: ConnectFault): Failure {
  const { error } = failureOfRequest(server, cause, http, { beforeDispatch: true });
  const isKnown = error.code === 'address_refused' || error.code === 'mcp_unauthorized';
  return { ok: false, error: { ...error, code: isKnown ? error.code : 'mcp_unavailable' } };
}

function failureOfRequest(
  server: string,
  fault: unknown,
  http: McpConnection['http'] | null,
  more: Partial<ActionError>,
): Failure {
  const says = (text: string): string => `The MCP server "${server}" ${text}`;
  const outbound = http?.fault() ?? null;
  if (outbound !== null) {
    const { code, message, retryable, beforeDispatch } = outbound;
    return failure(code, says(`could not be asked: ${message}`), {
      retryable,
      ...(beforeDispatch ? { beforeDispatch } : {}),
      ...more,
    });
  }
  const refusal = http?.refusal() ?? null;
  if (refusal !== null && !(fault instanceof ProtocolError)) {
    const { status, isOfRequest, retryAfterMs } = refusal;
    if (status === 401 || status === 403) {
      const message = says(`refused access (${status}): check the secret that "auth" of the manifest names`);
      return failure('mcp_unauthorized', message, more);
    }
    return failure('mcp_failed', says(`answered ${status}`), {
      retryable: status === 408 || status === 425 || status === 429 || status >= 500,
      ...(retryAfterMs > 0 ? { retryAfterMs } : {}),
      ...(isOverload(status) ? { overloaded: true } : {}),
      // The request was not processed. A gateway also answers 503 if a server does not answer a request that it has.
      ...(status === 429 && isOfRequest ? { beforeDispatch: true } : {}),
      ...more,
    });
  }
  if (fault instanceof ProtocolError) {
    const { code, message } = fault;
    const text = message.slice(0, limits.mcpErrorChars);
    // The codes of JSON-RPC for a request that no tool has seen.
    if (code === ProtocolErrorCode.InvalidParams || code === ProtocolErrorCode.MethodNotFound) {
      return failure('mcp_refused', says(`refused the call: ${text}`), more);
    }
    return failure('mcp_failed', says(`reported an error (${code}): ${text}`), more);
  }
  if (fault instanceof SdkError && fault.code === SdkErrorCode.RequestTimeout) {
    return failure('timeout', says('did not answer in time'), { retryable: true, ...more });
  }
  const text = messageOf(fault).slice(0, limits.mcpErrorChars);
  return failure('mcp_failed', says(`gave no usable answer: ${text}`), { retryable: true, ...more });
}
