import { writeFileSync } from 'node:fs';
import type { JsonObject } from '../../src/domain/json.ts';
import { messageOf } from '../../src/domain/errors.ts';
import type { Client } from '../../src/client/client.ts';
import { EXIT, UsageError } from '../command.ts';
import { readInput } from '../input-file.ts';
import type { Command, CommandCall } from '../command.ts';
import { readDataset } from '../eval/dataset.ts';
import type { Dataset } from '../eval/dataset.ts';
import { evaluate, reportLines } from '../eval/evaluate.ts';
import type { RunCase } from '../eval/evaluate.ts';
import { numberOption, textOption } from '../option-values.ts';
import { clientOf } from '../terminal/client.ts';
import { visible } from '../terminal/visible.ts';

const MOST_REPEATS = 100;
const MOST_AT_ONCE = 50;

export const command: Command = {
  name: 'eval',
  summary: 'Sends the messages of a dataset to an agent, and checks the answers.',
  usage: '<dataset.yaml> [--agent <name>] [--repeat <n>] [--concurrency <n>] [--out <file>]',
  help: `  <dataset.yaml>   cases with a message and what its run must be like
  --agent <name>   the agent; default: that of the dataset, else assistant
  --repeat <n>     how often each case runs; default 1
  --concurrency <n>  cases at a time; default 4
  --out <file>     also writes the report as JSON

Exit codes: 0 all cases passed, 1 not all.`,
  example: 'cortex eval evals/assistant.yaml --repeat 3',
  options: {
    agent: { type: 'string' },
    repeat: { type: 'string' },
    concurrency: { type: 'string' },
    out: { type: 'string' },
  },
  isRemote: true,
  positionals: [1, 1],
  run: async (call) => {
    const [file = ''] = call.positionals;
    const dataset = datasetOf(file);
    const report = await evaluate(dataset, runnerOf(clientOf(call)), {
      agent: textOption(call, 'agent') ?? dataset.agent ?? 'assistant',
      repeat: numberOption(call, 'repeat', { least: 1, most: MOST_REPEATS }) ?? 1,
      concurrency: numberOption(call, 'concurrency', { least: 1, most: MOST_AT_ONCE }) ?? 4,
      now: Date.now,
      done: ({ name, passed }) => call.tell(`${passed ? '✓' : '✗'} ${visible(name)}`),
    });
    const out = textOption(call, 'out');
    if (out !== undefined) writeFileSync(out, `${JSON.stringify(report, null, 2)}\n`);
    print(call, report);
    return report.failed === 0 ? EXIT.ok : EXIT.failed;
  },
};

function print(call: CommandCall, report: Parameters<typeof reportLines>[0]): void {
  if (call.json) call.print(JSON.stringify(report));
  else for (const line of reportLines(report)) call.print(visible(line));
}

/** @throws UsageError for a file that is not a dataset */
function datasetOf(file: string): Dataset {
  const text = readInput(file);
  try {
    return readDataset(text);
  } catch (fault) {
    throw new UsageError(`${file}: ${messageOf(fault)}`, { cause: fault });
  }
}

/** A run that waits for a person has no answer: it is cancelled, and its case fails. */
function runnerOf(client: Client): RunCase {
  return async ({ agent, message, variables }) => {
    const session = await client.createSession(agent, { variables });
    const run = await session.send(message);
    for await (const event of run.events()) {
      if (event.type === 'agent_waiting') await session.cancel();
    }
    return (await run.document()) as unknown as JsonObject;
  };
}
