import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { basename } from 'node:path';
import { cloudflareTest } from '@cloudflare/vitest-plugin';
import { defineConfig } from 'vitest/config';
import { weatherService } from './test/support/weather-service.ts';
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';

/** Time-outs only end a test that hangs: a busy machine may take long. */
const patient = { testTimeout: 300_000, hookTimeout: 300_000, expect: { poll: { timeout: 60_000, interval: 20 } } };

/** Tests that start processes, or change the process's clock or limits: each file gets its own process. */
const PROCESSES = [
  'container-runner/test/{main,prewarm,startup,state}.test.ts',
  'container-runner/test/images/images.test.ts',
  'container-runner/test/jobs/crash.test.ts',
  'container-runner/test/relics/relics-docker.test.ts',
  'container-runner/test/sandbox/**/*.test.ts',
  'container-runner/test/workspace/memory.test.ts',
  'test/bench/load.test.ts',
  'test/cli/{arguments,code-tools,connection,links,migrate,orphans,project-commands,tool-rights,wrangler}.test.ts',
  'test/mcp/referee/*.test.ts',
  'test/packaging.test.ts',
  'test/package/*.test.ts',
  'test/workspace/*.test.ts',
  'test/simulation/**/*.test.ts',
];

/**
 * Files that take long begin first, so that none of them is left for the end: those that mostly wait, those of the whole
 * system, and the rest.
 */
const FIRST = ['package', 'frozen-work', 'kills', 'relics-docker', 'start', 'runner', 'abuse-wasm'];
const ORDER = ['e2e', 'processes', 'workerd', 'node'];

/** What the package's entry points are in this repository. */
const sourceOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ project, moduleId }: TestSpecification): number => {
      const first = FIRST.indexOf(basename(moduleId, '.test.ts'));
      return first < 0 ? FIRST.length + ORDER.indexOf(project.name) : first;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongFirst },
    // An expected text that was not committed fails on every machine, as it does with CI=true; `--update` writes it.
    update: 'none',
    // The tests of the whole system wait a lot: with two more files than cores, a quarter of the processor's time is unused.
    maxWorkers: Math.max(2, availableParallelism()) + 3,
    projects: [
      {
        test: {
          ...patient,
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          isolate: false,
          globalSetup: ['./container-runner/test/support/python-snapshot.ts', './test/support/e2e-setup.ts'],
          environment: 'node',
        },
      },
      {
        test: {
          ...patient,
          name: 'processes',
          include: PROCESSES,
          globalSetup: ['./container-runner/test/support/python-snapshot.ts'],
          environment: 'node',
        },
      },
      {
        // Without isolation a worker imports the sources once for all of its files.
        resolve: {
          alias: [
            { find: /^cortex-edge\/testing$/, replacement: sourceOf('testing/index.ts') },
            { find: /^cortex-edge\/testing\/vitest$/, replacement: sourceOf('testing/vitest.ts') },
            { find: /^cortex-edge$/, replacement: sourceOf('src/code-tools/index.ts') },
          ],
        },
        test: {
          ...patient,
          name: 'node',
          include: ['test/**/*.test.ts', 'container-runner/test/**/*.test.ts', 'examples/*/test/*.test.ts'],
          exclude: ['test/runtime/**', 'test/runtime-tools/**', 'test/e2e/**', ...PROCESSES],
          environment: 'node',
          isolate: false,
          setupFiles: ['./test/support/fixed-seed.ts'],
        },
      },
      {
        plugins: [
          cloudflareTest({
            wrangler: { configPath: './wrangler.toml' },
            // Optional bindings (docs/operations.md).
            miniflare: { r2Buckets: ['FILES'] },
            remoteBindings: false,
          }),
        ],
        test: {
          ...patient,
          name: 'workerd',
          include: ['test/runtime/**/*.test.ts'],
          globalSetup: ['./test/support/contract-llm.ts'],
        },
      },
      {
        plugins: [
          cloudflareTest({
            main: './test/runtime-tools/worker.ts',
            additionalExports: {
              CodeToolHost: 'WorkerEntrypoint',
              OutboundHost: 'WorkerEntrypoint',
              LocalVectors: 'WorkerEntrypoint',
            },
            wrangler: { configPath: './examples/code-tools/wrangler.toml' },
            miniflare: {
              bindings: { TOOL_WEATHER_KEY: 'weather-key', ALLOW_HOSTS: 'weather.example:443' },
              outboundService: weatherService,
            },
            remoteBindings: false,
          }),
        ],
        resolve: { alias: { 'cortex-edge': sourceOf('src/index.ts') } },
        test: { ...patient, name: 'code-tools', include: ['test/runtime-tools/**/*.test.ts'] },
      },
    ],
  },
});
