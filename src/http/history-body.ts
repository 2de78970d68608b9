/** The member `history` of a new session: the messages that OpenAI clients send (C1). */
import * as z from 'zod';
import { limits } from '../domain/limits.ts';

/** Ids and names are shown to the model in attributes, and to endpoints. */
const callName = (what: string): z.ZodType<string, string> =>
  z.string().regex(/^[^\s<>&"'\p{C}]{1,128}$/u, `${what} has 1 to 128 characters, none of < > & " ' or white space`);

const content = z
  .union(
    [z.string(), z.array(z.looseObject({ type: z.string().max(64).meta({ description: '`text`' }) })).max(1_000)],
    {
      error: 'expected a string, or a list of parts {type: "text", text}',
    },
  )
  .meta({ description: 'The text; or a list of parts `{type: "text", text}`, which are joined by line breaks' });
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

const message = z.discriminatedUnion('role', [
  z.strictObject({
    role: z.literal('user').meta({ description: 'A message of the user' }),
    content,
    name: participant,
  }),
  z.strictObject({
    role: z.literal('assistant').meta({ description: 'An answer, calls, or both' }),
    content: content.nullish().meta({ description: 'The text; none or null if there are only calls' }),
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

export const historyBody = z.array(message).meta({
  description: `The conversation before the session, for the model; API keys only. At most ${limits.seededMessages} messages and ${limits.seededBytes} bytes. Nothing in it is executed`,
});
