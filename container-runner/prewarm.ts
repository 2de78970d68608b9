/**
 * Sandboxes that are held ready for a session, because it will need one soon: the model has begun to
 * write the action, and its end meets a warm interpreter, or a container of the image that the session
 * used last.
 *
 * Owns: what is held, and which image each session used last. Does not own: which sandbox a job gets when
 * nothing is held for it.
 * Invariants:
 * 1. What is held is used once, by a job of the session that it was held for, or released after `limits.prewarmMs`.
 * 2. At most `limits.prewarmed` are held; past it a wish is not granted, and nothing is lost by that.
 */
import { limits } from './limits.ts';
import type { SandboxRegistry } from './sandbox/registry.ts';
import type { Held, ImageLaunch, Interpreter, Launch, Sandbox, SandboxLevel } from './sandbox/sandbox.ts';

interface Entry<What> {
  readonly held: Promise<Held<What> | null>;
  readonly timer: NodeJS.Timeout;
}

export class Prewarmer {
  readonly #sandboxes: SandboxRegistry;
  readonly #interpreters = new Shelf<Launch>();
  readonly #images = new Shelf<ImageLaunch>();
  /** By session, the latest last. */
  readonly #lastImage = new Map<string, string>();
  #closed = false;

  constructor(sandboxes: SandboxRegistry) {
    this.#sandboxes = sandboxes;
  }

  /** How many are held now. */
  get held(): number {
    return this.#interpreters.count + this.#images.count;
  }

  get #isFull(): boolean {
    return this.#closed || this.held >= limits.prewarmed;
  }

  /**
   * Holds a sandbox for a job that will come; returns at once.
   *
   * @returns false where nothing is held: the place is full, or the sandbox knows no waiting
   * @throws Refusal `unsupported` where such a job could not run
   */
  hold(session: string, interpreter: Interpreter, asked: SandboxLevel | undefined): boolean {
    const sandbox = this.#sandboxes.choose(interpreter, asked);
    if (this.#isFull || sandbox.hold === undefined) return false;
    this.#interpreters.put(keyOf(session, sandbox, interpreter), sandbox.hold(interpreter));
    return true;
  }

  /** What is held for such a job, if anything; it is the caller's from now on. */
  async take(session: string, sandbox: Sandbox, interpreter: Interpreter): Promise<Held | null> {
    return await this.#interpreters.take(keyOf(session, sandbox, interpreter));
  }

  /**
   * The same for a program of an image: which one is not known yet, so that it is the one that the session used last.
   *
   * @returns false also where the session has used none
   * @throws Refusal `unsupported` where no image could run
   */
  holdImage(session: string, asked: SandboxLevel | undefined): boolean {
    const sandbox = this.#sandboxes.chooseForImage(asked);
    const image = this.#lastImage.get(session);
    if (this.#isFull || sandbox.holdImage === undefined || image === undefined) return false;
    this.#images.put(keyOf(session, sandbox, image), sandbox.holdImage(image));
    return true;
  }

  /** What is held of an image, if anything; remembers it for the next time. */
  async takeImage(session: string, sandbox: Sandbox, image: string): Promise<Held<ImageLaunch> | null> {
    this.#lastImage.delete(session);
    this.#lastImage.set(session, image);
    const [oldest] = this.#lastImage.keys();
    if (this.#lastImage.size > limits.prewarmSessions && oldest !== undefined) this.#lastImage.delete(oldest);
    return await this.#images.take(keyOf(session, sandbox, image));
  }

  /** Releases everything; resolves when that is done. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#interpreters.clear(), this.#images.clear()]);
  }
}

/** What is held, by key. */
class Shelf<What> {
  readonly #entries = new Map<string, Entry<What>[]>();
  count = 0;

  put(key: string, holding: Promise<Held<What>>): void {
    const entry: Entry<What> = {
      // one that could not be made is no reason to fail: the job will say why
      held: holding.catch(() => null),
      timer: setTimeout(() => {
        this.#forget(key, entry);
        void entry.held.then((held) => held?.release());
      }, limits.prewarmMs),
    };
    this.#entries.set(key, [...(this.#entries.get(key) ?? []), entry]);
    this.count += 1;
  }

  async take(key: string): Promise<Held<What> | null> {
    const entry = this.#entries.get(key)?.[0];
    if (entry === undefined) return null;
    this.#forget(key, entry);
    return await entry.held;
  }

  async clear(): Promise<void> {
    const all = [...this.#entries.entries()].flatMap(([key, list]) => list.map((entry) => ({ key, entry })));
    for (const { key, entry } of all) this.#forget(key, entry);
    await Promise.all(all.map(({ entry }) => entry.held.then((held) => held?.release())));
  }

  #forget(key: string, entry: Entry<What>): void {
    clearTimeout(entry.timer);
    const rest = (this.#entries.get(key) ?? []).filter((other) => other !== entry);
    if (rest.length === 0) this.#entries.delete(key);
    else this.#entries.set(key, rest);
    this.count -= 1;
  }
}

function keyOf(session: string, sandbox: Sandbox, what: string): string {
  return `${session} ${sandbox.level} ${what}`;
}
