/**
 * Converts native function calls, streamed in pieces by OpenAI-compatible servers, to the protocol events that text
 * also produces (P17). A call with complete arguments passes the same checks as an action in the text
 * (`readAction`), so limits, repair and rejections are identical.
 *
 * Owns the calls that are still being written, and those that wait for their confirmation. Does not own the surrounding
 * text or whether a name exists: it only asks for the action type of a name; the scheduler decides.
 *
 * Invariants:
 *  1. The same arguments give the same events, however they are cut (P3).
 *  2. Arguments that are strict JSON are declared with the piece that closes them; those of an unsafe target when the next
 *     call, a block or the end of the generation shows that nothing more belongs to them (N4). Other arguments are
 *     repaired only after the generation has ended normally (P8).
 *  3. A call that the model did not finish, or that nothing confirmed, is rejected and never runs (P15).
 *  4. Each character is read once. The buffer of one call is bounded by `limits.actionBodyBytes`, that of all calls
 *     by `limits.generationBytes` (P16).
 *  5. No input throws.
 *  6. A call that is sent again runs once. What it is sent with after it has started changes nothing (N4).
 */
import { DEFAULT_ACTION_TYPE } from '../../domain/action-types.ts';
import type { ActionRejection, ActionType } from '../../domain/action.ts';
import type { JsonObject } from '../../domain/json.ts';
import { isJsonObject, parseJson } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { ModelDelta } from '../../domain/ports/model.ts';
import type { ProtocolEvent, WarningCode } from '../../domain/protocol-event.ts';
import { idIssue } from '../references/ids.ts';
import { ActionBody } from '../parser/action/action-body.ts';
import { headFrom } from '../parser/action/action-head.ts';
import type { Numbering, Rejection } from '../parser/action/action-reader.ts';
import { excerptAround, excerptOf, placeOf } from '../parser/excerpt.ts';
import type { ParserOptions } from '../parser/parser.ts';
import { declarationOf, readAction } from '../parser/action/read-action.ts';
import type { ReadAction } from '../parser/action/read-action.ts';
import { TextPosition } from '../parser/text-position.ts';
import { ArgumentsEndFinder, beginsAgain, contains, isTruncated, unwrapped } from './call-arguments.ts';
import { beginsNewCall, isAnnouncement, isRepeat, mayBeSame, printOf } from './call-identity.ts';
import type { Received } from './call-identity.ts';

export type ToolCallDelta = Extract<ModelDelta, { type: 'tool_call' }>;

export interface ToolCallOptions extends Pick<ParserOptions, 'json' | 'actionsLeft' | 'unsafe'> {
  /** Shared with the parser of the generation's text. */
  readonly numbering: Numbering;
  /** The action type of a called name. */
  readonly typeOf: (name: string) => ActionType;
  /** Whether the target has parameters: then `{}` may be only the announcement of a call (N4). Default: it has none. */
  readonly hasParameters?: (type: ActionType, name: string) => boolean;
}

/** A call that became an action, accepted or not, as later requests show it in the conversation. */
export interface NativeCall {
  readonly actionId: string;
  /** The action's position in its generation. Absent in a history that a client has given. */
  readonly ordinal?: number;
  readonly type: ActionType;
  /** The endpoint's id for the call, or the action's id if the endpoint's id is not unique. */
  readonly id: string;
  readonly name: string;
  /** Strict JSON, an object: endpoints reject a conversation with anything else. */
  readonly arguments: string;
  /** Opaque endpoint data, sent back unchanged: without its signatures Gemini rejects the conversation. */
  readonly extra?: JsonObject;
}

export interface ToolCallReader {
  /** Reads the next piece and returns the events that it completes. */
  feed(delta: ToolCallDelta): readonly ProtocolEvent[];
  /** A block of text begins: the calls before it are complete (N4). */
  confirm(): readonly ProtocolEvent[];
  /** The stream has ended. @param complete it ended normally, so the arguments are complete (P15) */
  end(complete: boolean): readonly ProtocolEvent[];
  /** The calls declared or rejected so far, in the order in which they began. */
  readonly calls: readonly NativeCall[];
}

