/** The schema of `prompt` in agent manifests: one optional member for each part of the system prompt (L4). */
import * as z from 'zod';
import { PROMPT_PARTS, promptPartSpec } from '../../domain/prompt-parts.ts';
import type { PromptPartId } from '../../domain/prompt-parts.ts';
import { fileText } from './fields.ts';

const replacement: z.ZodType<Replacement> = fileText;
const replacementOrFalse: z.ZodType<Replacement> = z.union([...fileText.options, z.literal(false)], {
  error: 'must be text, a map {file: path}, or false',
});
/** Parts that cannot be replaced are in the schema, so that the message says it. */
const fixed: z.ZodType<Replacement> = z.never({
  error: 'cannot be replaced or left out: it tells the model what is data and what only the runtime writes',
});

type Replacement = string | { readonly file: string } | false;

function partSchema(id: PromptPartId): z.ZodOptional<z.ZodType<Replacement>> {
  const { change, purpose, placeholders } = promptPartSpec(id);
  if (change === 'fixed') return fixed.optional().describe(`${purpose}. Cannot be replaced.`);
  const names = ['default', ...placeholders].map((name) => `{{${name}}}`).join(', ');
  return change === 'replace'
    ? replacement.optional().describe(`${purpose}. Placeholders: ${names}.`)
    : replacementOrFalse.optional().describe(`${purpose}. Placeholders: ${names}. False leaves it out.`);
}

export const prompt = z.strictObject(
  Object.fromEntries(PROMPT_PARTS.map((id) => [id, partSchema(id)])) as Record<
    PromptPartId,
    z.ZodOptional<z.ZodType<Replacement>>
  >,
);
