/** Front matter of Markdown files. */

/** Splits a Markdown file into front matter (with its fences) and body; null if there is no front matter. */
export function splitFrontMatter(text: string): { readonly yaml: string; readonly body: string } | null {
  const opening = /^\uFEFF?---[ \t]*\r?\n/.exec(text);
  if (opening === null) return null;
  const closing = /\r?\n---[ \t]*(?:\r?\n|$)/g;
  closing.lastIndex = opening[0].length - 1;
  const end = closing.exec(text);
  if (end === null) return null;
  return {
    yaml: text.slice(0, end.index + (text[end.index] === '\r' ? 2 : 1)),
    body: text.slice(end.index + end[0].length).trim(),
  };
}
