/** Context variables in manifest text: `${NAME}` and `${NAME:-default}` (M5). */

const VARIABLE = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]{0,63})(?::-([^}]*))?\}/g;

/**
 * Replaces `${NAME}` by its value and `${NAME:-default}` by its value or, where it is unset or
 * empty, by the default. A name without value and default stays as it is written; `$${` is a
 * literal `${`. One pass: values are data and are not resolved again. Only own properties of
 * `variables` count, and nothing else is read: never the process environment.
 */
export function resolveVariables(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replace(VARIABLE, (written, name: string | undefined, fallback: string | undefined) => {
    if (name === undefined) return '${';
    const value = Object.hasOwn(variables, name) ? variables[name] : undefined;
    if (value !== undefined && (value !== '' || fallback === undefined)) return value;
    return fallback ?? written;
  });
}
