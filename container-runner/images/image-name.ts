/** Names of images: what may be asked for at all, and what an operator allows. */
import { z } from 'zod';

const MAX_CHARS = 255;
/** `[host[:port]/]path[:tag][@digest]`, as the engine has it: lower case, no `..`, nothing that a shell or a path reads. */
const REFERENCE =
  /^(?:[a-z0-9]+(?:[.-][a-z0-9]+)*(?::\d{1,5})?\/)?[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*(?::\w[\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/;

export const imageReference = z
  .string()
  .max(MAX_CHARS)
  .regex(REFERENCE, 'must be the name of an image, such as python:3.12-slim or registry.example/team/tool:1');

/** `*` stands for anything, also for a slash. */
export const imagePattern = z
  .string()
  .max(MAX_CHARS)
  .regex(/^[\w./:@*-]+$/, 'must be the name of an image, with * for anything');

/** Whether one of the patterns fits the name, with the tag `latest` where it has none. */
export function isAllowed(reference: string, patterns: readonly string[]): boolean {
  const last = reference.slice(reference.lastIndexOf('/') + 1);
  const full = /[:@]/.test(last) ? reference : `${reference}:latest`;
  return patterns.some((pattern) => {
    const parts = pattern.split('*').map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`));
    const expression = new RegExp(`^${parts.join('.*')}$`);
    return expression.test(reference) || expression.test(full);
  });
}
