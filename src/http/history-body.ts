/** The member `history` of a new session: the messages that OpenAI clients send (C1). */
import * as z from 'zod';
import { limits } from '../domain/limits.ts';
import { historyParts, textParts } from './history-parts.ts';

/** Ids and names are shown to the model in attributes, and to endpoints. */
const callName = (what: string): z.ZodType<string, string> =>
  z.string().regex(/^[^\s<>&"'\p{C}]{1,128}$/u, `${what} has 1 to 128 characters, none of < > & " ' or white space`);

const LIST = 'expected a string, or a list of parts';
const content = z.union([z.string(), historyParts], { error: LIST }).meta({
  description:
    'The text; or a list of parts: texts, images and files as in a message, or as OpenAI clients send them. Texts without files are joined by line breaks',
});
const answer = z
  .union([z.string(), textParts], { error: LIST })
  .nullish()
  .meta({ description: 'The text, or a list of texts; none or null if there are only calls' });
const participant = z.string().max(256).nullish().meta({ description: 'Kept, not shown to the model' });

const call = z.strictObject({
  id: callName('an id').meta({ description: 'Unique among the calls of the message' }),
  type: z.literal('function').meta({ description: 'Always `function`' }),
  function: z
    .strictObject({
      name: callName('a name').meta({ description: 'Name of the function' }),
      arguments: z.string().meta({ description: 'A JSON object as text' }),
    })
    .meta({ description: 'What was called' }),
});

/** One message of it. */
const historyMessage = z.discriminatedUnion('role', [
  z.strictObject({
    role: z.literal('user').meta({ description: 'A message of the user' }),
    content,
    name: participant,
  }),
  z.strictObject({
    role: z.literal('assistant').meta({ description: 'An answer, calls, or both' }),
    content: answer,
    name: participant,
    tool_calls: z.array(call).max(limits.actionsPerGeneration).nullish().meta({
      description: 'Calls. Messages with their results must follow directly',
    }),
    // Members of an answer that clients send back unchanged.
    refusal: z.string().nullish().meta({ description: 'The text, if there is no content' }),
    annotations: z.array(z.unknown()).max(1_000).nullish().meta({ description: 'Ignored' }),
    audio: z.null().optional().meta({ description: 'Ignored' }),
    function_call: z.null().optional().meta({ description: 'Ignored' }),
  }),
  z.strictObject({
    role: z.literal('tool').meta({ description: 'The result of a call' }),
    tool_call_id: callName('an id').meta({ description: 'Id of the call that this is the result of' }),
    content,
    name: participant,
  }),
]);

export const historyBody = z.array(historyMessage).meta({
  description: `The conversation before the session, for the model; API keys only. At most ${limits.seededMessages} messages with ${limits.seededBytes} bytes, and ${limits.seededFiles} images and files with ${limits.seededFileBytes} bytes. Nothing in it is executed`,
});

/**
 * A history up to its first invalid message, so that no issues of thousands of others are collected. The same if all are
 * valid, or if it is not a list.
 */
export function untilInvalid(history: unknown): unknown {
  if (!Array.isArray(history)) return history;
  const at = history.findIndex((message) => !historyMessage.safeParse(message).success);
  return at === -1 ? history : history.slice(0, at + 1);
}
