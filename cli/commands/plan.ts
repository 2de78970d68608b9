import pc from 'picocolors';
import { readInput } from '../input-file.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { planText } from '../../src/dry-run/dry-run.ts';
import { EXIT } from '../command.ts';
import type { Command, CommandCall } from '../command.ts';
import { TRUST_HELP, TRUST_OPTION } from '../project/code-tools.ts';
import { bundledAgent, runningSystem } from '../terminal/running-system.ts';

export const command: Command = {
  name: 'plan',
  summary: 'Dry-runs protocol text: prints its graph, its estimated durations and its mistakes.',
  usage: '<file | -> [<agent>] [--trust]',
  help: `  <file>           protocol text; - reads standard input
  <agent>          names are looked up for it, in the running system, else in the project's manifests
${TRUST_HELP}`,
  example: 'cortex plan program.xml assistant',
  options: TRUST_OPTION,
  isRemote: true,
  positionals: [1, 2],
  run: async (call) => {
    const [file = '-', agent] = call.positionals;
    const plan = await planOf(readInput(file), agent, call);
    if (call.json) {
      call.print(JSON.stringify(plan));
      return EXIT.ok;
    }
    call.print(String(plan['report']));
    for (const kind of ['rejected', 'warnings'] as const) {
      const list = plan[kind] as { id?: string; code: string; message: string }[];
      if (list.length > 0) call.print(`\n${kind === 'rejected' ? pc.red('Rejected') : pc.yellow('Warnings')}`);
      for (const { id, code, message } of list)
        call.print(`  ${id === undefined ? '' : `${id}: `}${pc.bold(code)}  ${message}`);
    }
    return EXIT.ok;
  },
};

/** Without an agent, no names are looked up, so no system is asked. */
async function planOf(text: string, agent: string | undefined, call: CommandCall): Promise<JsonObject> {
  if (agent === undefined) return planText(text, null);
  const ask = await runningSystem(call);
  if (ask === null) return planText(text, bundledAgent(agent, call));
  const body = JSON.stringify({ protocol_text: text, agent });
  const headers = { 'content-type': 'application/json' };
  return (await (await ask('/plan', { method: 'POST', headers, body })).json()) as JsonObject;
}
