/** The content of a message as parts: texts, images and files (C2). */
import * as z from 'zod';
import { limits } from '../domain/limits.ts';

const fileSource = {
  media_type: z.string().max(160).optional().meta({ description: 'Default: what the bytes show' }),
  data: z.string().optional().meta({ description: 'The bytes in base64' }),
  artifact: z.string().max(64).optional().meta({ description: 'Id of an artifact of the session, instead of `data`' }),
};
const fileName = z
  .string()
  .regex(/^[^\p{Cc}/\\]+$/u, 'a name has no control characters, "/" or "\\"')
  .max(limits.fileNameChars);

/** At least one part. */
export const contentParts = z
  .array(
    z
      .discriminatedUnion('type', [
        z.strictObject({
          type: z.literal('text').meta({ description: 'Text' }),
          text: z.string().meta({ description: 'The text' }),
        }),
        z.strictObject({
          type: z.literal('image').meta({ description: 'PNG, JPEG, GIF or WebP' }),
          name: fileName.optional().meta({ description: 'Shown to the model' }),
          ...fileSource,
        }),
        z.strictObject({
          type: z.literal('file').meta({ description: 'Any file' }),
          name: fileName.meta({ description: 'Shown to the model' }),
          ...fileSource,
        }),
      ])
      .refine((part) => part.type === 'text' || (part.data === undefined) !== (part.artifact === undefined), {
        error: 'expected exactly one of "data" and "artifact"',
      }),
  )
  .min(1)
  .max(limits.messageParts);

export const messageParts = z.strictObject({ content: contentParts });
