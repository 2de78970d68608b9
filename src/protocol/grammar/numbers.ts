/** JSON numbers within bounds, as regular expressions over their digits. */
import { choice, oneOf, optional, repeat, sequence, text } from './model.ts';
import type { Expression } from './model.ts';

/** Bounds of a number; null = none on that side. */
export interface Bounds {
  readonly min: number | null;
  readonly max: number | null;
  readonly exclusiveMin: boolean;
  readonly exclusiveMax: boolean;
}

export const UNBOUNDED: Bounds = { min: null, max: null, exclusiveMin: false, exclusiveMax: false };

/** Digits of a whole number: below 10^15 every one is exact in JSON readers. */
const DIGITS = 15;
const LARGEST = 10 ** DIGITS - 1;
/** Digits behind the point. */
const DECIMALS = 15;

/** Every whole number within the bounds, up to 15 digits; null when there is none. */
export function integers(bounds: Bounds): Expression | null {
  const { min, max } = wholeBounds(bounds);
  if (min > max) return null;
  const parts: Expression[] = [];
  if (min < 0) parts.push(sequence(text('-'), naturals(Math.max(1, -max), -min)));
  if (max >= 0) parts.push(naturals(Math.max(0, min), max));
  return choice(...parts);
}

/** Every decimal within the bounds, up to 15 digits before and behind the point; null when there is none. */
export function decimals(bounds: Bounds): Expression | null {
  const { min, max, exclusiveMin, exclusiveMax } = bounds;
  if (min === null && max === null) {
    const exponent = sequence(oneOf('eE'), optional(oneOf('+-')), repeat(oneOf('0-9'), 1, 2));
    return sequence(optional(text('-')), naturals(0, LARGEST), optional(fraction()), optional(exponent));
  }
  const parts: Expression[] = [];
  if (max === null || max > 0 || (max === 0 && !exclusiveMax)) {
    const fromZero = min === null || min < 0;
    const part = magnitudes(fromZero ? 0 : min, !fromZero && exclusiveMin, max, exclusiveMax);
    if (part !== null) parts.push(part);
  }
  if (min === null || min < 0) {
    const toZero = max === null || max >= 0;
    // what is below zero is above it without its sign
    const part = magnitudes(toZero ? 0 : -max, !toZero && exclusiveMax, min === null ? null : -min, exclusiveMin);
    if (part !== null) parts.push(sequence(text('-'), part));
  }
  return parts.length === 0 ? null : choice(...parts);
}

function wholeBounds({ min, max, exclusiveMin, exclusiveMax }: Bounds): { min: number; max: number } {
  const lowest = min === null ? -LARGEST : exclusiveMin ? Math.floor(min) + 1 : Math.ceil(min);
  const highest = max === null ? LARGEST : exclusiveMax ? Math.ceil(max) - 1 : Math.floor(max);
  return { min: Math.max(-LARGEST, lowest), max: Math.min(LARGEST, highest) };
}

/** Whole numbers from `low` to `high`, both at least 0, without leading zeros. */
function naturals(low: number, high: number): Expression {
  const parts: Expression[] = low === 0 ? [text('0')] : [];
  /** Lengths from `whole` on are in completely and not yet written. */
  let whole = 0;
  const least = Math.max(1, low);
  const longest = least <= high ? String(high).length : 0;
  for (let digits = String(least).length; digits <= longest; digits += 1) {
    const from = Math.max(least, 10 ** (digits - 1));
    const to = Math.min(high, 10 ** digits - 1);
    const isWhole = from === 10 ** (digits - 1) && to === 10 ** digits - 1;
    if (isWhole && whole === 0) whole = digits;
    if (whole > 0 && (!isWhole || digits === longest)) {
      const last = isWhole ? digits : digits - 1;
      parts.push(sequence(oneOf('1-9'), repeat(oneOf('0-9'), whole - 1, last - 1)));
      whole = 0;
    }
    if (!isWhole) parts.push(sameLength(String(from), String(to)));
  }
  return choice(...parts);
}

/** Digit strings from `low` to `high`, all of one length. */
function sameLength(low: string, high: string): Expression {
  const rest = low.length - 1;
  if (/^0*$/.test(low) && /^9*$/.test(high)) return repeat(oneOf('0-9'), low.length, low.length);
  const lowDigit = Number(low[0]);
  const highDigit = Number(high[0]);
  if (lowDigit === highDigit) {
    return rest === 0
      ? text(String(lowDigit))
      : sequence(text(String(lowDigit)), sameLength(low.slice(1), high.slice(1)));
  }
  const wholeLow = /^0*$/.test(low.slice(1));
  const wholeHigh = /^9*$/.test(high.slice(1));
  const parts: Expression[] = [];
  if (!wholeLow) parts.push(sequence(text(String(lowDigit)), sameLength(low.slice(1), '9'.repeat(rest))));
  const from = wholeLow ? lowDigit : lowDigit + 1;
  const to = wholeHigh ? highDigit : highDigit - 1;
  if (from <= to) parts.push(sequence(digit(from, to), repeat(oneOf('0-9'), rest, rest)));
  if (!wholeHigh) parts.push(sequence(text(String(highDigit)), sameLength('0'.repeat(rest), high.slice(1))));
  return choice(...parts);
}

