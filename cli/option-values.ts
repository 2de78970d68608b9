/** Typed values of a command's options. */
import { UsageError } from './command.ts';
import type { CommandCall } from './command.ts';

type Values = Pick<CommandCall, 'values'>;

export function textOption({ values }: Values, name: string): string | undefined {
  const value = values[name];
  return typeof value === 'string' ? value : undefined;
}

/** The texts of an option that may be repeated. */
export function textOptions({ values }: Values, name: string): readonly string[] {
  const value = values[name];
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

export function isSet({ values }: Values, name: string): boolean {
  return values[name] === true;
}

/** One of several words. @throws UsageError that names them */
export function wordOption<T extends string>(call: Values, name: string, known: readonly T[]): T | undefined {
  const given = textOption(call, name);
  const found = known.find((word) => word === given);
  if (given === undefined || found !== undefined) return found;
  throw new UsageError(`--${name} "${given.slice(0, 100)}" is unknown (known: ${known.join(', ')})`);
}

/** A number in a range. @throws UsageError */
export function numberOption(
  call: Values,
  name: string,
  { least, most, whole = true }: { readonly least: number; readonly most: number; readonly whole?: boolean },
): number | undefined {
  const given = textOption(call, name);
  if (given === undefined) return undefined;
  const value = Number(given);
  const isNumber = /^\d+(\.\d+)?$/.test(given) && (!whole || Number.isInteger(value));
  if (isNumber && value >= least && value <= most) return value;
  throw new UsageError(
    `--${name} "${given.slice(0, 100)}" is not a ${whole ? 'whole ' : ''}number from ${least} to ${most}`,
  );
}
