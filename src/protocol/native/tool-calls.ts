/**
 * Converts native function calls, streamed in pieces by OpenAI-compatible servers, to the protocol events that text
 * also produces (P17). A call with complete arguments passes the same checks as an action in the text
 * (`readAction`), so limits, repair and rejections are identical.
 *
 * Owns the calls that are still being written. Does not own the surrounding text or whether a name exists: it only
 * asks for the action type of a name; the scheduler decides.
 *
 * Invariants:
 *  1. The same arguments give the same events, however they are cut (P3).
 *  2. Arguments that are strict JSON are declared with the piece that closes them. Others are repaired only after the
 *     generation has ended normally, when nothing more can belong to them (P8).
 *  3. A call that the model did not finish is rejected and never runs (P15).
 *  4. Each character is read once. The buffer of one call is bounded by `limits.actionBodyBytes`, that of all calls
 *     by `limits.generationBytes` (P16).
 *  5. No input throws.
 */
import { DEFAULT_ACTION_TYPE } from '../../domain/action-types.ts';
import type { ActionRejection, ActionType } from '../../domain/action.ts';
import type { JsonObject } from '../../domain/json.ts';
import { isJsonObject, parseJson } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { ModelDelta } from '../../domain/ports/model.ts';
import type { ProtocolEvent } from '../../domain/protocol-event.ts';
import { idIssue } from '../references/ids.ts';
import { ActionBody } from '../parser/action/action-body.ts';
import { headFrom } from '../parser/action/action-head.ts';
import type { Numbering, Rejection } from '../parser/action/action-reader.ts';
import { excerptAround, excerptOf, placeOf } from '../parser/excerpt.ts';
import type { ParserOptions } from '../parser/parser.ts';
import { declarationOf, readAction } from '../parser/action/read-action.ts';
import type { ReadAction } from '../parser/action/read-action.ts';
import { TextPosition } from '../parser/text-position.ts';
import { isTruncated, ObjectEndFinder, unwrapped } from './call-arguments.ts';

export type ToolCallDelta = Extract<ModelDelta, { type: 'tool_call' }>;

export interface ToolCallOptions extends Pick<ParserOptions, 'json' | 'actionsLeft' | 'unsafe'> {
  /** Shared with the parser of the generation's text. */
  readonly numbering: Numbering;
  /** The action type of a called name. */
  readonly typeOf: (name: string) => ActionType;
}

/** A call that became an action, accepted or not, as later requests show it in the conversation. */
export interface NativeCall {
  readonly actionId: string;
  /** The action's position in its generation. Absent in data stored by earlier versions. */
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
  /** The stream has ended. @param complete it ended normally, so the arguments are complete (P15) */
  end(complete: boolean): readonly ProtocolEvent[];
  /** The calls declared or rejected so far, in the order in which they began. */
  readonly calls: readonly NativeCall[];
}

export function createToolCallReader(options: ToolCallOptions): ToolCallReader {
  return new Reader(options);
}

/** A call that has begun. */
interface Call {
  readonly ordinal: number;
  id: string | null;
  name: string | null;
  extra: JsonObject | null;
  text: string;
  readonly object: ObjectEndFinder;
  /** Declared, rejected or ignored: later pieces do not belong to it. */
  settled: boolean;
  warned: boolean;
}

class Reader implements ToolCallReader {
  readonly #options: ToolCallOptions;
  readonly #maxActions: number;
  /** The latest call at each index. */
  readonly #open = new Map<number, Call>();
  readonly #reported = new Map<Call, NativeCall>();
  /** Maps the endpoint's id to name and arguments. */
  readonly #used = new Map<string, string>();
  #events: ProtocolEvent[] = [];
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
    this.#bytes += bytesOf(delta.argumentsDelta) + bytesOf(delta.name ?? '');
    if (this.#bytes > limits.generationBytes) this.#overflow();
    else this.#take(delta);
    return this.#takeEvents();
  }

