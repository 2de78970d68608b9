/** Escapes text of models and tools for terminals: control and invisible characters are shown as code points. */

/** Control characters, characters without a glyph, and unusual spaces. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/gu;
/** Characters that control a terminal or the text direction; line breaks, tabs and emoji sequences are kept. */
const OBEYED = /(?![\n\t])\p{Cc}|[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069\p{Zl}\p{Zp}]/gu;

function numbered(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

/** Escapes every invisible character, for names and values in approvals. */
export function visible(text: string): string {
  return text.replace(HIDDEN, numbered);
}

/** Escapes control characters in running text; keeps its lines. */
export function harmless(text: string): string {
  return text.replace(OBEYED, numbered);
}

/**
 * Formats a value as JSON, with a bar at the start of each terminal row. Line breaks and long runs of spaces in the
 * value therefore cannot imitate our own output.
 */
export function boxed(value: unknown, columns: number): string {
  const width = Math.max(20, columns - 6);
  return (JSON.stringify(value, null, 2) ?? 'null')
    .split('\n')
    .flatMap((line) => rowsOf(visible(line), width))
    .map((row) => `    │ ${row}`)
    .join('\n');
}

/** The question of an action's target. It says who asks, and what they say is in a box, so it cannot imitate our own output. */
export function askedBy(
  { from, ...said }: { readonly from: string; readonly message: string },
  columns: number,
): string {
  return `    ${visible(from)} asks\n${boxed(said, columns)}`;
}

/** Counts wide characters as two columns, like most terminals. */
function rowsOf(line: string, width: number): string[] {
  const rows: string[] = [];
  let row = '';
  let used = 0;
  for (const character of line) {
    const columns = character < '\u1100' ? 1 : 2;
    if (used + columns > width) {
      rows.push(row);
      row = '';
      used = 0;
    }
    row += character;
    used += columns;
  }
  return [...rows, row];
}
