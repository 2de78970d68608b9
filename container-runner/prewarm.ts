/**
 * Sandboxes that are held ready for a session, because it will need one soon: the model has begun to
 * write the action, and its end meets a warm interpreter.
 *
 * Owns: what is held. Does not own: which sandbox a job gets when nothing is held for it.
 * Invariants:
 * 1. What is held is used once, by a job of the session that it was held for, or released after `limits.prewarmMs`.
 * 2. At most `limits.prewarmed` are held; past it a wish is not granted, and nothing is lost by that.
 */
import { limits } from './limits.ts';
import type { SandboxRegistry } from './sandbox/registry.ts';
import type { Held, Interpreter, Sandbox, SandboxLevel } from './sandbox/sandbox.ts';

interface Entry {
  readonly held: Promise<Held | null>;
  readonly timer: NodeJS.Timeout;
}

export class Prewarmer {
  readonly #sandboxes: SandboxRegistry;
  readonly #entries = new Map<string, Entry[]>();
  #count = 0;
  #closed = false;

  constructor(sandboxes: SandboxRegistry) {
    this.#sandboxes = sandboxes;
  }

  /** How many are held now. */
  get held(): number {
    return this.#count;
  }

  /**
   * Holds a sandbox for a job that will come; returns at once.
   *
   * @returns false where nothing is held: the place is full, or the sandbox knows no waiting
   * @throws Refusal `unsupported` where such a job could not run
   */
  hold(session: string, interpreter: Interpreter, asked: SandboxLevel | undefined): boolean {
    const sandbox = this.#sandboxes.choose(interpreter, asked);
    if (this.#closed || sandbox.hold === undefined || this.#count >= limits.prewarmed) return false;
    const key = keyOf(session, sandbox, interpreter);
    const entries = this.#entries.get(key) ?? [];
    this.#entries.set(key, entries);
    const entry: Entry = {
      // one that could not be made is no reason to fail: the job will say why
      held: sandbox.hold(interpreter).catch(() => null),
      timer: setTimeout(() => {
        this.#forget(key, entry);
        void entry.held.then((held) => held?.release());
      }, limits.prewarmMs),
    };
    entries.push(entry);
    this.#count += 1;
    return true;
  }

  /** What is held for such a job, if anything; it is the caller's from now on. */
  async take(session: string, sandbox: Sandbox, interpreter: Interpreter): Promise<Held | null> {
    const key = keyOf(session, sandbox, interpreter);
    const entry = this.#entries.get(key)?.[0];
    if (entry === undefined) return null;
    this.#forget(key, entry);
    return await entry.held;
  }

  /** Releases everything; resolves when that is done. */
  async close(): Promise<void> {
    this.#closed = true;
    const entries = [...this.#entries.entries()].flatMap(([key, list]) => list.map((entry) => ({ key, entry })));
    for (const { key, entry } of entries) this.#forget(key, entry);
    await Promise.all(entries.map(({ entry }) => entry.held.then((held) => held?.release())));
  }

  #forget(key: string, entry: Entry): void {
    clearTimeout(entry.timer);
    const rest = (this.#entries.get(key) ?? []).filter((other) => other !== entry);
    if (rest.length === 0) this.#entries.delete(key);
    else this.#entries.set(key, rest);
    this.#count -= 1;
  }
}

function keyOf(session: string, sandbox: Sandbox, interpreter: Interpreter): string {
  return `${session} ${sandbox.level} ${interpreter}`;
}
