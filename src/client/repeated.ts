/** Work that is done once at a time; what is wanted meanwhile is done by one more round. */
export class Repeated {
  readonly #work: () => Promise<void>;
  readonly #fail: (fault: unknown) => void;
  #isWanted = false;
  #isBusy = false;

  constructor(work: () => Promise<void>, fail: (fault: unknown) => void) {
    this.#work = work;
    this.#fail = fail;
  }

  run(): void {
    this.#isWanted = true;
    if (!this.#isBusy) void this.#loop();
  }

  async #loop(): Promise<void> {
    this.#isBusy = true;
    try {
      while (this.#isWanted) {
        this.#isWanted = false;
        await this.#work();
      }
    } catch (fault) {
      this.#fail(fault);
    } finally {
      this.#isBusy = false;
    }
  }
}
