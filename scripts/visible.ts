/** Text of models and tools for a terminal: what a terminal would obey, or hide, is shown by its number. */

/** Control characters, everything that has no form of its own, and spaces that look like others. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/gu;
/** What a terminal obeys, and what turns the direction of text; line breaks, tabs and emoji sequences stay. */
const OBEYED = /(?![\n\t])\p{Cc}|[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069\p{Zl}\p{Zp}]/gu;

function numbered(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

/** One line, every character of which is seen: for names and values that a person decides about. */
export function visible(text: string): string {
  return text.replace(HIDDEN, numbered);
}

/** Running text: keeps its lines, and does nothing to the terminal. */
export function harmless(text: string): string {
  return text.replace(OBEYED, numbered);
}

/**
 * A value as JSON that cannot be taken for anything else: each row of the terminal begins with a bar, so that
 * neither line breaks nor many spaces make a row that looks like ours.
 */
export function boxed(value: unknown, columns: number): string {
  const width = Math.max(20, columns - 6);
  return (JSON.stringify(value, null, 2) ?? 'null')
    .split('\n')
    .flatMap((line) => rowsOf(visible(line), width))
    .map((row) => `    │ ${row}`)
    .join('\n');
}

/** Wide characters count as two columns, as most terminals draw them; too narrow a row does no harm. */
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
