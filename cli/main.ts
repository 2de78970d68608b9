#!/usr/bin/env node
/** The program `cortex`: finds a command by its name and runs it (docs/cli.md). */
import { dispatch } from './dispatch.ts';
import { EXIT } from './command.ts';

/** Node 22 would announce at each start that its SQLite is experimental. */
process.removeAllListeners('warning').on('warning', ({ name, message }) => {
  if (name !== 'ExperimentalWarning') process.stderr.write(`${name}: ${message}\n`);
});

/** The reader of the output has closed it (`cortex tail … | head`): what is left has no use. `cortex dev` lives on. */
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => process.exit(EXIT.ok));

const code = await dispatch(process.argv.slice(2), process.env, {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
});
// All output is written before the process ends, also to a pipe.
process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
