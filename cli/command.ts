/**
 * What a command of `cortex` is. Each file in `commands/` exports one as `command`; `dispatch.ts` finds it by its name in
 * `command-table.ts`, and runs it.
 */
import type { ParseArgsConfig } from 'node:util';

/** Exit codes of all commands: stable, so that scripts can branch on them (K4). */
export const EXIT = {
  ok: 0,
  /** The work failed: a run, a check, a deployment. */
  failed: 1,
  /** Unknown command, option or argument. Nothing was done. */
  usage: 2,
  /** No system answers at the address, or it does not accept the key. */
  unreachable: 3,
  /** The run waits for an approval or for the result of a client tool. */
  waiting: 4,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export interface Command {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** Arguments and options after the name: `<agent> <message> [--session <id>]`. */
  readonly usage: string;
  /** A line for each option, as `--help` prints them; empty without options. */
  readonly help: string;
  /** A complete command line. */
  readonly example: string;
  /** Its own options; every command also has `--help` and `--json`. */
  readonly options?: NonNullable<ParseArgsConfig['options']>;
  /** Whether it talks to a system: it then also has `--url` and `--key` (default: CORTEX_URL, CORTEX_API_KEY). */
  readonly isRemote?: boolean;
  /** How many positional arguments it takes: the least and the most. */
  readonly positionals: readonly [least: number, most: number];
  /** @throws UsageError for arguments that the options cannot describe; any other Error is printed, with exit code 1 */
  run(call: CommandCall): Promise<ExitCode>;
}

export interface CommandCall {
  readonly values: Readonly<Record<string, string | boolean | (string | boolean)[] | undefined>>;
  readonly positionals: readonly string[];
  /** With `--json`: stdout gets JSON only: one document, or one line for each event. */
  readonly json: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Writes a line to stdout: the result. */
  print(line: string): void;
  /** Writes a line to stderr: progress, warnings, errors. */
  tell(line: string): void;
}

/** Printed with the usage of the command; exit code 2. */
export class UsageError extends Error {}
