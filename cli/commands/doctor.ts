/** `cortex doctor`: what is wrong with the project and its systems, and the command that removes it (K5). */
import { EXIT } from '../command.ts';
import type { Command } from '../command.ts';
import { examine, reportOf, summaryOf } from '../doctor/doctor.ts';
import { machine } from '../doctor/machine.ts';
import { textOption } from '../option-values.ts';
import { rightsOf, TRUST_HELP, TRUST_OPTION } from '../project/code-tools.ts';
import { enterProject, PROJECT_ROOT } from '../project/folders.ts';
import { namedConnectionOf } from '../terminal/connection.ts';

export const command: Command = {
  name: 'doctor',
  summary: 'Finds mistakes in the settings of a project, and says what to do about each.',
  usage: '[--env <environment>] [--trust]',
  help: `  --env <environment>  checks an environment of wrangler.toml, such as containers\n${TRUST_HELP}`,
  example: 'cortex doctor --url https://my-agent.example.workers.dev --key "$CORTEX_API_KEY"',
  options: { env: { type: 'string' }, ...TRUST_OPTION },
  isRemote: true,
  positionals: [0, 0],
  async run(call) {
    const { json, environment, print } = call;
    const options = {
      root: PROJECT_ROOT,
      env: textOption(call, 'env') || null,
      system: namedConnectionOf(call),
      rights: rightsOf(call),
    };
    // The manifests are loaded relative to the project.
    enterProject();
    const findings = await examine(options, { ...machine, environment });
    const isWell = findings.every(({ state }) => state !== 'problem');
    if (json) print(JSON.stringify({ ok: isWell, findings }));
    else for (const line of [...reportOf(findings), '', summaryOf(findings)]) print(line);
    return isWell ? EXIT.ok : EXIT.failed;
  },
};
