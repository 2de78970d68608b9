/** Chooses the sandbox of a job: the best level that runs its interpreter, or exactly the requested one (R2). */
import { RunnerError } from '../problem.ts';
import {
  type Availability,
  INTERPRETERS,
  type Interpreter,
  type Sandbox,
  SANDBOX_LEVELS,
  type SandboxLevel,
  everywhere,
  unavailable,
} from './sandbox.ts';

interface Entry {
  readonly sandbox: Sandbox;
  readonly interpreters: Readonly<Record<Interpreter, Availability>>;
}

/** Part of `/health`. */
export interface SandboxReport {
  /** The default level of each interpreter. */
  readonly active: Readonly<Record<Interpreter, SandboxLevel | null>>;
  /** Set if the operator fixed the level. */
  readonly forced: SandboxLevel | null;
  /** Whether warm sandboxes are still being created. */
  readonly filling: boolean;
  readonly levels: readonly {
    readonly level: SandboxLevel;
    readonly interpreters: readonly Interpreter[];
    readonly hardening: readonly string[];
    /** Number of warm sandboxes. */
    readonly ready: number;
    /** Why an interpreter does not run at this level. */
    readonly missing: Readonly<Partial<Record<Interpreter, string>>>;
  }[];
}

export class SandboxRegistry {
  readonly #entries: readonly Entry[];
  readonly #absent: ReadonlyMap<SandboxLevel, string>;
  readonly #forced: SandboxLevel | null;

  private constructor(
    entries: readonly Entry[],
    absent: ReadonlyMap<SandboxLevel, string>,
    forced: SandboxLevel | null,
  ) {
    this.#entries = entries;
    this.#absent = absent;
    this.#forced = forced;
  }

  /**
   * Probes every sandbox.
   *
   * @param absent levels that are not probed, with the reason
   * @param forced the only allowed level
   */
  static async open(
    sandboxes: readonly Sandbox[],
    absent: ReadonlyMap<SandboxLevel, string>,
    forced: SandboxLevel | null,
  ): Promise<SandboxRegistry> {
    const entries = await Promise.all(
      sandboxes.map(async (sandbox): Promise<Entry> => {
        const interpreters = await sandbox
          .probe()
          .catch((fault: unknown) => everywhere(unavailable(fault instanceof Error ? fault.message : String(fault))));
        return { sandbox, interpreters };
      }),
    );
    entries.sort((a, b) => SANDBOX_LEVELS.indexOf(a.sandbox.level) - SANDBOX_LEVELS.indexOf(b.sandbox.level));
    const registry = new SandboxRegistry(entries, absent, forced);
    for (const interpreter of INTERPRETERS) registry.#best(interpreter)?.sandbox.prepare?.(interpreter);
    return registry;
  }

  /** @throws RunnerError `unsupported` with the reasons */
  choose(interpreter: Interpreter, asked: SandboxLevel | undefined): Sandbox {
    if (asked !== undefined && this.#forced !== null && asked !== this.#forced) {
      throw new RunnerError(
        'unsupported',
        `The operator allows only the sandbox ${this.#forced} (requested: ${asked})`,
      );
    }
    const wanted = asked ?? this.#forced;
    const candidates = this.#entries.filter(({ sandbox }) => wanted === null || sandbox.level === wanted);
    const reasons: string[] = [];
    for (const { sandbox, interpreters } of candidates) {
      const availability = interpreters[interpreter];
      if (availability.ok) return sandbox;
      reasons.push(`${sandbox.level}: ${availability.reason}`);
    }
    for (const [level, reason] of this.#absent) {
      if (wanted === null || wanted === level) reasons.push(`${level}: ${reason}`);
    }
    throw new RunnerError('unsupported', `No available sandbox runs ${interpreter} (${reasons.join('; ')})`);
  }

  /** For programs of images: a sandbox with containers. @throws RunnerError `unsupported` with the reason */
  chooseForImage(asked: SandboxLevel | undefined): Sandbox {
    // every container can run a shell
    const sandbox = this.choose('shell', asked ?? 'docker');
    if (sandbox.startImage === undefined) {
      throw new RunnerError('unsupported', `The sandbox ${sandbox.level} cannot run images; use docker`);
    }
    return sandbox;
  }

  report(): SandboxReport {
    const active = Object.fromEntries(
      INTERPRETERS.map((interpreter) => [interpreter, this.#best(interpreter)?.sandbox.level ?? null]),
    ) as Record<Interpreter, SandboxLevel | null>;
    const levels = SANDBOX_LEVELS.map((level) => {
      const entry = this.#entries.find(({ sandbox }) => sandbox.level === level);
      const interpreters =
        entry?.interpreters ?? everywhere(unavailable(this.#absent.get(level) ?? 'not part of this runner'));
      const missing: Partial<Record<Interpreter, string>> = {};
      for (const name of INTERPRETERS) {
        const availability = interpreters[name];
        if (!availability.ok) missing[name] = availability.reason;
      }
      const working = INTERPRETERS.filter((name) => interpreters[name].ok);
      return {
        level,
        interpreters: working,
        ready: entry?.sandbox.warm?.ready ?? 0,
        hardening: working.length === 0 ? [] : (entry?.sandbox.hardening ?? []),
        missing,
      };
    });
    const filling = this.#entries.some(({ sandbox }) => sandbox.warm?.filling === true);
    return { active, forced: this.#forced, filling, levels };
  }

  /** The default for jobs without a requested level. */
  #best(interpreter: Interpreter): Entry | undefined {
    return this.#entries.find(
      ({ sandbox, interpreters }) =>
        interpreters[interpreter].ok && (this.#forced === null || sandbox.level === this.#forced),
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.#entries.map(({ sandbox }) => sandbox.close()));
  }
}
