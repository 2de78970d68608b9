/** The Model Context Protocol, 2026-07-28 and 2025-11-25: agents, tools and workflows for its clients (E4). */
import type { EngineError } from '../../domain/errors.ts';
import type { Surface, SurfaceError } from '../surface.ts';
import { eventsAt, LOST_FRAME, McpDocument, McpFold } from './fold.ts';
import { McpRunState } from './run-state.ts';

export { toolsOf } from './listing.ts';
export type { McpTarget, McpTool } from './listing.ts';
export { DECISION_SCHEMA, decisionOf, errorResult } from './outcome.ts';
export type { McpFrame, McpOutcome, McpProgress, McpResult } from './outcome.ts';
export { ARTIFACT_TEMPLATE, parseArtifactUri } from './uri.ts';

export const mcp: Surface = {
  name: 'mcp',
  streamHeaders: {},
  fold: (run) => new McpFold(run),
  document: { events: McpRunState.EVENTS, eventsAt, of: (run) => new McpDocument(run) },
  lost: LOST_FRAME,
  error: errorOf,
};

/** JSON-RPC: the request could not be parsed, it is not one, and any other reason. */
const CODES: Partial<Record<EngineError['code'], number>> = { invalid_json: -32_700, invalid_request: -32_600 };

/** An error before the request was read, so without its id. */
function errorOf({ code, message, status }: EngineError): SurfaceError {
  const error = { code: CODES[code] ?? -32_000, message, data: { code } };
  return {
    body: JSON.stringify({ jsonrpc: '2.0', id: null, error }),
    contentType: 'application/json',
    ...(status === 401 ? { headers: { 'www-authenticate': 'Bearer' } } : {}),
  };
}
