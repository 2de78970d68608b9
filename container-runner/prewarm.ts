/**
 * Reserves sandboxes for sessions that will need one soon. When the model begins to write an action, the runner reserves a
 * warm interpreter, or a container of the image that the session used last.
 *
 * Owns the reservations, and the last image of each session. Does not own the choice of a sandbox without a reservation.
 * Invariants:
 * 1. A reservation is used once, by a job of its session, or released after `limits.prewarmMs`.
 * 2. There are at most `limits.prewarmed` reservations; further requests are ignored without harm.
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
  readonly #interpreters = new Reservations<Launch>();
  readonly #images = new Reservations<ImageLaunch>();
  /** By session, most recent last. */
  readonly #lastImage = new Map<string, string>();
  #closed = false;

  constructor(sandboxes: SandboxRegistry) {
    this.#sandboxes = sandboxes;
  }

  /** Number of reservations. */
  get held(): number {
    return this.#interpreters.count + this.#images.count;
  }

  get #isFull(): boolean {
    return this.#closed || this.held >= limits.prewarmed;
  }

  /**
   * Reserves a sandbox for an expected job; returns immediately.
   *
   * @returns false if nothing is reserved: the limit is reached, or the sandbox has no warm instances
   * @throws RunnerError `unsupported` if such a job could not run
   */
  hold(session: string, interpreter: Interpreter, asked: SandboxLevel | undefined): boolean {
    const sandbox = this.#sandboxes.choose(interpreter, asked);
    if (this.#isFull || sandbox.hold === undefined) return false;
    this.#interpreters.put(keyOf(session, sandbox, interpreter), sandbox.hold(interpreter));
    return true;
  }

  /** Takes the reservation for such a job, if there is one. */
  async take(session: string, sandbox: Sandbox, interpreter: Interpreter): Promise<Held | null> {
    return await this.#interpreters.take(keyOf(session, sandbox, interpreter));
  }

  /**
   * Reserves a container. The image of the next job is unknown, so the session's last image is used.
   *
   * @returns false also if the session has not used an image
   * @throws RunnerError `unsupported` if no image can run here
   */
  holdImage(session: string, asked: SandboxLevel | undefined): boolean {
    const sandbox = this.#sandboxes.chooseForImage(asked);
    const image = this.#lastImage.get(session);
    if (this.#isFull || sandbox.holdImage === undefined || image === undefined) return false;
    this.#images.put(keyOf(session, sandbox, image), sandbox.holdImage(image));
    return true;
  }

  /** Takes the reservation for an image, if there is one, and remembers the image. */
  async takeImage(session: string, sandbox: Sandbox, image: string): Promise<Held<ImageLaunch> | null> {
    this.#lastImage.delete(session);
    this.#lastImage.set(session, image);
    const [oldest] = this.#lastImage.keys();
    if (this.#lastImage.size > limits.prewarmSessions && oldest !== undefined) this.#lastImage.delete(oldest);
    return await this.#images.take(keyOf(session, sandbox, image));
  }

  /** Releases all reservations; resolves when that is done. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#interpreters.clear(), this.#images.clear()]);
  }
}

/** Reservations by key. */
class Reservations<What> {
  readonly #entries = new Map<string, Entry<What>[]>();
  count = 0;

  put(key: string, holding: Promise<Held<What>>): void {
    const entry: Entry<What> = {
      // ignore the error: the job will report it
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
