/**
 * The open action, and the declarations of the generation so far (P6, P7, P15, P16).
 *
 * Owns the action that is being read and its body, the ordinals and ids of the generation, and the repair budget.
 * Does not own where a tag begins or ends.
 *
 * Invariants:
 *  1. At most one action is open.
 *  2. Only `close` declares an action; `abandon` rejects it (P15).
 *  3. Each action up to the limit has its own ordinal, whether declared or rejected. The first one past the limit is
 *     rejected; later ones are skipped.
 */
import type { ActionType, RejectionCode } from '../../../domain/action.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { limits } from '../../../domain/limits.ts';
import { ActionBody } from './action-body.ts';
import type { KnownTargets } from './action-fields.ts';
import { headFrom, readHead } from './action-head.ts';
import type { ActionHead } from './action-head.ts';
import type { RepairBudget } from './action-json.ts';
import type { BlockWriter } from '../block-writer.ts';
import { DeclaredIds } from './declared-ids.ts';
import { excerptAround, excerptOf, placeOf } from '../excerpt.ts';
import { declarationOf, readAction } from './read-action.ts';
import type { TagReader } from '../tag-reader.ts';
import type { TextPosition } from '../text-position.ts';

/** Counters shared by the text and the native calls of a generation (P6, P16, P17). */
export interface Numbering {
  /** Ordinal of the next action. */
  ordinal: number;
  /** Number of the next `auto_N`. */
  autoId: number;
}

export interface Rejection {
  readonly code: RejectionCode;
  readonly message: string;
}

export interface ActionReaderOptions {
  readonly maxActions: number;
  /** Accepts strict JSON only (P8). */
  readonly strict: boolean;
  readonly unsafe: ((type: ActionType, name: string) => boolean) | undefined;
  readonly targets: KnownTargets | null;
}

/** An action whose opening tag was read and whose body is being collected. */
interface OpenAction {
  readonly ordinal: number;
  readonly head: ActionHead;
  /** The text after `<action` in its tag. */
  readonly tag: string;
  readonly start: number;
  readonly line: number;
  readonly column: number;
  readonly embedded: boolean;
  /** Set if the action is rejected regardless of its body. */
  readonly rejection: Rejection | null;
  readonly ignored: boolean;
}

export class ActionReader {
  readonly #options: ActionReaderOptions;
  readonly #numbering: Numbering;
  readonly #writer: BlockWriter;
  readonly #ids = new DeclaredIds();
  /** Ids of declarations without parameters: a second one may follow with them (P6). */
  readonly #empty = new Set<string>();
  readonly #repair: RepairBudget | null;
  readonly body: ActionBody;
  #action: OpenAction | null = null;

  constructor(options: ActionReaderOptions, numbering: Numbering, writer: BlockWriter, position: TextPosition) {
    this.#options = options;
    this.#numbering = numbering;
    this.#writer = writer;
    this.#repair = options.strict ? null : { charsLeft: limits.repairCharsPerGeneration };
    this.body = new ActionBody(position);
  }

