/** Content of OpenAI clients as content of our messages (C1, C2). Members that we do not know are left out. */
import * as z from 'zod';
import { EngineError } from '../../domain/errors.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { isJsonObject } from '../../domain/json.ts';
import { USER_ID, USER_ID_RULE } from '../../domain/user-id.ts';
import { partOf } from '../../policies/openai-parts.ts';
import type { ClientPart } from '../../policies/openai-parts.ts';

const file = z.object({
  filename: z.string().nullish(),
  file_data: z.string().nullish(),
  file_id: z.string().nullish(),
});
const part: z.ZodType<ClientPart> = z.discriminatedUnion('type', [
  z.object({ type: z.enum(['text']), text: z.string() }),
  z.object({ type: z.enum(['input_text', 'output_text']), text: z.string() }),
  z.object({ type: z.literal('refusal'), refusal: z.string() }),
  z.object({ type: z.literal('image_url'), image_url: z.object({ url: z.string() }) }),
  z.object({ type: z.literal('input_image'), image_url: z.string().nullish(), file_id: z.string().nullish() }),
  file.extend({ type: z.literal('input_file') }),
  z.object({ type: z.literal('file'), file }),
]);
const parts = z.array(part);

/** The user of a session; clients send an empty text for none. */
export const userName = z
  .union([z.literal(''), z.string().regex(USER_ID, `must be ${USER_ID_RULE}`)])
  .nullish()
  .transform((user) => (user === '' ? null : (user ?? null)));

/** The content of a message, for a history: texts, or parts in OpenAI's spelling. */
export function knownContent(content: Json | undefined, at: string): Json {
  if (typeof content === 'string' || content === null || content === undefined) return content ?? null;
  return partsOf(content, at) as unknown as Json;
}

/** The content of a new message. An image with a URL is fetched (C2). */
export function messageContent(content: Json | undefined, at: string): string | JsonObject[] {
  if (typeof content === 'string') return content;
  return partsOf(content ?? [], at).map((one): JsonObject => {
    const url = one.type === 'image_url' ? one.image_url.url : one.type === 'input_image' ? one.image_url : null;
    if (url != null && /^https?:/i.test(url)) return { type: 'image', url };
    // A file without a name gets one.
    const given = partOf(one) as JsonObject & { readonly type: string };
    return given.type === 'file' ? { name: 'file', ...given } : given;
  });
}

/** The text of a message. @throws EngineError `unsupported_content` for anything else */
export function textContent(content: Json | undefined, at: string): string {
  if (typeof content === 'string') return content;
  const texts = partsOf(content ?? [], at).map((one) => {
    if ('text' in one) return one.text;
    if ('refusal' in one) return one.refusal;
    throw new EngineError('unsupported_content', `"${at}": only text is supported here`);
  });
  return texts.join('\n');
}

function partsOf(content: Json, at: string): ClientPart[] {
  const result = parts.safeParse(content);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const index = typeof issue?.path[0] === 'number' ? issue.path[0] : 0;
  const found = Array.isArray(content) ? content[index] : undefined;
  const type = isJsonObject(found) && typeof found['type'] === 'string' ? ` of the type "${found['type']}"` : '';
  throw new EngineError(
    'unsupported_content',
    `"${[at, ...(issue?.path ?? [])].join('.')}"${type}: ${issue?.message ?? 'not valid'}`,
  );
}
