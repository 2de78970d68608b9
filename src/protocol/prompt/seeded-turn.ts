/**
 * Turns of a seeded history as the model sees them: as if it had written them in the protocol (C1). The text comes from a
 * client, so tags in it are escaped like those of any external text.
 */
import { filesOfContent, textOfContent } from '../../domain/content.ts';
import type { FilePart } from '../../domain/content.ts';
import { isJsonObject, parseJson } from '../../domain/json.ts';
import type { Attachment } from '../../domain/ports/model.ts';
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

/** A file of the history, whose bytes are read when a prompt shows it. */
export type Attach = (part: FilePart) => Attachment;

/**
 * @param messages of one turn: a message of the user, if there is one, and what followed
 * @returns its calls as native ones; `withoutCalls` writes them as actions
 */
export function seededTurn(messages: readonly SeededMessage[], attach: Attach): ChatTurn {
  const [first] = messages;
  const outputs: Output[] = [];
  for (const message of messages) {
    const last = outputs.at(-1);
    if (message.role === 'tool') last?.results.push(reportOf(message, last.calls, attach));
    else if (message.role === 'assistant') {
      const output = last === undefined || last.calls.length > 0 ? { said: [], calls: [], results: [] } : last;
      if (output !== last) outputs.push(output);
      if (message.content !== null) output.said.push(message.content);
      output.calls.push(...(message.tool_calls ?? []).map(callOf));
    }
  }
  const final = outputs.at(-1);
  const answer = final === undefined || final.calls.length > 0 ? '' : final.said.join('\n\n');
  const asked = first?.role === 'user' ? first.content : '';
  const files = filesOfContent(asked).map(attach);
  return {
    user: textOfContent(asked),
    ...(files.length === 0 ? {} : { files }),
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

/** Like the result of an action: a line for each file, then the text. */
function reportOf(
  { tool_call_id: id, content }: Extract<SeededMessage, { role: 'tool' }>,
  calls: readonly NativeCall[],
  attach: Attach,
): ActionReport {
  const name = calls.find((call) => call.id === id)?.name ?? null;
  const texts =
    typeof content === 'string' ? [content] : content.flatMap((part) => (part.type === 'text' ? part.text : []));
  const files = filesOfContent(content).map(attach);
  const shown = files.length === 0 ? {} : { files };
  return { id, name, status: 'completed', ms: null, output: texts.join('\n'), ...shown };
}
