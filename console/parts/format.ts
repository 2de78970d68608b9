/** Values as people read them. */

/** `480 ms`, `1.24 s`, `2 min 5 s`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(2)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min${seconds % 60 === 0 ? '' : ` ${seconds % 60} s`}`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 2_880) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.round(minutes / 1_440)} days`;
}

/** Date and time in the reader's own form. @param at epoch milliseconds */
export function time(at: number): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
}

/** `in 3 min`, `2 h ago`. */
export function relative(at: number, now: number): string {
  const ms = Math.abs(at - now);
  if (ms < 5_000) return 'now';
  const [unit, size] = UNITS.find(([, size]) => ms >= size) ?? ['second', 1_000];
  const amount = Math.round(ms / size) * (at < now ? -1 : 1);
  return new Intl.RelativeTimeFormat('en', { style: 'narrow' }).format(amount, unit);
}

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
];

const COUNT = new Intl.NumberFormat('en');

/** `1,234`. */
export function count(amount: number): string {
  return COUNT.format(amount);
}

/** `12.4 KB`. */
export function bytes(size: number): string {
  if (size < 1_000) return `${size} B`;
  if (size < 1_000_000) return `${(size / 1_000).toFixed(1)} KB`;
  return `${(size / 1_000_000).toFixed(1)} MB`;
}

/** US dollars: `$0.0012`. */
export function cost(dollars: number): string {
  return `$${dollars < 0.01 ? Number(dollars.toPrecision(2)) : dollars.toFixed(2)}`;
}

/** `1 action`, `2 actions`. */
export function plural(amount: number, noun: string): string {
  return `${count(amount)} ${noun}${amount === 1 ? '' : 's'}`;
}

/** The beginning of a text, cut at a limit and never inside of a character. */
export function cut(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars).toWellFormed()}…`;
}
