/** A deliberate mistake in one file of the engine, or of the console. */
export interface Patch {
  /** What is broken, as one sentence. */
  readonly name: string;
  /** Relative to the repository. */
  readonly file: `${'src' | 'console'}/${string}.ts`;
  /** The exact text to replace; it occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** Name of the invariant that must notice it. */
  readonly invariant: string;
  /** Its histories export traces (exporting.ts). */
  readonly exportsTraces?: true;
  /** Its histories have several runners (fleet.ts). */
  readonly losesRunners?: true;
}
