/** Values in a file that wrangler reads with `dotenv` and `dotenv-expand`: it gives the same values back. */

/** Quotation marks, within which these programs change nothing but `$`. */
const QUOTES = ["'", '`'] as const;

/** @throws Error if no form of the value can be read back */
export function envFileText(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}=${quoted(name, value)}\n`)
    .join('');
}

function quoted(name: string, value: string): string {
  const quote = QUOTES.find((mark) => !value.includes(mark));
  if (quote === undefined || value.endsWith('\\')) {
    throw new Error(`${name} cannot be passed to the Worker: it ends with "\\", or contains both ' and \``);
  }
  return `${quote}${value.replaceAll('$', String.raw`\$`)}${quote}`;
}
