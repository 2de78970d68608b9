/**
 * The parts of messages in a history (C1): those of messages (C2), and the forms in which OpenAI clients send images and
 * files.
 */
import * as z from 'zod';
import { limits } from '../domain/limits.ts';
import { fileName, fileSource, imagePart, sourcesOf, textPart } from './content-parts.ts';

const detail = z.enum(['auto', 'low', 'high', 'original']).nullish().meta({ description: 'Ignored' });
const URL_FORM = 'A `data:` URL with the bytes in base64';
const url = z.string().meta({ description: URL_FORM });
const clientFile = {
  filename: fileName.nullish().meta({ description: 'Shown to the model' }),
  file_data: z.string().nullish().meta({ description: 'The bytes in base64, or a `data:` URL' }),
  file_id: z.string().max(256).nullish().meta({ description: 'Not supported: send the bytes' }),
};

/** Known, so that the error can say why. */
const fetched = z.string().optional().meta({ description: 'Not supported: send the bytes' });

const filePart = z
  .strictObject({
    type: z.literal('file').meta({ description: 'Any file' }),
    name: fileName.optional().meta({ description: 'Shown to the model' }),
    ...fileSource,
    url: fetched,
    file: z.strictObject(clientFile).optional().meta({ description: 'The file as OpenAI clients send it' }),
  })
  .refine((part) => sourcesOf(part) === (part.file === undefined ? 1 : 0), {
    error: 'expected exactly one of "data", "artifact" and "file"',
  })
  .refine((part) => part.file !== undefined || part.url !== undefined || part.name !== undefined, {
    path: ['name'],
    error: 'expected a string: the name of the file',
  });

/** Content of a user or of a tool. */
export const historyParts = z
  .array(
    z.discriminatedUnion('type', [
      textPart,
      z.strictObject({ ...imagePart.shape, url: fetched }).refine((part) => sourcesOf(part) === 1, {
        error: 'expected exactly one of "data" and "artifact"',
      }),
      filePart,
      z.strictObject({
        type: z.literal('image_url').meta({ description: 'An image as OpenAI clients send it' }),
        image_url: z.strictObject({ url, detail }).meta({ description: 'The image' }),
      }),
      z.strictObject({
        type: z.literal('input_text').meta({ description: 'Text' }),
        text: z.string().meta({ description: 'The text' }),
      }),
      z.strictObject({
        type: z.literal('input_image').meta({ description: 'An image as OpenAI clients send it' }),
        image_url: url.nullish().meta({ description: URL_FORM }),
        file_id: clientFile.file_id,
        detail,
      }),
      z.strictObject({
        type: z.literal('input_file').meta({ description: 'A file as OpenAI clients send it' }),
        ...clientFile,
      }),
    ]),
  )
  .max(limits.seededParts);

/** Content of the assistant. */
export const textParts = z
  .array(
    z.discriminatedUnion('type', [
      textPart,
      z.strictObject({
        type: z.literal('output_text').meta({ description: 'Text' }),
        text: z.string().meta({ description: 'The text' }),
        annotations: z.array(z.unknown()).max(1_000).nullish().meta({ description: 'Ignored' }),
        logprobs: z.array(z.unknown()).max(1_000).nullish().meta({ description: 'Ignored' }),
      }),
      z.strictObject({
        type: z.literal('refusal').meta({ description: 'Text' }),
        refusal: z.string().meta({ description: 'The text' }),
      }),
    ]),
  )
  .max(limits.seededParts);
