/**
 * Turns of a seeded history as the model sees them: as if it had written them in the protocol (C1). The text comes from a
 * client, so tags in it are escaped like those of any external text.
 */
import { isJsonObject, parseJson } from '../../domain/json.ts';
import type { SeededCall, SeededMessage } from '../../domain/seeded.ts';
import type { NativeCall } from '../native/tool-calls.ts';
import type { ActionReport, ChatTurn } from './chat-turn.ts';
import { escapeReservedTags, sanitizeText } from './escape-reserved-tags.ts';

/** Assistant messages without a result between them are one output. */
interface Output {
  readonly said: string[];
  readonly calls: NativeCall[];
  readonly results: ActionReport[];
}

/**
 * @param messages of one turn: a message of the user, if there is one, and what followed
 * @returns its calls as native ones; `asText` writes them as actions
 */
export function seededTurn(messages: readonly SeededMessage[]): ChatTurn {
  const [first] = messages;
  const outputs: Output[] = [];
  for (const message of messages) {
    const last = outputs.at(-1);
    if (message.role === 'tool') last?.results.push(reportOf(message, last.calls));
    else if (message.role === 'assistant') {
      const output = last === undefined || last.calls.length > 0 ? { said: [], calls: [], results: [] } : last;
      if (output !== last) outputs.push(output);
      if (message.content !== null) output.said.push(message.content);
      output.calls.push(...(message.tool_calls ?? []).map(callOf));
    }
  }
  const final = outputs.at(-1);
  const answer = final === undefined || final.calls.length > 0 ? '' : final.said.join('\n\n');
  return {
    user: first?.role === 'user' ? first.content : '',
    generations: outputs.map(({ said, calls, results }) => ({
      text: said.length === 0 ? '' : responseOf(said.join('\n\n'), calls.length === 0),
      calls,
      results,
    })),
    answer,
    isSeeded: true,
  };
}

function responseOf(text: string, final: boolean): string {
  return `<response final="${final}">${escapeReservedTags(sanitizeText(text))}</response>`;
}

function callOf({ id, function: { name, arguments: text } }: SeededCall): NativeCall {
  const given = parseJson(text);
  const parameters = isJsonObject(given) ? given : {};
  return { actionId: id, type: 'tool', id, name, arguments: escapeReservedTags(JSON.stringify(parameters)) };
}

function reportOf(
  { tool_call_id: id, content }: Extract<SeededMessage, { role: 'tool' }>,
  calls: readonly NativeCall[],
): ActionReport {
  const name = calls.find((call) => call.id === id)?.name ?? null;
  return { id, name, status: 'completed', ms: null, output: content };
}
