/** A literal, a class with its repetition count, a count, `::=`, or a name. */
const TOKENS =
  /"(?:[^"\\]|\\.)*"|(\[(?:[^\]\\]|\\.)*\])([*+?]|\{\d+(?:,\d*)?\})?|\{(\d+)(?:,(\d+))?\}|( ::= )|([A-Za-z][A-Za-z0-9-]*)/gm;

/**
 * Converts a grammar to the notation of llguidance. Upper-case names are lexemes there too.
 *
 * @param gbnf open counts (`{n,}`) may follow classes only: Lark has none for rules
 */
export function toLark(gbnf: string): string {
  return gbnf
    .split('\n')
    .map((line) => (line.startsWith('#') ? `//${line.slice(1)}` : larkRule(line)))
    .join('\n');
}

function larkRule(line: string): string {
  return line.replace(
    TOKENS,
    (whole, characters?: string, count?: string, min?: string, max?: string, defined?: string, name?: string) => {
      if (characters !== undefined) return `/${characters.replaceAll('/', '\\/')}${count ?? ''}/`;
      if (min !== undefined) return max === undefined ? `~${min}` : `~${min}..${max}`;
      if (defined !== undefined) return ': ';
      if (name !== undefined) return name === 'root' ? 'start' : name.replaceAll('-', '_');
      return whole;
    },
  );
}