export function createToolCallReader(options: ToolCallOptions): ToolCallReader {
  return new Reader(options);
}

/** Complete arguments. */
interface Arguments {
  readonly source: string;
  /** The parameters; null if they cannot be read. */
  readonly value: JsonObject | null;
  readonly print: string;
}

/** A call that has begun. */
interface Call {
  readonly ordinal: number;
  readonly index: number;
  readonly ending: number;
  id: string | null;
  name: string | null;
  extra: JsonObject | null;
  /** Its action's id, once its arguments are complete; `hasOwnId`: the endpoint has given `id` to no other call. */
  actionId: string | null;
  hasOwnId: boolean;
  /** What was received of the next complete arguments; `isBlank`: only white space. */
  text: string;
  isBlank: boolean;
  object: ArgumentsEndFinder;
  /** The text, decoded, if it is arguments that were encoded twice: they are complete when something follows. */
  encoded: string | null;
  /** The last piece, if it may also be the whole arguments. */
  again: string | null;
  /** Its pieces have the arguments from their beginning. */
  isCumulative: boolean;
  /** The last complete arguments. */
  latest: Arguments | null;
  /** `closed`: rejected, or the repeat of another call; later pieces are ignored. */
  state: 'open' | 'declared' | 'closed';
  /** Text after the arguments is ignored until they are sent again. */
  isDeaf: boolean;
  /** The last chunk that has repeated it. */
  repeatedIn: number;
  readonly warned: Set<WarningCode>;
}

class Reader implements ToolCallReader {
  readonly #options: ToolCallOptions;
  readonly #maxActions: number;
  /** In the order in which they began. */
  readonly #calls: Call[] = [];
  /** The latest call at each index. */
  readonly #open = new Map<number, Call>();
  /** Complete calls that wait for their confirmation. */
  #waiting: Call[] = [];
  readonly #reported = new Map<Call, NativeCall>();
  /** Ids that actions have, or that endpoints have given to them. */
  readonly #used = new Set<string>();
  #events: ProtocolEvent[] = [];
  /** The beginning of a delta that was cut for storage. */
  #beginning = '';
  #bytes = 0;
  #full = false;

  constructor(options: ToolCallOptions) {
    this.#options = options;
    this.#maxActions = Math.max(0, Math.min(limits.actionsPerGeneration, options.actionsLeft ?? Infinity));
  }

