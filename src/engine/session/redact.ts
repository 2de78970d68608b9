/**
 * Keeps secrets out of everything that the system writes, sends and logs (X3): outputs, live output and errors of
 * actions are redacted before the journal, readers or the model see them. Patterns of manifests are another matter: they
 * are redacted only in what leaves (run/outgoing-events.ts).
 */
import { TooDeep } from '../../bounded/json-size.ts';
import { redactJson } from '../../bounded/redact-json.ts';
import type { ActionOutcome, ActionType, Question } from '../../domain/action.ts';
import { messageOf } from '../../domain/errors.ts';
import type { EventData } from '../../domain/event.ts';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { ActionContext, Executor } from '../../executors/executor.ts';

const MARK = '[secret]';
const LINE_BREAK = /[\n\r]/;

export interface Redactor {
  (text: string): string;
  /**
   * Number of characters at the end of an unfinished text that must wait, because a secret may begin in them. Depends
   * on line breaks and lengths only. If it depended on the secrets, the author of the text could guess them letter by
   * letter by watching what is held back.
   */
  readonly openChars: (text: string) => number;
}

/** @param secrets values of the environment; each is found verbatim and in its JSON form */
export function redactor(secrets: readonly string[]): Redactor {
  const forms = secrets.flatMap((secret) =>
    secret.length < limits.secretChars ? [] : [secret, JSON.stringify(secret).slice(1, -1)],
  );
  // Longest first: a secret may contain another one.
  const found = [...new Set(forms)].toSorted((a, b) => b.length - a.length);
  const redact = (text: string): string => found.reduce((safe, secret) => safe.replaceAll(secret, MARK), text);
  const longest = found[0]?.length ?? 1;
  const inLines = found.every((secret) => !LINE_BREAK.test(secret));
  const openChars = (text: string): number => {
    const line = inLines ? text.length - 1 - Math.max(text.lastIndexOf('\n'), text.lastIndexOf('\r')) : text.length;
    return Math.min(line, longest - 1);
  };
  return Object.assign(redact, { openChars });
}

/** A redactor that reads its secrets on first use. */
export function lazyRedactor(secrets: () => readonly string[]): Redactor {
  let made: Redactor | null = null;
  const redact = (): Redactor => (made ??= redactor(secrets()));
  return Object.assign((text: string) => redact()(text), { openChars: (text: string) => redact().openChars(text) });
}

type Executors = Readonly<Record<ActionType, Executor>>;

/** The same executors with redacted results. */
export function redactingExecutors(executors: Executors, redact: Redactor): Executors {
  const entries = Object.entries(executors).map(([type, executor]) => [type, redacting(executor, redact)]);
  return Object.fromEntries(entries) as Executors;
}

function redacting(executor: Executor, redact: Redactor): Executor {
  const safe = <T extends ActionOutcome | null>(outcome: T): T => {
    if (outcome === null) return outcome;
    if (outcome.ok) return { ...outcome, output: redactJson(outcome.output, redact) };
    const { error, question } = outcome;
    const failed = { ...outcome, error: { ...error, message: redact(error.message) } };
    if (question === undefined) return failed;
    return { ...failed, question: redactJson({ ...question } as unknown as Json, redact) as unknown as Question };
  };
  const { recover, withdraw } = executor;
  return {
    ...(withdraw === undefined ? {} : { withdraw: (question, context) => withdraw(question, context) }),
    async execute(call, context) {
      const progress = new Progress(context, redact);
      try {
        return safe(await executor.execute(call, progress.context));
      } catch (fault) {
        const code = fault instanceof TooDeep ? 'output_too_deep' : 'executor_fault';
        return { ok: false, error: { code, message: redact(messageOf(fault)), retryable: false } };
      } finally {
        progress.end();
      }
    },
    ...(recover === undefined
      ? {}
      : {
          async recover(call, context) {
            const progress = new Progress(context, redact);
            try {
              return safe(await recover(call, progress.context));
            } finally {
              progress.end();
            }
          },
        }),
  };
}

/** Redacts live output, including secrets that are split: the end of an unfinished line waits for the next piece. */
class Progress {
  readonly context: ActionContext;
  readonly #publish: (data: EventData['progress']) => void;
  readonly #redact: Redactor;
  /** Null until there is any live output: most actions have none. */
  #held: Map<string, EventData['progress'] & { readonly text: string }> | null = null;

  constructor(context: ActionContext, redact: Redactor) {
    this.#redact = redact;
    this.#publish = (data) => context.progress(data);
    this.context = { ...context, progress: (data) => this.#take(data) };
  }

  #take(data: EventData['progress']): void {
    if (data.text === undefined) return this.#publish(redactJson({ ...data }, this.#redact) as EventData['progress']);
    const { stream = '' } = data;
    const held = (this.#held ??= new Map());
    const text = this.#redact((held.get(stream)?.text ?? '') + data.text);
    const open = this.#redact.openChars(text);
    held.delete(stream);
    if (open > 0) held.set(stream, { ...data, text: text.slice(-open) });
    if (open < text.length) this.#publish({ ...data, text: text.slice(0, text.length - open) });
  }

  end(): void {
    if (this.#held === null) return;
    for (const data of this.#held.values()) this.#publish(data);
    this.#held.clear();
  }
}
