/** Client tools, as the application gives them and as they are sent (C3). */
import type { JsonObject } from '../domain/json.ts';
import type { ToolDeclaration } from './documents.ts';

export interface ClientToolContext {
  readonly callId: string;
  /** Aborted when the result is no longer wanted: the call was settled or cancelled, or the client leaves. */
  readonly signal: AbortSignal;
}

/** Returns the output: JSON, or undefined for null. What it throws is the error that the model gets. */
export type RunClientTool = (parameters: JsonObject, context: ClientToolContext) => unknown;

/** A tool that is passed with the message; or only its function, for a client tool of the agent's manifest. */
export type ClientTool = (Omit<ToolDeclaration, 'name'> & { readonly run: RunClientTool }) | RunClientTool;

export type ClientTools = Readonly<Record<string, ClientTool>>;

/** The tools that must be passed with the message. */
export function declarationsOf(tools: ClientTools): ToolDeclaration[] {
  return Object.entries(tools).flatMap(([name, tool]): ToolDeclaration[] => {
    if (typeof tool === 'function') return [];
    const { run: _run, ...declaration } = tool;
    return [{ name, ...declaration }];
  });
}
