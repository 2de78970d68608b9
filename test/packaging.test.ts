/** The files for installing the runner match the runner (R1, H8). */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

import { expect, test } from 'vitest';
import { parse } from 'yaml';

import { limits } from '../container-runner/limits.ts';
import { withSnapshot } from '../container-runner/test/support/python-snapshot.ts';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';

const read = (name: string): string => readFileSync(join(PACKAGE_ROOT, 'container-runner', name), 'utf8');
/** Every variable that the runner reads. */
const KNOWN = new Set(
  ['config.ts', 'operator-limits.ts', 'telemetry/otlp-settings.ts'].flatMap(
    (file) => read(file).match(/\b(?:RUNNER|CORTEX|OTEL)_[A-Z_]+\b/g) ?? [],
  ),
);

interface Compose {
  readonly services: Readonly<
    Record<
      string,
      {
        readonly environment: Record<string, string>;
        readonly ports?: readonly string[];
        readonly stop_grace_period?: string;
      }
    >
  >;
}

test('[R1] the files that the Dockerfile copies are sufficient to run', async () => {
  const copies = [...read('Dockerfile').matchAll(/^COPY (.+) (\S+)$/gm)].flatMap(([, sources = '']) =>
    sources.split(' '),
  );
  expect(copies).toContain('container-runner');
  const folder = mkdtempSync(join(tmpdir(), 'cortex-image-'));
  try {
    for (const source of copies) {
      mkdirSync(dirname(join(folder, source)), { recursive: true });
      const filter = (file: string): boolean => !/node_modules|\/test(\/|$)/.test(file.slice(PACKAGE_ROOT.length));
      cpSync(join(PACKAGE_ROOT, source), join(folder, source), { recursive: true, filter });
    }
    symlinkSync(join(PACKAGE_ROOT, 'node_modules'), join(folder, 'node_modules'));
    symlinkSync(join(PACKAGE_ROOT, 'container-runner/node_modules'), join(folder, 'container-runner/node_modules'));
    const entry = /ENTRYPOINT \[.*"node", "([^"]+)"\]/.exec(read('Dockerfile'))?.[1] ?? '';
    const child = spawn(process.execPath, [entry], {
      cwd: folder,
      env: {
        RUNNER_SECRET: 'x'.repeat(40),
        RUNNER_PORT: '0',
        RUNNER_SANDBOX: 'wasm',
        CORTEX_STATE_DIR: withSnapshot(join(folder, 'state')),
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
    expect(JSON.parse(line)).toMatchObject({ ready: true, sandbox: { python3: 'wasm' } });
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('[H8] the compose file and the unit set only variables that the runner reads, and publish no port', () => {
  const { runner, tunnel } = (parse(read('compose.yaml')) as Compose).services;
  const unit = [...read('cortex-runner.service').matchAll(/^Environment=(.*)$/gm)].flatMap(([, pairs = '']) =>
    pairs.split(' ').map((pair) => pair.split('=')[0] ?? ''),
  );
  const image = [...read('Dockerfile').matchAll(/\b((?:RUNNER|CORTEX)_[A-Z_]+)=/g)].map(([, name = '']) => name);
  const set = [...Object.keys(runner?.environment ?? {}), ...unit.filter((name) => name !== 'NODE_ENV'), ...image];
  expect(unit.length).toBeGreaterThan(1);
  expect(set.filter((name) => !KNOWN.has(name))).toEqual([]);
  expect(runner?.ports?.every((port) => port.startsWith('127.0.0.1:'))).toBe(true);
  expect(tunnel?.ports).toBeUndefined();
});

test('[R8] the stop timeout of the service manager exceeds the drain time of the runner', () => {
  const compose = (parse(read('compose.yaml')) as Compose).services['runner']?.stop_grace_period;
  const unit = /^TimeoutStopSec=(\d+)$/m.exec(read('cortex-runner.service'))?.[1];
  for (const seconds of [compose?.replace('s', ''), unit]) {
    expect(Number(seconds)).toBeGreaterThan(limits.drainSeconds + limits.killGraceMs / 1_000);
  }
});

test('[H8] the lock file contains every optional package that it names, so that npm ci accepts it', () => {
  interface Locked {
    readonly optionalDependencies?: Readonly<Record<string, string>>;
  }
  const { packages } = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Readonly<Record<string, Locked>>;
  };
  expect(Object.values(packages).filter(({ optionalDependencies }) => optionalDependencies).length).toBeGreaterThan(5);
  const missing = Object.entries(packages).flatMap(([place, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter(
      (name) => !(`node_modules/${name}` in packages) && !(`${place}/node_modules/${name}` in packages),
    ),
  );
  expect(missing).toEqual([]);
});
