/** The content of a message as parts: texts, images and files (C2). */
import * as z from 'zod';
import { limits } from '../domain/limits.ts';

/** Where the bytes of a file come from, and their type. */
export const fileSource = {
  media_type: z.string().max(160).optional().meta({ description: 'Default: what the bytes show' }),
  data: z.string().optional().meta({ description: 'The bytes in base64' }),
  artifact: z.string().max(64).optional().meta({ description: 'Id of an artifact of the session, instead of `data`' }),
};
/** In a new message only. */
const url = z
  .string()
  .min(1)
  .max(limits.messageUrlChars)
  .optional()
  .meta({ description: 'Where the file is fetched from, once, instead of `data`' });
export const fileName = z
  .string()
  // Also no half of a character, which has no UTF-8, and nothing that turns the direction: "gpj.exe" for "exe.jpg".
  .regex(/^[^\p{Cc}\p{Cs}\u202A-\u202E\u2066-\u2069/\\]+$/u, 'a name has no control characters, "/" or "\\"')
  .max(limits.fileNameChars);

export const textPart = z.strictObject({
  type: z.literal('text').meta({ description: 'Text' }),
  text: z.string().meta({ description: 'The text' }),
});
export const imagePart = z.strictObject({
  type: z.literal('image').meta({ description: 'PNG, JPEG, GIF or WebP' }),
  name: fileName.optional().meta({ description: 'Shown to the model' }),
  ...fileSource,
});

export function sourcesOf(part: { [source in 'data' | 'artifact' | 'url']?: string | undefined }): number {
  return [part.data, part.artifact, part.url].filter((source) => source !== undefined).length;
}

const EMPTY = 'a message must not be empty';

/** Texts and files, with more than white space. */
export const contentParts = z
  .array(
    z
      .discriminatedUnion('type', [
        textPart,
        z.strictObject({ ...imagePart.shape, url }),
        z.strictObject({
          type: z.literal('file').meta({ description: 'Any file' }),
          name: fileName.optional().meta({
            description: 'Shown to the model. Required, unless `url` is given: then its path has the default',
          }),
          ...fileSource,
          url,
        }),
      ])
      .refine((part) => part.type === 'text' || sourcesOf(part) === 1, {
        error: 'expected exactly one of "data", "artifact" and "url"',
      })
      .refine((part) => part.type !== 'file' || part.name !== undefined || part.url !== undefined, {
        path: ['name'],
        error: 'expected a string: the name of the file',
      }),
  )
  .min(1, { error: EMPTY, abort: true })
  .max(limits.messageParts)
  .refine((parts) => parts.some((part) => part.type !== 'text' || /\S/.test(part.text)), { error: EMPTY })
  .refine(
    (parts) => parts.filter((part) => part.type !== 'text' && part.url !== undefined).length <= limits.messageUrls,
    {
      error: `at most ${limits.messageUrls} parts may have a "url"`,
    },
  );

export const messageParts = z.strictObject({ content: contentParts });