function digit(from: number, to: number): Expression {
  return from === to ? text(String(from)) : oneOf(`${from}-${to}`);
}

/** Decimals without a sign from `low` (at least 0) to `high` (null = no end). */
function magnitudes(low: number, openLow: boolean, high: number | null, openHigh: boolean): Expression | null {
  const [lowWhole, lowFraction] = split(low);
  const [highWhole, highFraction] = high === null ? [LARGEST, null] : split(high);
  if (lowWhole > highWhole) return null;
  const parts: Expression[] = [];
  const cell = (whole: number, from: string | null, to: string | null): void => {
    const part = withFraction(naturals(whole, whole), from, openLow, to, openHigh);
    if (part !== null) parts.push(part);
  };
  if (lowWhole === highWhole) cell(lowWhole, lowFraction, highFraction);
  else {
    let from = lowWhole;
    if (lowFraction !== '' || openLow) {
      cell(lowWhole, lowFraction, null);
      from += 1;
    }
    const to = highFraction === null ? highWhole : highWhole - 1;
    if (from <= to) parts.push(sequence(naturals(from, to), optional(fraction())));
    if (highFraction !== null) cell(highWhole, null, highFraction);
  }
  return parts.length === 0 ? null : choice(...parts);
}

/** The whole part and the digits behind the point, without trailing zeros. */
function split(value: number): [whole: number, fraction: string] {
  const whole = Math.min(LARGEST, Math.floor(value));
  // toFixed never writes an exponent below 10^21
  const fraction = value > LARGEST ? '' : (value.toFixed(DECIMALS).split('.')[1] ?? '').replace(/0+$/, '');
  return [whole, fraction];
}

function fraction(): Expression {
  return sequence(text('.'), repeat(oneOf('0-9'), 1, DECIMALS));
}

/** `whole` with a fraction between two others; null on a side = no bound there. */
function withFraction(
  whole: Expression,
  from: string | null,
  openFrom: boolean,
  to: string | null,
  openTo: boolean,
): Expression | null {
  const parts: Expression[] = [];
  const zeroInside = (from === null || (from === '' && !openFrom)) && (to === null || to !== '' || !openTo);
  if (zeroInside) parts.push(whole);
  const digits = fractionDigits({ from, openFrom, to, openTo }, DECIMALS);
  if (digits !== null) parts.push(sequence(whole, text('.'), digits));
  return parts.length === 0 ? null : choice(...parts);
}

interface FractionBounds {
  /** Digits that are left of the lower bound while all before were equal to it; null once above it. */
  readonly from: string | null;
  readonly openFrom: boolean;
  readonly to: string | null;
  readonly openTo: boolean;
}

/** One or more digits that stay within the bounds, however many zeros are thought behind them. */
function fractionDigits(bounds: FractionBounds, room: number): Expression | null {
  const { from, openFrom, to, openTo } = bounds;
  if (from === null && to === null) return repeat(oneOf('0-9'), 1, room);
  if (room === 0) return null;
  if (from === '' && to === null) {
    return openFrom ? sequence(repeat(oneOf('0-9'), 0, room - 1), oneOf('1-9')) : repeat(oneOf('0-9'), 1, room);
  }
  if (to === '' && (openTo || (from !== null && (from !== '' || openFrom)))) return null;
  if (to === '') return repeat(text('0'), 1, room);
  const parts: Expression[] = [];
  const lowest = from === null ? 0 : Number(from[0] ?? '0');
  const highest = to === null ? 9 : Number(to[0] ?? '0');
  const inner = (first: number, last: number, next: FractionBounds): void => {
    if (first > last) return;
    const isEnd =
      (next.from === null || (next.from === '' && !openFrom)) && (next.to === null || next.to !== '' || !openTo);
    const rest = fractionDigits(next, room - 1);
    if (isEnd) parts.push(sequence(digit(first, last), rest === null ? text('') : optional(rest)));
    else if (rest !== null) parts.push(sequence(digit(first, last), rest));
  };
  const fromRest = from === null ? null : from.slice(1);
  const toRest = to === null ? null : to.slice(1);
  if (from !== null && to !== null && lowest === highest) {
    inner(lowest, lowest, { from: fromRest, openFrom, to: toRest, openTo });
  } else {
    if (from !== null) inner(lowest, lowest, { from: fromRest, openFrom, to: null, openTo });
    inner(from === null ? 0 : lowest + 1, to === null ? 9 : highest - 1, { from: null, openFrom, to: null, openTo });
    if (to !== null) inner(highest, highest, { from: null, openFrom, to: toRest, openTo });
  }
  return parts.length === 0 ? null : choice(...parts);
}
