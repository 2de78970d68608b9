/** The text of a manifest that replaces a part of the prompt: its placeholders, and what is wrong with it (L4). */
import { limits } from './limits.ts';
import { nearestNames } from './nearest.ts';
import { promptPartSpec } from './prompt-parts.ts';
import type { PromptPartId, PromptPiece, PromptPlaceholder } from './prompt-parts.ts';

/** `{{{{` is a literal `{{`; the last alternative is an opening that is never closed. */
const OPENING = /\{\{\{\{|\{\{([^{}\n]{0,64})\}\}|\{\{/g;

/**
 * Reads the replacement of a part.
 *
 * @param isNative whether the agent's model calls functions: protocol text is then not needed (P17)
 * @returns the pieces of the text, or what is wrong with it, beginning with a verb
 */
export function readReplacement(
  id: PromptPartId,
  written: string,
  isNative: boolean,
): { readonly pieces: readonly PromptPiece[] } | { readonly issue: string } {
  const text = written.trim();
  const { placeholders, needs, change } = promptPartSpec(id);
  if (text === '') return { issue: change === 'replace_or_omit' ? 'is empty; false leaves the part out' : 'is empty' };
  if (text.length > limits.promptPartChars) {
    return { issue: `has ${text.length} characters (allowed: ${limits.promptPartChars})` };
  }
  const known = ['default', ...placeholders];
  const seen = new Set<string>();
  const pieces: PromptPiece[] = [];
  let from = 0;
  for (const match of text.matchAll(OPENING)) {
    const [opening, inner] = match;
    pieces.push(text.slice(from, match.index));
    from = match.index + opening.length;
    if (opening === '{{{{') {
      pieces.push('{{');
      continue;
    }
    if (inner === undefined) return { issue: 'has a "{{" without "}}"; a literal "{{" is written "{{{{"' };
    const name = inner.trim();
    if (!known.includes(name)) return { issue: unknownPlaceholder(name, known) };
    if (seen.has(name)) return { issue: `has the placeholder {{${name}}} more than once` };
    seen.add(name);
    pieces.push({ value: name as PromptPlaceholder });
  }
  pieces.push(text.slice(from));
  const missing = seen.has('default') ? undefined : needs.find((name) => !seen.has(name));
  // The blocks of protocol text are not needed by a model that calls functions.
  if (missing !== undefined && !(isNative && id === 'protocol')) {
    return { issue: `needs the placeholder {{${missing}}}, or {{default}} for the built-in text` };
  }
  return { pieces: pieces.filter((piece) => piece !== '') };
}

function unknownPlaceholder(name: string, known: readonly string[]): string {
  const [near] = nearestNames(name, known);
  const hint = near === undefined ? '; a literal "{{" is written "{{{{"' : `. Did you mean {{${near}}}?`;
  return `has the unknown placeholder {{${name}}} (known: ${known.map((one) => `{{${one}}}`).join(', ')})${hint}`;
}

/** The text of a replacement. Values are data: they are inserted once and not searched for placeholders. */
export function fillReplacement(
  pieces: readonly PromptPiece[],
  valueOf: (placeholder: PromptPlaceholder) => string,
): string {
  return pieces
    .map((piece) => (typeof piece === 'string' ? piece : valueOf(piece.value)))
    .join('')
    .trim();
}