  get calls(): readonly NativeCall[] {
    return [...this.#reported]
      .toSorted(([a], [b]) => a.ordinal - b.ordinal)
      .map(([{ extra }, reported]) => (extra !== null && isKept(extra) ? { ...reported, extra } : reported));
  }

  feed(delta: ToolCallDelta): readonly ProtocolEvent[] {
    if (this.#full) return [];
    if (delta.more === true) {
      this.#beginning += delta.argumentsDelta;
      return [];
    }
    const argumentsDelta = this.#beginning + delta.argumentsDelta;
    this.#beginning = '';
    this.#bytes += bytesOf(argumentsDelta) + bytesOf(delta.name ?? '');
    if (this.#bytes > limits.generationBytes) this.#overflow();
    else this.#take({ ...delta, argumentsDelta });
    return this.#takeEvents();
  }

  confirm(): readonly ProtocolEvent[] {
    this.#confirm(null);
    return this.#takeEvents();
  }

  end(complete: boolean): readonly ProtocolEvent[] {
    if (this.#full) return [];
    for (const call of this.#calls) {
      this.#finish(call, complete);
      if (call.state !== 'open') continue;
      if (complete) this.#declare(call);
      else this.#reject(call, unclosed('The generation ended before anything confirmed the call, so it does not run'));
    }
    this.#full = true;
    return this.#takeEvents();
  }

  #takeEvents(): readonly ProtocolEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #take(delta: ToolCallDelta): void {
    const call = this.#callOf(delta);
    call.id ??= delta.id;
    if (delta.extra !== undefined) call.extra = delta.extra;
    if (delta.name !== null) this.#named(call, delta.name);
    if (call.ordinal === this.#maxActions && call.state === 'open') this.#reject(call, tooMany(this.#maxActions));
    this.#write(call, delta);
    if (this.#waiting.length > 0) this.#confirm(call);
  }

  /** The call that a piece belongs to. */
  #callOf(delta: ToolCallDelta): Call {
    const { index, id, name } = delta;
    const open = this.#open.get(index);
    if (open !== undefined && !beginsNewCall(open, receivedOf(open), delta)) {
      // The rest of the name.
      if (open.name !== null && name !== null && open.name !== name) open.name += name;
      return open;
    }
    // A server may announce a call at one index and send it at another.
    const announced = this.#calls.find(
      (call) => id !== null && call.id === id && call.name === name && receivedOf(call) === 'none',
    );
    if (open !== undefined && open !== announced) this.#finish(open, true);
    const call = announced ?? this.#begin(delta);
    this.#open.set(index, call);
    return call;
  }

  #named(call: Call, name: string): void {
    if (call.name !== null) return;
    call.name = name;
    if (call.ordinal >= this.#maxActions || call.state !== 'open') return;
    const actionType = this.#options.typeOf(name);
    this.#events.push({ type: 'action_opened', actionType, name, mode: 'async' });
  }

  #begin({ index, id: given, ending = 0 }: ToolCallDelta): Call {
    // Each new call is compared with the ids of all others. Some servers repeat an id with every piece.
    this.#bytes += bytesOf(given ?? '');
    const { numbering } = this.#options;
    const { ordinal } = numbering;
    if (ordinal <= this.#maxActions) numbering.ordinal += 1;
    const call: Call = {
      ordinal,
      index,
      ending,
      id: null,
      name: null,
      extra: null,
      actionId: null,
      hasOwnId: false,
      text: '',
      isBlank: true,
      object: new ArgumentsEndFinder(),
      encoded: null,
      again: null,
      isCumulative: false,
      latest: null,
      // Past the limit, one call is rejected; later ones are skipped.
      state: ordinal > this.#maxActions ? 'closed' : 'open',
      isDeaf: false,
      repeatedIn: -1,
      warned: new Set(),
    };
    if (call.state === 'open') this.#calls.push(call);
    return call;
  }

  #write(call: Call, { argumentsDelta: piece, name }: ToolCallDelta): void {
    if (call.state === 'closed') return;
    const isNamed = name !== null && piece.trim() !== '';
    if (isNamed) call.isDeaf = false;
    if (call.isDeaf) return;
    const isAgain = call.text !== '' && beginsAgain(call.text, piece);
    if (isAgain && (call.isCumulative || !call.object.expectsValue)) {
      call.isCumulative = true;
      restart(call);
    }
    // The piece may be a value inside the arguments. If they never end, it was the arguments.
    const isWhole = isAgain && piece.startsWith(call.again ?? call.text);
    let rest = this.#append(call, piece, isNamed);
    for (let more = 0; rest !== '' && more < MOST_IN_PIECE; more += 1) rest = this.#append(call, rest, false);
    if (rest !== '') this.#ignoreRest(call);
    if (!call.isBlank) call.again = isWhole ? piece : null;
  }

  /** @returns what follows the arguments that the piece completes */
  #append(call: Call, piece: string, isNamed: boolean): string {
    if (call.latest !== null && call.text === '') {
      const begin = piece.trimStart();
      if (begin === '') return '';
      if (!/^[{"]/.test(begin)) {
        this.#ignoreRest(call);
        return '';
      }
    }
    if (call.encoded !== null && piece.trim() !== '') {
      const { encoded } = call;
      restart(call);
      this.#complete(call, encoded, false);
      return call.state === 'closed' ? '' : piece;
    }
    const end = call.object.scan(piece);
    const before = call.text.length;
    call.text += piece;
    call.isBlank &&= piece.trim() === '';
    if (end !== -1 && before + end <= limits.actionBodyBytes && call.name !== null) {
      const source = unwrapped(call.text.slice(0, before + end));
      const rest = piece.slice(end);
      if (isJsonObject(parseJson(source))) {
        if (call.latest === null && call.object.isEncoded && rest.trim() === '') {
          call.encoded = source;
          return '';
        }
        restart(call);
        this.#complete(call, source, isNamed);
        return call.state === 'closed' || call.isDeaf ? '' : rest;
      }
    }
    if (call.text.length <= limits.actionBodyBytes) return '';
    if (call.latest === null) this.#reject(call, tooLarge());
    else this.#ignoreRest(call);
    return '';
  }

  /** The arguments are complete: for the first time, or they were sent again. */
  #complete(call: Call, source: string, isNamed: boolean): void {
    const received = this.#read(call, source);
    const { latest } = call;
    if (latest === null) {
      call.latest = received;
      this.#identify(call, received);
    } else if (received.print === latest.print) this.#warnRepeated(call, call);
    else if (received.value === null || latest.value === null) this.#ignoreRest(call);
    else {
      const isSnapshot = contains(received.value, latest.value);
      if (!isNamed && !isSnapshot) return this.#ignoreRest(call);
      if (call.state === 'declared' || !isSnapshot) this.#warnChanged(call);
      if (call.state === 'open') call.latest = received;
    }
  }

  /** Finds out whether a complete call is the repeat of another one (N4). If it is not, it starts or waits. */
  #identify(call: Call, { print }: Arguments): void {
    for (const other of this.#calls) {
      if (other === call || other.latest === null || other.name !== call.name) continue;
      if (other.latest.print === print) {
        if (!isRepeat(call, other, other.repeatedIn === call.ending)) continue;
        other.repeatedIn = call.ending;
        call.state = 'closed';
        return this.#warnRepeated(call, other);
      }
      if (other.latest.print === EMPTY && other.state === 'open' && isAnnouncement(other, call)) {
        other.latest = call.latest;
        other.extra = call.extra ?? other.extra;
        this.#open.set(call.index, other);
        call.state = 'closed';
        return;
      }
    }
    this.#claimId(call);
    this.#confirm(call);
    if (this.#mustWait(call, print)) this.#waiting.push(call);
    else this.#declare(call);
  }

  #mustWait({ name }: Call, print: string): boolean {
    const { typeOf, unsafe, hasParameters } = this.#options;
    const type = typeOf(name ?? '');
    return unsafe?.(type, name ?? '') === true || (print === EMPTY && hasParameters?.(type, name ?? '') === true);
  }

  /** Declares the waiting calls before `call`, or before a block of text. */
  #confirm(call: Call | null): void {
    if (call !== null && call.state === 'closed' && call.latest !== null) return;
    for (const waiting of this.#waiting) {
      if (!waiting.isBlank) continue;
      if (call !== null) {
        if (waiting.ordinal >= call.ordinal) continue;
        if (call.latest === null && mayBeSame(call, waiting)) continue;
      }
      this.#declare(waiting);
    }
    this.#waiting = this.#waiting.filter(({ state }) => state === 'open');
  }

