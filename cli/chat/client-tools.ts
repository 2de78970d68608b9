/** Questions about calls of client tools (C3): the person is the tool. */
import pc from 'picocolors';
import { messageOf } from '../../src/domain/errors.ts';
import { parseJson } from '../../src/domain/json.ts';
import type { Json, JsonObject } from '../../src/domain/json.ts';
import { visible } from '../terminal/visible.ts';
import { shown } from './question.ts';
import type { Api, Ask, Question } from './question.ts';

/** A call that waits for its result, as in `client_tool_called` and in `pending` of a run. */
export interface ClientCall {
  readonly call_id: string;
  readonly name: string;
  readonly parameters: JsonObject;
}

export type CallResult = { readonly output: Json } | { readonly error: { readonly message: string } };

export const callPath = (session: string, call: string): string => `/agent/session/${session}/calls/${call}`;

export function clientCall(session: string, call: ClientCall): Question {
  const path = callPath(session, call.call_id);
  return { path, put: async (ask, api) => await answer(path, call, ask, api) };
}

/** What a person has typed: JSON, or else plain text; after `!`, the message of an error. */
export function resultOf(line: string): CallResult {
  const text = line.trim();
  if (text.startsWith('!')) return { error: { message: text.slice(1).trim() || 'The tool failed' } };
  const value = parseJson(text);
  return { output: value === undefined ? text : value };
}

async function answer(path: string, { name, parameters }: ClientCall, ask: Ask, api: Api): Promise<boolean> {
  console.log(pc.yellow(`  ? ${visible(name)} waits for your result`));
  console.log(shown(parameters));
  const said = await ask('  result (JSON or text, !message for an error) ');
  if (said === null) {
    console.log(`    answer with: ${api.curl(path, { output: 'the result' })}`);
    return false;
  }
  // Another client may have answered meanwhile; its result counts.
  await api.call(path, resultOf(said)).catch((fault: unknown) => console.log(pc.red(`  ${messageOf(fault)}`)));
  return true;
}
