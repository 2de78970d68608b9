/** Validates names of images, and matches them against the operator's patterns. */
import { z } from 'zod';

const MAX_CHARS = 255;
/** `[host[:port]/]path[:tag][@digest]` in the engine's form: lower case, no `..`, no special characters of shells and paths. */
const REFERENCE =
  /^(?:[a-z0-9]+(?:[.-][a-z0-9]+)*(?::\d{1,5})?\/)?[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*(?::\w[\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/;

export const imageReference = z
  .string()
  .max(MAX_CHARS)
  .regex(REFERENCE, 'must be the name of an image, for example python:3.12-slim or registry.example/team/tool:1');

/** `*` matches anything, including slashes. */
export const imagePattern = z
  .string()
  .max(MAX_CHARS)
  .regex(/^[\w./:@*-]+$/, 'must be the name of an image; * matches anything');

/** Whether a pattern matches the name; a name without tag has the tag `latest`. */
export function isAllowed(reference: string, patterns: readonly string[]): boolean {
  const last = reference.slice(reference.lastIndexOf('/') + 1);
  const full = /[:@]/.test(last) ? reference : `${reference}:latest`;
  return patterns.some((pattern) => {
    const parts = pattern.split('*').map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`));
    const expression = new RegExp(`^${parts.join('.*')}$`);
    return expression.test(reference) || expression.test(full);
  });
}
