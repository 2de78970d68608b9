/** An object storage in memory, whose calls a test can delay or let fail. */
import type { ObjectStore } from '../../src/domain/ports/storage.ts';

type Call = readonly [method: keyof ObjectStore, key: string];

export class FakeObjects implements ObjectStore {
  readonly objects = new Map<string, Uint8Array>();
  /** All calls, in order, failed ones included. */
  readonly calls: Call[] = [];
  /** Awaited before each call; an exception is the call's exception. */
  before: (...call: Call) => Promise<void> | void = () => undefined;

  async put(key: string, bytes: Uint8Array): Promise<void> {
    await this.#called('put', key);
    this.objects.set(key, bytes.slice());
  }

  async get(key: string): Promise<Uint8Array | null> {
    await this.#called('get', key);
    return this.objects.get(key) ?? null;
  }

  async delete(key: string): Promise<void> {
    await this.#called('delete', key);
    this.objects.delete(key);
  }

  async deleteSome(prefix: string): Promise<boolean> {
    await this.#called('deleteSome', prefix);
    const [key, ...others] = [...this.objects.keys()].filter((name) => name.startsWith(prefix));
    if (key !== undefined) this.objects.delete(key);
    return others.length === 0;
  }

  async #called(...call: Call): Promise<void> {
    this.calls.push(call);
    await this.before(...call);
  }
}
