import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EXIT } from '../command.ts';
import type { Command } from '../command.ts';
import { enterProject, PROJECT_ROOT } from '../project/folders.ts';
import { projectFile, writeProjectFile } from '../project/real-path.ts';
import { measureDeployment, withoutDocker } from '../system/deploy-limits.ts';
import { wranglerOutput } from '../system/wrangler.ts';

export const command: Command = {
  name: 'deploy-check',
  summary: 'Builds what a deployment would upload, and checks its limits, environments and stages.',
  usage: '',
  help: '',
  example: 'cortex deploy-check',
  positionals: [0, 0],
  run: async ({ json, print, tell }) => {
    enterProject();
    const say = json ? tell : print;
    const measures = measureDeployment([], say);
    const environments = await checkEnvironments(say);
    await checkStage(say);
    if (json) print(JSON.stringify({ ...measures, environments }));
    if (measures.within_limits) return EXIT.ok;
    tell('The Worker exceeds its limits.');
    return EXIT.failed;
  },
};

/** @returns the names of all environments. @throws Error if one cannot be deployed */
async function checkEnvironments(say: (line: string) => void): Promise<readonly string[]> {
  const { environmentsOf } = await import('../system/stage-config.ts');
  const names = environmentsOf(projectFile(PROJECT_ROOT, 'wrangler.toml'));
  const folder = mkdtempSync(join(tmpdir(), 'cortex-deploy-'));
  try {
    for (const name of names) {
      wranglerOutput(['deploy', '--dry-run', '--env', name], withoutDocker(folder));
      say(`environment ${name}: complete`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return names;
}

/** A stage is generated next to wrangler.toml, because its paths are relative to its folder; it must have all bindings. */
async function checkStage(say: (line: string) => void): Promise<void> {
  const { stageConfig } = await import('../system/stage-config.ts');
  const file = `wrangler.deploy-check-${process.pid}.jsonc`;
  const options = { stage: 'staging', domain: 'staging.example.com', variables: ['RATE_LIMIT=60'] };
  const config = stageConfig(projectFile(PROJECT_ROOT, 'wrangler.toml'), options);
  writeProjectFile(PROJECT_ROOT, file, JSON.stringify(config));
  try {
    const bindings = (output: string): string[] => output.match(/env\.[A-Z_]+ \([^)]*\)/g) ?? [];
    const own = bindings(wranglerOutput(['deploy', '--dry-run']));
    const staged = bindings(wranglerOutput(['deploy', '--dry-run', '-c', file]));
    const missing = own.filter((binding) => !staged.includes(binding));
    if (own.length === 0 || missing.length > 0) throw new Error(`A stage lacks bindings: ${missing.join(', ')}`);
    say(`stage: complete, ${own.length} bindings`);
  } finally {
    rmSync(join(PROJECT_ROOT, file), { force: true });
  }
}