  /** No more pieces follow for this call. */
  #finish(call: Call, complete: boolean): void {
    if (call.state === 'closed') return;
    let source = unwrapped(call.text);
    if (call.latest !== null && source === '') return;
    const { again } = call;
    if (isTruncated(source) && again !== null && isJsonObject(parseJson(again))) source = again;
    if (call.state === 'open' && (!complete || isTruncated(source))) {
      this.#reject(call, unclosed('The arguments of the call are incomplete, so it does not run'));
      return;
    }
    restart(call);
    if (call.name === null) {
      this.#reject(call, { code: 'invalid_action', message: 'The call has no function name' });
    } else if (call.latest === null || isJsonObject(parseJson(source))) this.#complete(call, source, false);
    else this.#ignoreRest(call);
  }

  #overflow(): void {
    this.#full = true;
    const message = `The generation is longer than ${limits.generationBytes} bytes`;
    for (const call of this.#calls) {
      if (call.state === 'open') this.#reject(call, { code: 'too_large', message });
    }
    this.#events.push({
      type: 'warning',
      code: 'text_too_large',
      message: `${message}; the calls that follow were ignored`,
      offset: 0,
    });
  }

  /** Declares or rejects a call whose arguments are complete. */
  #declare(call: Call): void {
    const { ordinal, actionId, latest } = call;
    if (call.state !== 'open' || actionId === null || latest === null) return;
    const action = { id: actionId, type: this.#options.typeOf(call.name ?? ''), name: call.name ?? '' };
    const { source } = latest;
    const read = this.#readAction({ ...action, source });
    if (!read.ok) {
      this.#report(call, { ...action, source: '' }, 'closed');
      this.#events.push({
        type: 'action_rejected',
        rejection: rejectionOf({ ordinal, ...action }, read, source, { index: read.index }),
      });
      return;
    }
    for (const { code, message } of read.warnings) this.#events.push({ type: 'warning', code, message, offset: 0 });
    const { fields, repaired } = read;
    this.#report(call, { ...action, source: repaired ? JSON.stringify(fields.parameters) : source }, 'declared');
    const declared = { ordinal, id: actionId, embeddedInThought: false, repaired, span: NOWHERE };
    this.#events.push({ type: 'action_declared', action: declarationOf(fields, declared) });
  }

  #read({ name, id }: Call, source: string): Arguments {
    const type = this.#options.typeOf(name ?? '');
    const read = this.#readAction({ id: id ?? '', type, name: name ?? '', source });
    const value = read.ok ? read.fields.parameters : null;
    return { source, value, print: value === null ? source : printOf(value) };
  }

  /** The arguments are always the parameters, whatever their keys (P18). */
  #readAction({ id, type, name, source }: { id: string; type: ActionType; name: string; source: string }): ReadAction {
    const body = new ActionBody(new TextPosition());
    body.begin(0, false);
    body.add(source);
    if (body.tooLarge) return { ok: false, id, index: null, ...tooLarge() };
    const { json, unsafe } = this.#options;
    const repair = json === 'strict' ? null : { charsLeft: limits.repairCharsPerGeneration };
    return readAction(headFrom({ type, name, id, mode: 'async' }), body, { repair, unsafe, form: 'parameters' });
  }

  /** Rejects a call without reading its arguments. */
  #reject(call: Call, rejection: Rejection): void {
    const id = this.#claimId(call);
    const type = call.name === null ? null : this.#options.typeOf(call.name);
    const rejected = rejectionOf({ ordinal: call.ordinal, id, type, name: call.name }, rejection, call.text);
    this.#report(call, { id, type: type ?? DEFAULT_ACTION_TYPE, name: call.name ?? 'unnamed', source: '' }, 'closed');
    this.#events.push({ type: 'action_rejected', rejection: rejected });
  }

  #report(
    call: Call,
    reported: { id: string; type: ActionType; name: string; source: string },
    state: 'declared' | 'closed',
  ): void {
    call.state = state;
    restart(call);
    this.#reported.set(call, {
      actionId: reported.id,
      ordinal: call.ordinal,
      type: reported.type,
      id: call.hasOwnId && call.id !== null && call.id.length <= limits.callStateChars ? call.id : reported.id,
      // Endpoints accept only these characters in a function name.
      name: reported.name.replace(/[^\w-]/g, '_').slice(0, limits.idChars),
      arguments: reported.source === '' ? '{}' : reported.source,
    });
  }

  /** Gives the call the id of its action. */
  #claimId(call: Call): string {
    if (call.actionId !== null) return call.actionId;
    call.actionId = this.#actionId(call);
    call.hasOwnId = call.id !== null && !this.#used.has(call.id);
    if (call.id !== null) this.#used.add(call.id);
    this.#used.add(call.actionId);
    return call.actionId;
  }

  /** The endpoint's id if it is a valid, unused action id; otherwise the next `auto_N`. */
  #actionId(call: Call): string {
    if (call.id !== null && !this.#used.has(call.id) && idIssue('id', call.id) === null) return call.id;
    const { numbering } = this.#options;
    for (;;) {
      const id = `auto_${numbering.autoId}`;
      numbering.autoId += 1;
      if (!this.#used.has(id)) return id;
    }
  }

  #ignoreRest(call: Call): void {
    call.isDeaf = true;
    restart(call);
    const message = `Text after the arguments of the call of "${excerptOf(call.name ?? '')}" was ignored`;
    this.#warn(call, 'tool_call_ignored', message);
  }

  #warnRepeated({ id, name }: Call, first: Call): void {
    const which = id === null ? `of "${excerptOf(name ?? '')}"` : `"${excerptOf(id)}"`;
    const message = `The call ${which} was repeated with the same arguments; it runs once`;
    this.#warn(first, 'duplicate_action', message);
  }

  #warnChanged(call: Call): void {
    const [code, effect] =
      call.state === 'declared'
        ? (['tool_call_ignored', 'after it had started; they were ignored'] as const)
        : (['duplicate_action', 'before it had started; the last ones count'] as const);
    this.#warn(call, code, `The call of "${excerptOf(call.name ?? '')}" was sent again with other arguments ${effect}`);
  }

  /** Each kind once for a call. */
  #warn(call: Call, code: WarningCode, message: string): void {
    if (call.warned.has(code)) return;
    call.warned.add(code);
    this.#events.push({ type: 'warning', code, message, offset: 0 });
  }
}

