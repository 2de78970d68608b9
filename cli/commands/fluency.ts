import type { Command } from '../command.ts';

export const command: Command = {
  name: 'fluency',
  summary: 'Measures how well a model speaks the protocol, and recommends settings for its manifest.',
  usage:
    '--base-url <url> --model <name> [--provider <preset>] [--key-env <variable>] [--forms <list>] [--tasks <list>] \
[--repeat <n>] [--concurrency <n>] [--timeout <seconds>] [--max-tokens <n>] [--max-cost <dollars>] [--price <in,out>] \
[--grammar-parameter <field>] [--grammar-format gbnf|lark] [--out <file>] [--compare <file>]',
  help: `  --base-url <url>   the endpoint, without /chat/completions; default: LLM_BASE_URL, else that of the preset
  --model <name>     the model; default: LLM_MODEL
  --provider <name>  the preset (docs/models.md); default: LLM_PROVIDER, else by the URL
  --key-env <name>   the variable with the endpoint's key; default: LLM_API_KEY, which is sent only to LLM_BASE_URL
                     or the address of LLM_PROVIDER, if one of them is set
  --forms <list>     of full, compact, tool_calls, grammar; default: all
  --tasks <list>     names of tasks, or kinds: parallel, dependencies, references, repair, long_outputs; default: all
  --repeat <n>       how often each task runs in each form; default 1
  --concurrency <n>  runs at a time; default 4
  --timeout <seconds>  time limit of a run; default 180
  --max-tokens <n>   starts no run that may exceed this number of tokens, input and output together
  --max-cost <dollars>  the same for the cost
  --price <in,out>   dollars per million input and output tokens, if the model's price is not known
  --grammar-parameter <field>  the field of the request that takes a grammar, such as grammar or structured_outputs.grammar;
                     default: that of the preset llama.cpp or vllm
  --grammar-format <name>  gbnf (default) or lark
  --out <file>       also writes the report as JSON
  --compare <file>   an earlier report as JSON: prints the change of each form

Exit codes: 0 there is a recommendation, 1 no form is good enough, 3 the endpoint cannot be used, or fails during the runs.`,
  example: 'cortex fluency --base-url http://127.0.0.1:8080/v1 --model qwen2.5 --provider llama.cpp --out fluency.json',
  options: {
    'base-url': { type: 'string' },
    model: { type: 'string' },
    provider: { type: 'string' },
    'key-env': { type: 'string' },
    forms: { type: 'string' },
    tasks: { type: 'string' },
    repeat: { type: 'string' },
    concurrency: { type: 'string' },
    timeout: { type: 'string' },
    'max-tokens': { type: 'string' },
    'max-cost': { type: 'string' },
    price: { type: 'string' },
    'grammar-parameter': { type: 'string' },
    'grammar-format': { type: 'string' },
    out: { type: 'string' },
    compare: { type: 'string' },
  },
  positionals: [0, 0],
  run: async (call) => {
    // The engine takes a second to load: other commands and the help do not need it.
    const { runFluency } = await import('../fluency/run-command.ts');
    return await runFluency(call);
  },
};