  /**
   * @param bodyOffset offset of the first character of the body
   * @param rejection set if the action is rejected regardless of its tag and body
   */
  open(tag: TagReader, bodyOffset: number, rejection: Rejection | null = null): void {
    this.#ids.settle();
    const { maxActions } = this.#options;
    const { ordinal } = this.#numbering;
    const ignored = ordinal > maxActions;
    if (!ignored) this.#numbering.ordinal += 1;
    const head = rejection === null ? readHead(tag.head) : headFrom({});
    this.#action = {
      ordinal,
      head,
      tag: tag.inner,
      start: tag.offset,
      line: tag.line,
      column: tag.column,
      embedded: this.#writer.block === 'thought',
      rejection: ordinal === maxActions ? tooManyActions(maxActions) : rejection,
      ignored,
    };
    this.body.begin(bodyOffset, ignored);
    if (ordinal < maxActions) {
      this.#writer.emit({ type: 'action_opened', actionType: head.type, name: head.name, mode: head.mode });
    }
  }

  /** Ends the action after its `</action>` or `/>`. @param end offset after it */
  close(end: number): void {
    if (this.#action === null) return;
    if (!this.#action.ignored) this.#declare(this.#action, end);
    this.#leave();
  }

  /** Rejects the action, which was not closed. */
  abandon(rejection: Rejection): void {
    const action = this.#action;
    if (action === null) return;
    if (!action.ignored) this.#reject(action, action.rejection ?? rejection);
    this.#leave();
  }

  #leave(): void {
    this.#action = null;
    this.body.end();
  }

  #declare(action: OpenAction, end: number): void {
    if (action.rejection !== null) return this.#reject(action, action.rejection);
    const { body } = this;
    if (body.tooLarge) {
      const message = `The body is longer than ${limits.actionBodyBytes} bytes`;
      return this.#reject(action, { code: 'too_large', message });
    }
    const { unsafe, targets } = this.#options;
    const read = readAction(action.head, body, { repair: this.#repair, unsafe, targets });
    if (!read.ok) return this.#reject(action, read, read.id, read.index);
    const { id } = read;
    if (id !== null && this.#repeats(action, id, read.fields.parameters)) return;
    for (const { code, message } of read.warnings) this.#writer.warn(code, message, action.start);
    const declaration = declarationOf(read.fields, {
      ordinal: action.ordinal,
      id: id ?? this.#autoId(),
      embeddedInThought: action.embedded,
      repaired: read.repaired,
      span: { start: action.start, end },
    });
    this.#writer.emit({ type: 'action_declared', action: declaration });
  }

  /** Whether the id was already used in this generation; reports it (P6). */
  #repeats(action: OpenAction, id: string, parameters: JsonObject): boolean {
    const isEmpty = Object.keys(parameters).length === 0;
    const text = `${action.tag}>${this.body.source}`;
    const known = this.#ids.declare(id, text);
    if (known === 'other' && !isEmpty && this.#empty.delete(id)) {
      // The scheduler knows whether the empty one has started.
      this.#ids.replace(id, text);
      return false;
    }
    switch (known) {
      case 'new':
        if (isEmpty) this.#empty.add(id);
        return false;
      case 'same': {
        const message = `The action "${id}" was declared twice with the same text; it runs once`;
        this.#writer.warn('duplicate_action', message, action.start);
        return true;
      }
      case 'other': {
        const message = `The id "${id}" is already used in this generation; choose another`;
        this.#reject(action, { code: 'duplicate_id', message }, id);
        return true;
      }
    }
  }

  #autoId(): string {
    for (;;) {
      const id = `auto_${this.#numbering.autoId}`;
      this.#numbering.autoId += 1;
      if (!this.#ids.has(id)) return id;
    }
  }

  /** @param index position of the error in the body; null shows the whole action */
  #reject(
    action: OpenAction,
    { code, message }: Rejection,
    id: string | null = action.head.id,
    index: number | null = null,
  ): void {
    const { type, mode, name } = action.head;
    const { source } = this.body;
    const before = `<action${action.tag}>`;
    const place =
      index === null ? { line: 1, column: 1 } : placeOf(before + source.slice(0, index), before.length + index);
    const line = action.line + place.line - 1;
    const column = place.line === 1 ? action.column + place.column - 1 : place.column;
    const excerpt =
      index === null ? excerptOf(before + source.slice(0, limits.excerptChars)) : excerptAround(source, index);
    const shownId = excerptOf(id ?? this.#autoId());
    this.#writer.emit({
      type: 'action_rejected',
      rejection: {
        ordinal: action.ordinal,
        id: shownId,
        type,
        mode,
        name,
        code,
        message: `Action "${shownId}", line ${line}: ${message}`,
        line,
        column,
        excerpt,
      },
    });
  }
}

function tooManyActions(most: number): Rejection {
  return { code: 'too_many_actions', message: `More than ${most} actions; this one and all later ones are ignored` };
}
