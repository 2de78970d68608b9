/** Excerpts and positions of a text, for messages. */
import { limits } from '../../domain/limits.ts';

/** Cuts to `limits.excerptChars`, whole characters only. */
export function excerptOf(text: string): string {
  if (text.length <= limits.excerptChars) return text;
  const last = text.charCodeAt(limits.excerptChars - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? limits.excerptChars - 1 : limits.excerptChars);
}

/** The text around an error at `index`. */
export function excerptAround(text: string, index: number): string {
  const from = Math.max(0, Math.min(index, text.length) - limits.excerptChars / 2);
  return excerptOf(text.slice(from).trimStart());
}

/** Line and column of `index`, both 1-based. */
export function placeOf(text: string, index: number): { readonly line: number; readonly column: number } {
  let line = 1;
  let lineStart = 0;
  for (let at = text.indexOf('\n'); at !== -1 && at < index; at = text.indexOf('\n', at + 1)) {
    line += 1;
    lineStart = at + 1;
  }
  return { line, column: index - lineStart + 1 };
}
