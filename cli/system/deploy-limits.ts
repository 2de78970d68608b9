/** Builds what a deployment would upload, without a login, and measures it. */
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { IS_OWN_PROJECT } from '../project/folders.ts';
import { wranglerOutput } from './wrangler.ts';

/**
 * Bytes of the gzipped Worker, and milliseconds of CPU at its start. Our own code may have 1 MiB and 200 ms: a fifth of
 * Cloudflare's limit of one second, and three to five times the usual value, to allow for a busy machine. A project, whose
 * code comes on top, has the limits of Cloudflare's free plan.
 */
function most(): { readonly gzipBytes: number; readonly startupMs: number } {
  return IS_OWN_PROJECT ? { gzipBytes: 1_048_576, startupMs: 200 } : { gzipBytes: 3 * 1_048_576, startupMs: 1_000 };
}
const STARTUP_ATTEMPTS = 5;

export interface DeployMeasures {
  readonly gzip_bytes: number;
  readonly gzip_bytes_limit: number;
  readonly startup_ms: number;
  readonly startup_ms_limit: number;
  readonly within_limits: boolean;
}

/**
 * @param args which deployment: `--env`, `--config` and other options of `wrangler deploy`
 * @param print receives a line for each measure
 * @throws Error with wrangler's output if the Worker cannot be built
 */
export function measureDeployment(args: readonly string[], print: (line: string) => void): DeployMeasures {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-deploy-'));
  const limit = most();
  try {
    wranglerOutput(['deploy', ...args, '--dry-run', '--outdir', folder], withoutDocker(folder));
    const bundle = readdirSync(folder).filter((name) => name.endsWith('.js'));
    const gzipBytes = bundle.reduce((sum, name) => sum + gzipSync(readFileSync(join(folder, name))).length, 0);
    print(`bundle: ${(gzipBytes / 1_024).toFixed(0)} KiB gzipped (limit ${limit.gzipBytes / 1_024} KiB)`);
    const startupMs = measureStartup(args, join(folder, 'startup.cpuprofile'), limit.startupMs);
    print(`start-up: ${startupMs.toFixed(1)} ms of CPU (limit ${limit.startupMs} ms)`);
    return {
      gzip_bytes: gzipBytes,
      gzip_bytes_limit: limit.gzipBytes,
      startup_ms: startupMs,
      startup_ms_limit: limit.startupMs,
      within_limits: gzipBytes <= limit.gzipBytes && startupMs <= limit.startupMs,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Lets wrangler find a fake Docker, which reads the build file to its end and builds nothing: a dry run needs everything
 * except the image.
 *
 * @param folder a temporary one, for the program
 */
export function withoutDocker(folder: string): Readonly<Record<string, string>> {
  const file = join(folder, 'docker');
  writeFileSync(file, '#!/bin/sh\nif [ "$1" = build ]; then cat > /dev/null; fi\n', { mode: 0o755 });
  return { WRANGLER_DOCKER_BIN: file };
}

/** Other load only increases a measurement, so the minimum of several attempts counts. */
function measureStartup(args: readonly string[], profileFile: string, enough: number): number {
  const flags = args.length === 0 ? [] : [`--args=${args.join(' ')}`];
  let least = Infinity;
  for (let attempt = 1; attempt <= STARTUP_ATTEMPTS && least > enough; attempt += 1) {
    wranglerOutput(['check', 'startup', ...flags, '--outfile', profileFile]);
    least = Math.min(least, busyMs(JSON.parse(readFileSync(profileFile, 'utf8')) as StartupProfile));
  }
  return least;
}

interface StartupProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: { readonly functionName: string } }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** CPU time of the start-up profile without idle time, in milliseconds. */
function busyMs(profile: StartupProfile): number {
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
