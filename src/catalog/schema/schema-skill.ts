/** Schema of the front matter of a `SKILL.md`, with its Markdown as `text` (C8). */
import * as z from 'zod';
import { jsonMap } from './fields.ts';

/** Members that are not known are kept; `allowed-tools` is one of them and grants nothing. */
export const skillSchema = z.looseObject({
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, {
    error: 'must be 1 to 64 lower-case letters, digits and hyphens',
  }),
  description: z.string().regex(/\S/, { error: 'must say what the skill does and when to use it' }),
  text: z.string(),
  metadata: jsonMap.optional().catch(undefined),
});

export type SkillInput = z.infer<typeof skillSchema>;
