/**
 * Runs one command line of `cortex`: finds the command, parses its options, and turns what it throws into a message and an
 * exit code.
 *
 * Invariants:
 *  1. A command runs only if all of its options and the number of its arguments are right.
 *  2. With `--json`, stdout gets JSON only, also for an error: `{"error": {"code", "message"}}`.
 *  3. No message has a stack trace.
 */
import { parseArgs } from 'node:util';
import type { ParseArgsConfig } from 'node:util';
import { nearestNames } from '../src/domain/nearest.ts';
import { messageOf } from '../src/domain/errors.ts';
import { VERSION } from '../src/domain/version.ts';
import { EXIT, UsageError } from './command.ts';
import type { Command, CommandCall, ExitCode } from './command.ts';
import { COMMANDS, GROUPS } from './command-table.ts';
import { failureOf } from './failure.ts';
import { findProject } from './project/folders.ts';
import { DEFAULT_PORTS } from './system/ports.ts';
import { harmless } from './terminal/visible.ts';

type Options = NonNullable<ParseArgsConfig['options']>;

export interface Output {
  out(text: string): void;
  err(text: string): void;
}

const COMMON: Options = { help: { type: 'boolean', short: 'h' }, json: { type: 'boolean' } };
const REMOTE: Options = { url: { type: 'string' }, key: { type: 'string' } };
const REMOTE_HELP = `  --url <address>  the system; default: CORTEX_URL, else http://127.0.0.1:${DEFAULT_PORTS.PORT} (the port: PORT)
  --key <key>      its API key; default: CORTEX_API_KEY, which other users of this machine cannot see`;
const COMMON_HELP = `  --json           prints JSON only
  -h, --help       prints this text`;

/** Two lines of a terminal. */
const HINT_COLUMNS = 160;

/** @param argv without the program */
export async function dispatch(
  argv: readonly string[],
  environment: CommandCall['environment'],
  output: Output,
): Promise<ExitCode> {
  findProject();
  const [first = '--help', ...others] = argv;
  const [name = '--help', args] = first === 'help' ? [others[0], ['--help']] : [first, others];
  const end = args.indexOf('--');
  const isJson = (end === -1 ? args : args.slice(0, end)).includes('--json');
  let command: Command | null = null;
  let call: CommandCall | null = null;
  try {
    if (name === '--help' || name === '-h') {
      output.out(await listing());
      return EXIT.ok;
    }
    if (name === '--version' || name === '-v') {
      output.out(`${VERSION}\n`);
      return EXIT.ok;
    }
    command = await load(name);
    const { values, positionals } = parse(command, args);
    if (values['help'] === true) {
      output.out(helpOf(command));
      return EXIT.ok;
    }
    call = {
      values,
      positionals,
      json: values['json'] === true,
      environment,
      print: (line) => output.out(`${line}\n`),
      tell: (line) => output.err(`${line}\n`),
    };
    return await command.run(call);
  } catch (fault) {
    const { code, message, text, exit } = failureOf(fault, call);
    if (isJson) output.out(`${JSON.stringify({ error: { code, message } })}\n`);
    // It may quote a file of someone else.
    else output.err(`${harmless(text)}\n${exit === EXIT.usage && command !== null ? `${usageHint(command)}\n` : ''}`);
    return exit;
  }
}

/** @throws UsageError with the nearest names */
async function load(name: string): Promise<Command> {
  const found = COMMANDS.get(name);
  if (found !== undefined) return (await found()).command;
  const what = name.startsWith('-') ? 'option' : 'command';
  const near = nearestNames(name, [...COMMANDS.keys()]);
  const hint = near.length === 0 ? '' : `did you mean ${near.join(' or ')}? `;
  throw new UsageError(`unknown ${what} "${name.slice(0, 100)}" (${hint}cortex --help lists the commands)`);
}

/** All options of a command. */
function optionsOf({ options = {}, isRemote = false }: Command): Options {
  return { ...COMMON, ...(isRemote ? REMOTE : {}), ...options };
}

/** @throws UsageError for unknown options, and for too few or too many arguments unless help is asked for */
export function parse(command: Command, args: readonly string[]): Pick<CommandCall, 'values' | 'positionals'> {
  const { values, positionals } = parsed(optionsOf(command), args);
  if (values['help'] !== true) checkCount(command, positionals);
  return { values, positionals };
}

function parsed(options: Options, args: readonly string[]): Pick<CommandCall, 'values' | 'positionals'> {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (fault) {
    // The first sentence; Node adds how to write an argument that begins with "-".
    const message =
      messageOf(fault)
        .split('\n')[0]
        ?.replace(/\. To specify .*$/, '') ?? '';
    const unknown = /^Unknown option '--?([^']*)'/.exec(message)?.[1];
    const near = unknown === undefined ? [] : nearestNames(unknown, Object.keys(options));
    const hint = near.length === 0 ? '' : ` (did you mean ${near.map((one) => `--${one}`).join(' or ')}?)`;
    throw new UsageError(`${message}${hint}`, { cause: fault });
  }
}

/** @throws UsageError if a command has too few or too many arguments */
function checkCount({ name, positionals: [least, most] }: Command, { length }: readonly string[]): void {
  if (length >= least && length <= most) return;
  const [count, word] = length < least ? [least, 'at least'] : [most, 'at most'];
  const wanted = count === 0 ? 'no arguments' : `${word} ${count} argument${count === 1 ? '' : 's'}`;
  throw new UsageError(`cortex ${name} takes ${wanted}, got ${length}`);
}

/** After an error: the usage, in short if the message would be lost above it. */
function usageHint(command: Command): string {
  const usage = usageOf(command);
  return usage.length <= HINT_COLUMNS
    ? usage
    : `usage: cortex ${command.name} …; cortex ${command.name} --help lists the options`;
}

function usageOf({ name, usage, isRemote = false }: Command): string {
  const remote = isRemote ? ['[--url <address>]', '[--key <key>]'] : [];
  return `usage: ${['cortex', name, usage, ...remote, '[--json]'].filter((part) => part !== '').join(' ')}`;
}

function helpOf(command: Command): string {
  const { summary, help, example, isRemote = false } = command;
  const options = [help, isRemote ? REMOTE_HELP : '', COMMON_HELP].filter((part) => part !== '').join('\n');
  return `${usageOf(command)}\n\n${summary}\n\n${options}\n\nExample:\n  ${example}\n`;
}

async function listing(): Promise<string> {
  const width = Math.max(...[...COMMANDS.keys()].map(({ length }) => length));
  const groups = await Promise.all(
    GROUPS.map(async ({ title, commands }) => {
      const loaded = await Promise.all(Object.values(commands).map((load) => load()));
      const lines = loaded.map(({ command: { name, summary } }) => `  ${name.padEnd(width)}  ${summary}`);
      return `${title}\n${lines.join('\n')}\n`;
    }),
  );
  return `cortex ${VERSION}: agents on Cloudflare Workers

usage: cortex <command> [arguments] [options]

${groups.join('\n')}
cortex <command> --help prints the options and an example. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no system or
wrong key, 4 the run waits for an approval or a client tool.
`;
}
