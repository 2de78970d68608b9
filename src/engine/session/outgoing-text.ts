/**
 * Which patterns are redacted in what leaves a session (C9): those of the deployment, of its agent or workflow, and of the
 * sessions above it.
 */
import { redactionOf } from '../../bounded/redaction.ts';
import type { Redaction } from '../../bounded/redaction.ts';
import { readContent } from '../../domain/content.ts';
import type { MessageContent } from '../../domain/content.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import type { SeededMessage } from '../../domain/seeded.ts';
import type { RunRecord } from '../../domain/session.ts';
import { redactedValue } from '../run/outgoing-events.ts';
import { boundInput, definedPatterns } from './run-setup.ts';
import type { SessionPorts } from './session-ports.ts';

type Ports = Pick<SessionPorts, 'journal' | 'resolve' | 'workflow' | 'redactPatterns' | 'share'>;

/** Hides all text: what a session with unknown patterns may show. */
const EVERYTHING = [String.raw`[\s\S]{1,256}`];

/** @param own the patterns of the run's definition */
export function redactionOfRun(
  ports: Pick<Ports, 'journal' | 'redactPatterns' | 'share'>,
  own: readonly string[] | undefined,
  { input }: Pick<RunRecord, 'input'>,
): Redaction | null {
  return redactionOf([ports.redactPatterns, own, inherited(boundInput(ports, input))], (steps) =>
    ports.share.charge(steps),
  );
}

/**
 * For text that is stored as it came, and redacted when it is read: messages, variables, feeds, approvals. The definition
 * of the newest run counts; if the patterns are unknown, all text is hidden.
 */
export function redactionOfSession(ports: Ports): Redaction | null {
  const [newest] = ports.journal.runs.list(1);
  const input = newest?.input ?? {};
  return redactionOfRun(ports, definedPatterns(ports, input) ?? EVERYTHING, { input });
}

/**
 * The same for the end of a run that cannot continue: if its definition cannot be read, the other patterns count. What its
 * blocks contain is redacted already.
 */
export function redactionOfEnd(ports: Ports, { input }: Pick<RunRecord, 'input'>): Redaction | null {
  let own: readonly string[] | undefined;
  try {
    own = definedPatterns(ports, input) ?? undefined;
  } catch {
    own = undefined;
  }
  return redactionOfRun(ports, own, { input });
}

/** Members of a run's input that are text. */
const INPUT_TEXT = ['text', 'inputs', 'instructions', 'metadata'] as const;

/** What leaves a session without being an event. */
export class OutgoingText {
  readonly #redaction: Redaction | null;

  /** @param redaction null: everything stays the same, at no cost */
  constructor(redaction: Redaction | null) {
    this.#redaction = redaction;
  }

  get isActive(): boolean {
    return this.#redaction !== null;
  }

  text(text: string): string {
    return this.#redaction === null ? text : this.#redaction.text(text);
  }

  /** Plain JSON; the identical value if nothing in it was redacted. */
  json<T>(value: T): T {
    // Interfaces of plain JSON only lack the index signature.
    return this.#redaction === null ? value : (redactedValue(value as Json, this.#redaction.texts()) as T);
  }

  /** A JSON text. */
  encoded(text: string): string {
    return this.#redaction === null ? text : JSON.stringify(this.json(JSON.parse(text) as Json));
  }

  /** The texts of a message; its files are named by hashes. */
  content<C extends MessageContent | null>(content: C): C;
  content(content: MessageContent | null): MessageContent | null {
    if (content === null || this.#redaction === null) return content;
    if (typeof content === 'string') return this.text(content);
    return content.map((part) => (part.type === 'text' ? { ...part, text: this.text(part.text) } : part));
  }

  seeded(message: SeededMessage): SeededMessage {
    if (this.#redaction === null) return message;
    const content = this.content(message.content);
    if (message.role !== 'assistant' || message.tool_calls === undefined) {
      return { ...message, content } as SeededMessage;
    }
    const calls = message.tool_calls.map((call) => ({
      ...call,
      function: { ...call.function, arguments: this.text(call.function.arguments) },
    }));
    return { ...message, content, tool_calls: calls } as SeededMessage;
  }

  /** The stored input of a run. */
  input(input: JsonObject): JsonObject {
    if (this.#redaction === null) return input;
    const text = INPUT_TEXT.flatMap((name): [string, Json][] => {
      const value = input[name];
      return value === undefined ? [] : [[name, this.json(value)]];
    });
    const content = readContent(input['content']);
    const said = content === null ? {} : { content: this.content(content) as Json };
    return { ...input, ...Object.fromEntries(text), ...said };
  }
}

function inherited({ redact }: JsonObject): readonly string[] {
  return Array.isArray(redact) ? redact.filter((one) => typeof one === 'string') : [];
}
