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

/** Tests that start processes or take much memory. They belong to `npm run test:system`. */
const PROCESSES = [
  'container-runner/test/{main,prewarm,startup,state}.test.ts',
  'container-runner/test/images/images.test.ts',
  'container-runner/test/jobs/crash.test.ts',
  'container-runner/test/relics/relics-docker.test.ts',
  'container-runner/test/sandbox/**/*.test.ts',
  'container-runner/test/workspace/memory.test.ts',
  'test/cli/{code-tools,earlier-state,fresh-machine,links,orphans,tool-rights}.test.ts',
  'test/packaging.test.ts',
  'test/workspace/*.test.ts',
  // They call programs of the machine, such as Python.
  'container-runner/test/telemetry/propagation.test.ts',
  'test/catalog/original/workflow.test.ts',
  'test/cli/{open-browser,page-examples}.test.ts',
  'test/executors/builtin/{system-status,text-stats}.test.ts',
  'test/executors/runner/launched-script.test.ts',
  'test/executors/shipped-skills.test.ts',
  'test/http/workspace-archive.test.ts',
];
/** The embedded Python, at the only level that each machine has: a part of `npm test`. */
const WASM = ['container-runner/test/sandbox/wasm.test.ts'];
/** They stop all objects, or watch all classes: each has a workerd of its own. */
const ALONE = ['test/runtime/crash.test.ts'];
/** One test for each class of Durable Objects: a part of `npm test`. */
const SMOKE = ['test/runtime/smoke.test.ts'];
const SIMULATION = ['test/simulation/**/*.test.ts'];
const LONG = ['test/long/*.test.ts'];
const PROGRAMS = ['test/programs/*.test.ts'];

/** The order of the projects: a worker runs several files of one project. */
const ORDER = ['long', 'smoke', 'alone', 'system', 'wasm', 'simulation', 'code-tools', 'workerd', 'node'];
/** Files that take long begin before the others of their project, so that none of them is left for the end. */
const FIRST = [
  'package',
  'frozen-work',
  'kills',
  'start',
  'console',
  'console-live',
  'console-branches',
  'console-approvals',
  'relics-docker',
  'abuse-wasm',
  'fresh-machine',
  'tool-rights',
  'images',
  'bodies',
  'openai',
];

/** What the package's entry points are in this repository. */
const sourceOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** The Worker of this repository, with its optional bindings (docs/deploy.md). */
const worker = (): ReturnType<typeof cloudflareTest> =>
  cloudflareTest({
    main: './src/worker.ts',
    wrangler: { configPath: './wrangler.toml' },
    miniflare: { r2Buckets: ['FILES'] },
    remoteBindings: false,
  });

/** Each workerd imports 800 modules, which takes longer than most files: four of them run all files, after the other projects. */
const IN_FOUR = { isolate: false, maxWorkers: 4, sequence: { groupOrder: 1 } };

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ project, moduleId }: TestSpecification): number => {
      const first = FIRST.indexOf(basename(moduleId, '.test.ts'));
      return ORDER.indexOf(project.name) * (FIRST.length + 1) + (first < 0 ? FIRST.length : first);
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
          name: 'system',
          include: ['test/e2e/**/*.test.ts', ...PROCESSES],
          exclude: WASM,
          isolate: false,
          globalSetup: ['./container-runner/test/support/python-snapshot.ts', './test/support/e2e-setup.ts'],
          environment: 'node',
        },
      },
      {
        test: {
          ...patient,
          name: 'wasm',
          include: WASM,
          globalSetup: ['./container-runner/test/support/python-snapshot.ts'],
          environment: 'node',
        },
      },
      { test: { ...patient, name: 'simulation', include: SIMULATION, environment: 'node' } },
      {
        test: {
          ...patient,
          name: 'long',
          include: LONG,
          globalSetup: ['./container-runner/test/support/python-snapshot.ts', './test/support/e2e-setup.ts'],
          environment: 'node',
        },
      },
      { test: { ...patient, name: 'programs', include: PROGRAMS, environment: 'node' } },
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
          exclude: [
            'test/runtime/**',
            'test/runtime-tools/**',
            'test/e2e/**',
            ...PROCESSES,
            ...SIMULATION,
            ...LONG,
            ...PROGRAMS,
          ],
          environment: 'node',
          isolate: false,
          setupFiles: ['./test/support/fixed-seed.ts'],
        },
      },
      {
        plugins: [worker()],
        test: {
          ...patient,
          name: 'workerd',
          include: ['test/runtime/**/*.test.ts'],
          exclude: [...SMOKE, ...ALONE],
          setupFiles: ['./test/support/fast-demo.ts'],
          globalSetup: ['./test/support/contract-llm.ts'],
          ...IN_FOUR,
        },
      },
      {
        plugins: [worker()],
        test: { ...patient, name: 'alone', include: ALONE },
      },
      { plugins: [worker()], test: { ...patient, name: 'smoke', include: SMOKE } },
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
        test: { ...patient, name: 'code-tools', include: ['test/runtime-tools/**/*.test.ts'], ...IN_FOUR },
      },
    ],
  },
});
