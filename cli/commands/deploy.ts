import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { EXIT, UsageError } from '../command.ts';
import type { Command, CommandCall } from '../command.ts';
import { isSet, textOption, textOptions } from '../option-values.ts';
import { deployButton } from '../project/deploy-button.ts';
import { buildProject } from '../project/build.ts';
import { PROJECT_ROOT } from '../project/folders.ts';
import { measureDeployment } from '../system/deploy-limits.ts';
import { requireReadableDeployment } from '../system/earlier-state.ts';
import { wranglerProgram } from '../system/wrangler.ts';

/** Arguments that are passed on to wrangler. */
const MOST_PASSED = 100;

export const command: Command = {
  name: 'deploy',
  summary: 'Builds the project and deploys it to Cloudflare.',
  usage:
    '[--env <name>] [--config <file>] [--var NAME:value]… [--dry-run] [--button] [-- <arguments of wrangler deploy>]',
  help: `  --env <name>     an environment of wrangler.toml
  -c, --config <file>  another configuration, such as one of cortex stage
  --var NAME:value a setting of this deployment
  --dry-run        deploys nothing, needs no login, and checks the size and the start-up time of the Worker
  --button         deploys nothing, and prints the Markdown of a deploy button for the project's git remote`,
  example: 'cortex deploy --env containers --dry-run',
  options: {
    env: { type: 'string', short: 'e' },
    config: { type: 'string', short: 'c' },
    var: { type: 'string', multiple: true },
    'dry-run': { type: 'boolean' },
    button: { type: 'boolean' },
  },
  positionals: [0, MOST_PASSED],
  run: async (call) => {
    if (isSet(call, 'button')) {
      const markdown = deployButton(remoteOf(PROJECT_ROOT));
      call.print(call.json ? JSON.stringify({ markdown }) : markdown);
      return EXIT.ok;
    }
    const args = argumentsOf(call);
    const say = call.json ? call.tell : call.print;
    if (!isSet(call, 'dry-run')) requireReadableDeployment(nameOf(args));
    const built = await buildProject([], say);
    if (built !== EXIT.ok) return built;
    if (isSet(call, 'dry-run')) {
      const measures = measureDeployment(args, say);
      if (call.json) call.print(JSON.stringify({ deployed: false, ...measures }));
      if (measures.within_limits) return EXIT.ok;
      call.tell('The Worker exceeds its limits.');
      return EXIT.failed;
    }
    const { status } = spawnSync(process.execPath, [wranglerProgram(), 'deploy', ...args], {
      cwd: PROJECT_ROOT,
      // wrangler's own text is no JSON.
      stdio: ['inherit', call.json ? 2 : 1, 2],
    });
    if (call.json) call.print(JSON.stringify({ deployed: status === 0 }));
    return status === 0 ? EXIT.ok : EXIT.failed;
  },
};

/** The address of the git remote `origin`; empty if there is none. */
function remoteOf(folder: string): string {
  return spawnSync('git', ['remote', 'get-url', 'origin'], { cwd: folder, encoding: 'utf8' }).stdout ?? '';
}

/** The arguments that decide which Worker is deployed. */
function nameOf(args: readonly string[]): string[] {
  return args.flatMap((one, at) => {
    if (/^(?:--(?:env|config|name)|-[ec])=/.test(one)) return [one];
    return /^(?:--env|-e|--config|-c|--name)$/.test(one) ? args.slice(at, at + 2) : [];
  });
}

function argumentsOf(call: CommandCall): string[] {
  const first = call.positionals[0];
  // What stands before `--` is most likely a mistake: wrangler would take it for the Worker's file.
  if (first !== undefined && !first.startsWith('-')) {
    throw new UsageError(`"${first}" is no option; arguments for wrangler begin with an option, after --`);
  }
  const [env, config] = [textOption(call, 'env'), textOption(call, 'config')];
  return [
    ...(env === undefined ? [] : ['--env', env]),
    ...(config === undefined ? [] : ['--config', resolve(config)]),
    ...textOptions(call, 'var').flatMap((one) => ['--var', one]),
    ...call.positionals,
  ];
}
