/**
 * Ids of calls that a client executes (C3): `call_` and base64url of the session's 16 bytes, 3 bytes of its incarnation,
 * and run, iteration and position of the action as variable-length numbers. At most `limits.callIdChars` characters.
 *
 * No index is needed to find a call, and an id of an earlier session with the same id does not fit (T5). An id authorises
 * nothing.
 */
import { limits } from './limits.ts';
import type { SessionIdentity } from './session.ts';

const PREFIX = 'call_';
const SESSION_BYTES = 16;
const INCARNATION_BYTES = 3;

/** The position of a call in its session. */
export interface CallPlace {
  readonly run: number;
  readonly iteration: number;
  readonly ordinal: number;
}

/** Null if the numbers do not fit: a run beyond 2,097,151, or an iteration or an action beyond 16,383. */
export function callIdOf(session: SessionIdentity, { run, iteration, ordinal }: CallPlace): string | null {
  const numbers = [run, iteration, ordinal].flatMap(varint);
  const id = PREFIX + base64Url([...sessionBytes(session), ...numbers]);
  return id.length <= limits.callIdChars ? id : null;
}

/** The place of a call of this session; null for any other text. */
export function placeOfCall(session: SessionIdentity, id: string): CallPlace | null {
  if (id.length > limits.callIdChars || !id.startsWith(PREFIX)) return null;
  const bytes = bytesOf(id.slice(PREFIX.length));
  const own = sessionBytes(session);
  if (own.some((byte, at) => bytes[at] !== byte)) return null;
  const numbers = readVarints(bytes.slice(own.length));
  const [run, iteration, ordinal] = numbers;
  if (run === undefined || iteration === undefined || ordinal === undefined || numbers.length !== 3) return null;
  const place = { run, iteration, ordinal };
  // There is one form of each id.
  return callIdOf(session, place) === id ? place : null;
}

/** The session whose call this may be; null for any other text. An id authorises nothing. */
export function sessionIdOfCall(id: string): string | null {
  if (id.length > limits.callIdChars || !id.startsWith(PREFIX)) return null;
  const bytes = bytesOf(id.slice(PREFIX.length));
  if (bytes.length <= SESSION_BYTES + INCARNATION_BYTES) return null;
  const hex = bytes.slice(0, SESSION_BYTES).map((byte) => byte.toString(16).padStart(2, '0'));
  return `ses_${hex.join('')}`;
}

function sessionBytes({ session_id: id, incarnation = '' }: SessionIdentity): number[] {
  const hex = id
    .replace(/^ses_/, '')
    .padEnd(SESSION_BYTES * 2, '0')
    .slice(0, SESSION_BYTES * 2);
  const part = incarnation.padEnd(INCARNATION_BYTES * 2, '0').slice(0, INCARNATION_BYTES * 2);
  return (`${hex}${part}`.match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16));
}

function base64Url(bytes: readonly number[]): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}

/** Empty for a text that is not base64url. */
function bytesOf(text: string): number[] {
  if (!/^[\w-]+$/.test(text) || text.length % 4 === 1) return [];
  return [...atob(text.replaceAll('-', '+').replaceAll('_', '/'))].map((character) => character.charCodeAt(0));
}

/** Seven bits in each byte, the lowest first; the top bit says that more follow. */
function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) + 0x80);
  return [...bytes, rest];
}

function readVarints(bytes: readonly number[]): number[] {
  const numbers: number[] = [];
  let value = 0;
  let weight = 1;
  for (const byte of bytes) {
    value += (byte & 0x7f) * weight;
    weight *= 0x80;
    if (byte >= 0x80) continue;
    numbers.push(value);
    value = 0;
    weight = 1;
  }
  return weight === 1 ? numbers : [];
}
