/**
 * `npm run deploy:check`: builds what `npm run deploy` would upload, without a login, and checks its limits: 1 MiB
 * gzipped, 200 ms of start-up.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { stageConfig } from '../system/stage-config.ts';
import { PROJECT_ROOT } from '../project/folders.ts';

const MAX_GZIP_BYTES = 1_048_576;
/** A fifth of Cloudflare's limit of one second, and three to five times the usual value, to allow for a busy machine. */
const MAX_STARTUP_MS = 200;
const STARTUP_ATTEMPTS = 5;

function wrangler(args: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  const result = spawnSync('wrangler', args, {
    cwd: PROJECT_ROOT,
    encoding: 'utf8',
    env: { ...process.env, ...env, WRANGLER_SEND_METRICS: 'false', FORCE_COLOR: '0', CI: 'true' },
  });
  if (result.status !== 0) {
    console.error(`wrangler ${args.join(' ')} failed:\n${result.stdout}${result.stderr}`);
    process.exit(1);
  }
  return `${result.stdout}${result.stderr}`;
}

/** CPU time of the start-up profile without idle time, in milliseconds. */
function busyMs(profile: {
  nodes: { id: number; callFrame: { functionName: string } }[];
  samples: number[];
  timeDeltas: number[];
}): number {
  const idle = new Set(
    profile.nodes
      .filter(({ callFrame }) => /^\((idle|root|program)\)$/.test(callFrame.functionName))
      .map(({ id }) => id),
  );
  let microseconds = 0;
  for (const [index, node] of profile.samples.entries()) {
    if (!idle.has(node)) microseconds += profile.timeDeltas[index] ?? 0;
  }
  return microseconds / 1_000;
}

/** A fake Docker: reads the build file to its end and builds nothing. */
function standIn(directory: string): string {
  const file = join(directory, 'docker');
  writeFileSync(file, '#!/bin/sh\nif [ "$1" = build ]; then cat > /dev/null; fi\n', { mode: 0o755 });
  return file;
}

/** A stage is generated next to wrangler.toml, because its paths are relative to its folder; it must have all bindings. */
function checkStage(): void {
  const file = `wrangler.deploy-check-${process.pid}.jsonc`;
  const options = { stage: 'staging', domain: 'staging.example.com', variables: ['RATE_LIMIT=60'] };
  writeFileSync(join(PROJECT_ROOT, file), JSON.stringify(stageConfig(join(PROJECT_ROOT, 'wrangler.toml'), options)));
  try {
    const bindings = (output: string): string[] => output.match(/env\.[A-Z_]+ \([^)]*\)/g) ?? [];
    const own = bindings(wrangler(['deploy', '--dry-run']));
    const staged = bindings(wrangler(['deploy', '--dry-run', '-c', file]));
    const missing = own.filter((binding) => !staged.includes(binding));
    if (own.length === 0 || missing.length > 0) {
      console.error(`A stage lacks bindings: ${missing.join(', ')}`);
      process.exit(1);
    }
    console.log(`stage: complete, ${own.length} bindings`);
  } finally {
    rmSync(join(PROJECT_ROOT, file), { force: true });
  }
}

/** Other load only increases a measurement, so the minimum of several attempts counts. */
function measureStartup(profileFile: string): number {
  let least = Infinity;
  for (let attempt = 1; attempt <= STARTUP_ATTEMPTS && least > MAX_STARTUP_MS; attempt += 1) {
    wrangler(['check', 'startup', '--outfile', profileFile]);
    least = Math.min(least, busyMs(JSON.parse(readFileSync(profileFile, 'utf8'))));
  }
  return least;
}

const folder = mkdtempSync(join(tmpdir(), 'cortex-deploy-'));
try {
  wrangler(['deploy', '--dry-run', '--outdir', folder]);
  const bundle = readdirSync(folder).filter((name) => name.endsWith('.js'));
  const gzipBytes = bundle.reduce((sum, name) => sum + gzipSync(readFileSync(join(folder, name))).length, 0);
  console.log(`bundle: ${(gzipBytes / 1_024).toFixed(0)} KiB gzipped (limit ${MAX_GZIP_BYTES / 1_024} KiB)`);

  // everything except the image, which a deployment builds with Docker
  wrangler(['deploy', '--dry-run', '--env', 'containers'], { WRANGLER_DOCKER_BIN: standIn(folder) });
  console.log('environment containers: complete');
  wrangler(['deploy', '--dry-run', '--env', 'workers-ai']);
  console.log('environment workers-ai: complete');
  checkStage();
  const startupMs = measureStartup(join(folder, 'startup.cpuprofile'));
  console.log(`start-up: ${startupMs.toFixed(1)} ms of CPU (limit ${MAX_STARTUP_MS} ms)`);

  if (gzipBytes > MAX_GZIP_BYTES || startupMs > MAX_STARTUP_MS) {
    console.error('The Worker exceeds its limits.');
    process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