  end(complete: boolean): readonly ProtocolEvent[] {
    for (const call of this.#open.values()) this.#finish(call, complete);
    this.#full = true;
    return this.#takeEvents();
  }

  #takeEvents(): readonly ProtocolEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #take(delta: ToolCallDelta): void {
    let call = this.#open.get(delta.index);
    if (call !== undefined && startsNewCall(call, delta)) {
      this.#finish(call, true);
      call = undefined;
    }
    call ??= this.#begin(delta.index);
    call.id ??= delta.id;
    if (delta.extra !== undefined) call.extra = delta.extra;
    if (call.name === null && delta.name !== null) {
      call.name = delta.name;
      if (call.ordinal < this.#maxActions && !call.settled) {
        this.#events.push({
          type: 'action_opened',
          actionType: this.#options.typeOf(delta.name),
          name: delta.name,
          mode: 'async',
        });
      }
    }
    if (call.ordinal === this.#maxActions && !call.settled) this.#reject(call, tooMany(this.#maxActions));
    this.#write(call, delta.argumentsDelta);
  }

  #begin(index: number): Call {
    const { numbering } = this.#options;
    const { ordinal } = numbering;
    if (ordinal <= this.#maxActions) numbering.ordinal += 1;
    const call: Call = {
      ordinal,
      id: null,
      name: null,
      extra: null,
      text: '',
      object: new ObjectEndFinder(),
      // Past the limit, one call is rejected; later ones are skipped.
      settled: ordinal > this.#maxActions,
      warned: ordinal > this.#maxActions,
    };
    this.#open.set(index, call);
    return call;
  }

  #write(call: Call, piece: string): void {
    if (call.settled) {
      this.#warnTrailing(call, piece);
      return;
    }
    const end = call.object.scan(piece);
    const before = call.text.length;
    call.text += piece;
    if (end !== -1 && before + end <= limits.actionBodyBytes && call.name !== null) {
      const source = call.text.slice(0, before + end);
      if (isJsonObject(parseJson(source))) {
        this.#settle(call, source);
        this.#warnTrailing(call, piece.slice(end));
        return;
      }
    }
    if (call.text.length > limits.actionBodyBytes) this.#reject(call, tooLarge());
  }

  /** No more pieces follow for this call. */
  #finish(call: Call, complete: boolean): void {
    if (call.settled) return;
    const source = unwrapped(call.text);
    if (!complete || isTruncated(source)) {
      this.#reject(call, {
        code: 'unclosed',
        message: 'The arguments of the call are incomplete, so it does not run',
      });
    } else if (call.name === null) {
      this.#reject(call, { code: 'invalid_action', message: 'The call has no function name' });
    } else this.#settle(call, source);
  }

  #overflow(): void {
    this.#full = true;
    const message = `The generation is longer than ${limits.generationBytes} bytes`;
    for (const call of this.#open.values()) {
      if (!call.settled) this.#reject(call, { code: 'too_large', message });
    }
    this.#events.push({
      type: 'warning',
      code: 'text_too_large',
      message: `${message}; the calls that follow were ignored`,
      offset: 0,
    });
  }

  /** Declares or rejects a call whose arguments are complete. */
  #settle(call: Call, source: string): void {
    const name = call.name ?? '';
    const print = JSON.stringify([name, source]);
    if (call.id !== null && this.#used.get(call.id) === print) {
      call.settled = true;
      this.#events.push({
        type: 'warning',
        code: 'duplicate_action',
        message: `The call "${excerptOf(call.id)}" was repeated with the same arguments; it runs once`,
        offset: 0,
      });
      return;
    }
    const id = this.#actionId(call);
    const type = this.#options.typeOf(name);
    const read = this.#read({ id, type, name, source });
    if (call.id !== null && !this.#used.has(call.id)) this.#used.set(call.id, print);
    else call.id = null;
    if (!read.ok) {
      this.#report(call, { id, type, name, source: '' });
      this.#events.push({
        type: 'action_rejected',
        rejection: rejectionOf({ ordinal: call.ordinal, id, type, name }, read, source, { index: read.index }),
      });
      return;
    }
    for (const { code, message } of read.warnings) this.#events.push({ type: 'warning', code, message, offset: 0 });
    const { fields, repaired } = read;
    this.#report(call, { id, type, name, source: repaired ? JSON.stringify(fields.parameters) : source });
    const declared = { ordinal: call.ordinal, id, embeddedInThought: false, repaired, span: NOWHERE };
    this.#events.push({ type: 'action_declared', action: declarationOf(fields, declared) });
  }

  /** The arguments are always the parameters, whatever their keys (P18). */
  #read({ id, type, name, source }: { id: string; type: ActionType; name: string; source: string }): ReadAction {
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
    call.warned = true;
    const id = this.#actionId(call);
    const type = call.name === null ? null : this.#options.typeOf(call.name);
    const rejected = rejectionOf({ ordinal: call.ordinal, id, type, name: call.name }, rejection, call.text);
    if (call.id !== null && this.#used.has(call.id)) call.id = null;
    else if (call.id !== null) this.#used.set(call.id, '');
    this.#report(call, { id, type: type ?? DEFAULT_ACTION_TYPE, name: call.name ?? 'unnamed', source: '' });
    this.#events.push({ type: 'action_rejected', rejection: rejected });
  }

  #report(call: Call, reported: { id: string; type: ActionType; name: string; source: string }): void {
    call.settled = true;
    call.text = '';
    this.#reported.set(call, {
      actionId: reported.id,
      ordinal: call.ordinal,
      type: reported.type,
      id: call.id !== null && call.id.length <= limits.callStateChars ? call.id : reported.id,
      // Endpoints accept only these characters in a function name.
      name: reported.name.replace(/[^\w-]/g, '_').slice(0, limits.idChars),
      arguments: reported.source === '' ? '{}' : reported.source,
    });
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

  #warnTrailing(call: Call, rest: string): void {
    if (call.warned || rest.trim() === '') return;
    call.warned = true;
    this.#events.push({
      type: 'warning',
      code: 'tool_call_ignored',
      message: `Text after the arguments of the call of "${excerptOf(call.name ?? '')}" was ignored`,
      offset: 0,
    });
  }
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

/**
 * Whether the delta starts a new call although its index is in use: some servers omit the index or always send 0.
 */
function startsNewCall(call: Call, { id, name, argumentsDelta }: ToolCallDelta): boolean {
  if (name === null) return false;
  // A server may also send a new id with every piece of one call; such pieces have no name.
  if (id !== null && call.id !== null && id !== call.id) return true;
  if (call.name !== null && name !== call.name) return true;
  return call.settled && argumentsDelta.trim() !== '';
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
