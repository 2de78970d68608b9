/**
 * What a workspace costs at a sandbox level: the time from the start of a program in a warm sandbox to its first byte of
 * output, and to its end, when its files have been taken. Without jobs, so that only the sandbox differs.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';

import { BubblewrapSandbox } from '../../container-runner/sandbox/bubblewrap.ts';
import { DockerSandbox } from '../../container-runner/sandbox/docker.ts';
import { type Launch, type Sandbox, STANDARD } from '../../container-runner/sandbox/sandbox.ts';
import { WasmSandbox } from '../../container-runner/sandbox/wasm.ts';
import { StateFolder } from '../../container-runner/state.ts';
import type { GivenFile, LeftEntry, WorkspaceReceiver } from '../../container-runner/workspace/workspace.ts';
import { percentile, table } from '../report.ts';

type Level = 'docker' | 'bubblewrap' | 'wasm';
const PROGRAMS = {
  python: { interpreter: 'python3', source: 'print("first byte")' },
  shell: { interpreter: 'shell', source: 'echo first byte' },
} as const;
/** Waiting sandboxes load their interpreter meanwhile. */
const REST_MS = 600;
const WARM_UP = 2;
const WORKSPACES = ['none', 'empty', '100 files of 1 KB', '1 file of 10 MB'] as const;
type Workspace = (typeof WORKSPACES)[number];

interface Sample {
  readonly firstMs: number;
  readonly endMs: number;
}

export interface WorkspaceRow {
  readonly level: Level;
  readonly program: string;
  readonly samples: Readonly<Record<Workspace, readonly Sample[]>>;
}

/** Measures one level, the workspaces in turn. @returns no rows if the level is unavailable */
export async function measureWorkspaces(level: Level, count: number): Promise<WorkspaceRow[]> {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-bench-workspace-'));
  const sandbox = sandboxOf(level, folder);
  try {
    const { python3, shell } = await sandbox.probe();
    if (!python3.ok || !shell.ok) return [];
    const rows: WorkspaceRow[] = [];
    for (const [program, launch] of Object.entries(PROGRAMS)) {
      sandbox.prepare?.(launch.interpreter);
      const samples: Record<Workspace, Sample[]> = {
        none: [],
        empty: [],
        '100 files of 1 KB': [],
        '1 file of 10 MB': [],
      };
      for (let n = -WARM_UP; n < count; n += 1) {
        for (const workspace of WORKSPACES) {
          const sample = await run(sandbox, launch, filesOf(workspace, folder));
          if (n >= 0) samples[workspace].push(sample);
        }
      }
      rows.push({ level, program, samples });
    }
    return rows;
  } finally {
    await sandbox.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The tables of all levels. */
export function workspaceTables(rows: readonly WorkspaceRow[]): string {
  const figures = (which: keyof Sample): string =>
    table(
      ['sandbox', 'program', ...WORKSPACES],
      rows.map(({ level, program, samples }) => [
        level,
        program,
        ...WORKSPACES.map((workspace) => {
          const values = samples[workspace].map((sample) => sample[which]);
          return `${percentile(values, 0.5).toFixed(1)} ms / ${percentile(values, 0.95).toFixed(1)} ms`;
        }),
      ]),
    );
  return [
    'Pooled programs with a workspace, p50 / p95, measured at the sandbox, without HTTP and the ledger. *none* is a program',
    'without a workspace. Until the first byte of output:',
    '',
    figures('firstMs'),
    '',
    'Until the end, when all processes are gone and all files have been taken:',
    '',
    figures('endMs'),
  ].join('\n');
}

async function run(
  sandbox: Sandbox,
  program: Pick<Launch, 'interpreter' | 'source'>,
  files: readonly GivenFile[] | null,
): Promise<Sample> {
  while (sandbox.warm?.filling === true) await new Promise((resolve) => setTimeout(resolve, 20));
  await new Promise((resolve) => setTimeout(resolve, REST_MS));
  const sink = new Sink();
  const startedAt = performance.now();
  const process = await sandbox.start({
    ...STANDARD,
    ...program,
    entry: 'code',
    inputsJson: '{}',
    args: [],
    stdin: '',
    env: {},
    ...(files === null ? {} : { workspace: { files, receiver: sink } }),
  });
  let firstMs = Number.NaN;
  process.stdout.on('data', () => {
    if (Number.isNaN(firstMs)) firstMs = performance.now() - startedAt;
  });
  process.stderr.resume();
  const { exitCode } = await process.ended;
  const expected = files?.reduce((sum, { size }) => sum + size, 0) ?? 0;
  if (exitCode !== 0 || sink.bytes !== expected || sink.isComplete !== (files !== null)) {
    throw new Error(`the program ended with ${exitCode ?? 'a signal'}, and ${sink.bytes} bytes were taken`);
  }
  return { firstMs, endMs: performance.now() - startedAt };
}

/** Counts the bytes. */
class Sink implements WorkspaceReceiver {
  bytes = 0;
  isComplete = false;

  async entry(_: LeftEntry, bytes: Readable | null): Promise<boolean> {
    for await (const chunk of bytes ?? []) this.bytes += (chunk as Buffer).length;
    return true;
  }

  complete(): void {
    this.isComplete = true;
  }
}

function filesOf(workspace: Workspace, folder: string): GivenFile[] | null {
  const common = { executable: false, modifiedAt: 0, source: join(folder, 'source') };
  switch (workspace) {
    case 'none':
      return null;
    case 'empty':
      return [];
    case '100 files of 1 KB':
      writeFileSync(common.source, randomBytes(1_000));
      return Array.from({ length: 100 }, (_, n) => ({ ...common, path: `folder${n % 10}/file${n}`, size: 1_000 }));
    case '1 file of 10 MB':
      writeFileSync(common.source, randomBytes(10_000_000));
      return [{ ...common, path: 'file', size: 10_000_000 }];
  }
}

function sandboxOf(level: Level, folder: string): Sandbox {
  const ignore = (): void => undefined;
  const state = new StateFolder(folder, { now: Date.now, onSetAside: ignore });
  switch (level) {
    case 'docker':
      return new DockerSandbox({
        socket: process.env['RUNNER_DOCKER'] ?? null,
        state,
        warm: 2,
        images: {},
        allowed: ['*'],
        pipIndex: null,
        log: ignore,
      });
    case 'bubblewrap':
      return new BubblewrapSandbox(2);
    case 'wasm':
      return new WasmSandbox({ state, warm: 2, warn: ignore });
  }
}
