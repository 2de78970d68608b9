/** Context variables in manifest text: `${NAME}` and `${NAME:-default}` (M5). */

/** Variables whose values differ between the sessions of an agent. */
const OF_SESSION = ['SESSION_ID', 'USER_ID', 'USER'] as const;

/** The first variable in a text whose value depends on the session or its user, or null. */
export function sessionVariableIn(text: string): string | null {
  return (
    OF_SESSION.find((name) => {
      const [one, other] = [{ [name]: 'a' }, { [name]: 'b' }];
      return resolveVariables(text, one, one) !== resolveVariables(text, other, other);
    }) ?? null
  );
}

/** Whether a word means yes; null if it means neither yes nor no. */
export function isOn(word: string): boolean | null {
  const lower = word.trim().toLowerCase();
  if (['true', '1', 'yes', 'on'].includes(lower)) return true;
  return ['false', '0', 'no', 'off', ''].includes(lower) ? false : null;
}

/** An escaped opening, or an opening with its name and the character after it. */
const OPENING = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]{0,63})(\}|:-)|(?<!\$)\$([A-Z][A-Z_]{0,63})(?![A-Za-z0-9_])/g;

/**
 * Replaces `${NAME}` with its value, and `${NAME:-default}` with its value or, if it is unset or empty, the default. A
 * name without value and default is left unchanged; `$${` is a literal `${`. Values are data and are not resolved
 * again. `plain`: names that may also be written `$NAME`. Only own properties of `variables` are read, never the process environment.
 */
export function resolveVariables(
  text: string,
  variables: Readonly<Record<string, string>>,
  plain: Readonly<Record<string, string>> = {},
): string {
  let resolved = '';
  let from = 0;
  OPENING.lastIndex = 0;
  for (let match = OPENING.exec(text); match !== null; match = OPENING.exec(text)) {
    const [opening, name, after, bare] = match;
    if (bare !== undefined) {
      if (!Object.hasOwn(plain, bare)) continue;
      resolved += text.slice(from, match.index) + (variables[bare] ?? plain[bare] ?? '');
      from = match.index + opening.length;
      continue;
    }
    let end = match.index + opening.length;
    let fallback: string | null = null;
    if (after === ':-') {
      const close = text.indexOf('}', end);
      // no later default can be closed either; continuing the scan would take quadratic time
      if (close === -1) break;
      fallback = text.slice(end, close);
      end = close + 1;
    }
    resolved += text.slice(from, match.index);
    from = end;
    OPENING.lastIndex = end;
    if (name === undefined) {
      resolved += '${';
      continue;
    }
    const value = Object.hasOwn(variables, name) ? variables[name] : undefined;
    if (value !== undefined && (value !== '' || fallback === null)) resolved += value;
    else resolved += fallback ?? text.slice(match.index, end);
  }
  return resolved + text.slice(from);
}
