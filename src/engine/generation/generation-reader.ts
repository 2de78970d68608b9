/**
 * Reads one generation: converts text, native calls and declared actions to protocol events, live or from a record (P3).
 *
 * Owns the parser, the reader of native calls, and the verbatim text so far. Does not own the source of the text, or
 * the consequences of the events.
 */
import { plainDeclaration } from '../../domain/action.ts';
import type { ActionType } from '../../domain/action.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { ToolDefinition } from '../../domain/manifests/tool.ts';
import type { FinishReason } from '../../domain/ports/model.ts';
import type { ProtocolEvent } from '../../domain/protocol-event.ts';
import { nativeType } from '../../protocol/native/native-tools.ts';
import { createToolCallReader } from '../../protocol/native/tool-calls.ts';
import type { NativeCall, ToolCallReader } from '../../protocol/native/tool-calls.ts';
import { createParser } from '../../protocol/parser/parser.ts';
import type { ProtocolParser } from '../../protocol/parser/parser.ts';
import { effectsOf } from '../actions/action-policy.ts';
import { knownTargets } from '../actions/known-targets.ts';
import type { DeclaredPiece, StreamPiece } from '../run/run-input.ts';
import type { RunContext } from '../run/run-context.ts';

/** The events at the end of a generation, and the whole generation. */
export interface ReadEnd {
  readonly events: readonly ProtocolEvent[];
  /** The verbatim text (L5). */
  readonly text: string;
  readonly calls: readonly NativeCall[];
}

export class GenerationReader {
  readonly #text: ProtocolParser;
  readonly #calls: ToolCallReader;
  readonly #numbering: { ordinal: number; autoId: number };
  readonly #pieces: string[] = [];
  #chars = 0;

  /** @param autoId number of the next automatic action id, counted over the run */
  constructor(resolved: RunContext['resolved'], autoId: number) {
    const { json, actInReasoning } = resolved.agent.protocol;
    this.#numbering = { ordinal: 0, autoId };
    // Both readers share the numbering of the generation's actions.
    const shared = {
      json,
      numbering: this.#numbering,
      unsafe: (type: ActionType, name: string) => effectsOf(type, resolved.tools.get(name) ?? null) === 'unsafe',
    };
    this.#text = createParser({
      ...shared,
      targets: knownTargets(resolved),
      actInReasoning,
    });
    this.#calls = createToolCallReader({
      ...shared,
      typeOf: (name) => nativeType(resolved, name),
      hasParameters: (type, name) => type !== 'tool' || takesParameters(resolved.tools.get(name)),
    });
  }

  /** @returns the events that this piece completes */
  feed(piece: StreamPiece): readonly ProtocolEvent[] {
    if ('delta' in piece) return this.#calls.feed(piece.delta);
    if ('declared' in piece) return this.#declared(piece);
    this.#pieces.push(piece.text);
    this.#chars += piece.text.length;
    const events = this.#text.feed(piece.text);
    // The calls before a block are complete (N4).
    return events.some(({ type }) => BEGINNINGS.has(type)) ? [...this.#calls.confirm(), ...events] : events;
  }

  #declared({ declared, answers }: DeclaredPiece): readonly ProtocolEvent[] {
    const { id } = declared;
    const { ordinal } = this.#numbering;
    this.#numbering.ordinal += 1;
    const action: ProtocolEvent = {
      type: 'action_declared',
      action: plainDeclaration({ ...declared, mode: 'async', ordinal }),
    };
    if (answers === undefined) return [action];
    return [
      action,
      { type: 'response_started', offset: 0, final: true },
      { type: 'response_reference', reference: { name: id, path: [], raw: `\${${id}}` } },
      { type: 'response_completed', unclosed: false },
    ];
  }

  end(finish: FinishReason): ReadEnd {
    const isWhole = finish === 'stop' || finish === 'tool_calls';
    // Text before calls, in the order in which the model wrote them.
    const events = [...this.#text.end(!isWhole), ...this.#calls.end(isWhole)];
    return { events, ...this.written };
  }

  /** What the model has written so far. */
  get written(): Pick<ReadEnd, 'text' | 'calls'> {
    return { text: this.#pieces.join(''), calls: this.#calls.calls };
  }

  /** Number of characters read. */
  get chars(): number {
    return this.#chars;
  }

  get nextAutoId(): number {
    return this.#text.nextAutoId;
  }
}

const BEGINNINGS: ReadonlySet<ProtocolEvent['type']> = new Set([
  'thought_started',
  'text_started',
  'response_started',
  'action_opened',
  'action_declared',
]);

function takesParameters(tool: ToolDefinition | undefined): boolean {
  return (
    tool === undefined ||
    !isJsonObject(tool.parameters['properties']) ||
    Object.keys(tool.parameters['properties']).length > 0
  );
}
