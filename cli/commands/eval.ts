import { UsageError } from '../command.ts';
import type { Command } from '../command.ts';
import { recordCase } from '../eval/record.ts';
import { AT_ONCE, runEvaluation } from '../eval/run-evaluation.ts';
import { textOption } from '../option-values.ts';

export const command: Command = {
  name: 'eval',
  summary: 'Sends the messages of a dataset to an agent, and checks the answers.',
  usage:
    '<dataset.yaml | record <session | file.jsonl>> [--agent <name>] [--repeat <n>] [--concurrency <n>] [--out <file>] ' +
    '[--compare <report.json>] [--fail-on <word>] [--model <name>] [--base-url <address>] [--script <file>] ' +
    '[--judge-agent <name>] [--judge-model <name>] [--judge-base-url <address>] [--run <id>]',
  help: `  <dataset.yaml>   cases with a message and what its run must be like
  --agent <name>   the agent; default: that of the dataset, else assistant
  --repeat <n>     how often each case runs; default 1
  --concurrency <n>  runs at a time; default ${AT_ONCE}
  --out <file>     also writes the report as JSON
  --compare <report.json>  an earlier report: which cases are better or worse
  --fail-on <word>  failure: a run failed (default); worse: a case passes less often than before;
                   regression: the pass rate is lower than before, beyond chance

Another model, in a system of this machine for this evaluation:
  --model <name>   the model; its endpoint and key are those of the project's settings, or:
  --base-url <address>  any OpenAI-compatible endpoint; its key: EVAL_API_KEY in the environment
  --script <file>  the model is a script (docs/models.md), without a key or a network

The judge of the scorer "judge":
  --judge-agent <name>  an agent of the system; default: eval_judge
  --judge-model <name>, --judge-base-url <address>  a model at an OpenAI-compatible endpoint; its
                   key: JUDGE_API_KEY in the environment

cortex eval record makes a case of a recorded run, as a draft for you to edit:
  <session | file.jsonl>  a session, or a file of cortex export or cortex sessions export
  --run <id>       default: the last run
  --out <file>     the dataset that the case is added to; default: it is printed

Exit codes: 0 passed; 1 failed, worse, a regression, or runs without a result: stderr says which.`,
  example: 'cortex eval evals/assistant.yaml --repeat 3',
  options: {
    agent: { type: 'string' },
    repeat: { type: 'string' },
    concurrency: { type: 'string' },
    out: { type: 'string' },
    compare: { type: 'string' },
    'fail-on': { type: 'string' },
    model: { type: 'string' },
    'base-url': { type: 'string' },
    script: { type: 'string' },
    'judge-agent': { type: 'string' },
    'judge-model': { type: 'string' },
    'judge-base-url': { type: 'string' },
    run: { type: 'string' },
  },
  isRemote: true,
  positionals: [1, 2],
  run: async (call) => {
    const [first = '', source] = call.positionals;
    if (first === 'record') {
      if (source !== undefined) return await recordCase(call, source);
      throw new UsageError('eval record takes the id of a session, or a file of its export');
    }
    if (source !== undefined) throw new UsageError('eval takes one dataset, or "record" and a session');
    if (textOption(call, 'run') !== undefined) throw new UsageError('--run is an option of eval record');
    return await runEvaluation(call, first);
  },
};