/** Arguments that follow the first ones in the same piece: each is read. */
const MOST_IN_PIECE = 16;

/** The canonical text of no arguments. */
const EMPTY = '{}';

function receivedOf({ state, latest, isBlank }: Call): Received {
  if (state !== 'open' || latest !== null) return 'all';
  return isBlank ? 'none' : 'some';
}

/** The next piece begins the arguments. */
function restart(call: Call): void {
  call.text = '';
  call.isBlank = true;
  call.object = new ArgumentsEndFinder();
  call.encoded = null;
  call.again = null;
}

function unclosed(message: string): Rejection {
  return { code: 'unclosed', message };
}

function isKept(extra: JsonObject): boolean {
  return JSON.stringify(extra).length <= limits.callStateChars;
}

/** Span of a native call, which is not part of the text. */
const NOWHERE = { start: 0, end: 0 };

function tooMany(most: number): Rejection {
  return { code: 'too_many_actions', message: `More than ${most} actions; this one and all later ones are ignored` };
}

function tooLarge(): Rejection {
  return { code: 'too_large', message: `The arguments are longer than ${limits.actionBodyBytes} bytes` };
}

/** @param read set if the arguments were read; `index` is the error position in them, null for the whole call */
function rejectionOf(
  action: Pick<ActionRejection, 'ordinal' | 'id' | 'type' | 'name'>,
  { code, message }: Rejection,
  source: string,
  read: { readonly index: number | null } | null = null,
): ActionRejection {
  const { ordinal, id, type, name } = action;
  const index = read?.index ?? null;
  const { line, column } = placeOf(source, index ?? 0);
  return {
    ordinal,
    id,
    type,
    mode: 'async',
    name,
    code,
    message: `Action "${excerptOf(id)}"${read === null ? '' : `, line ${line}`}: ${message}`,
    line,
    column,
    excerpt: index === null ? excerptOf(source) : excerptAround(source, index),
  };
}

/** UTF-8 bytes. Each half of a surrogate pair counts as two, so a cut between the halves makes no difference. */
function bytesOf(text: string): number {
  let bytes = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    bytes += code < 0x80 ? 1 : code < 0x800 || (code >= 0xd800 && code <= 0xdfff) ? 2 : 3;
  }
  return bytes;
}
