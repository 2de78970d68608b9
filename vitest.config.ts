import { cloudflareTest } from '@cloudflare/vitest-plugin';
import { defineConfig } from 'vitest/config';

/** What is waited for may take as long as a busy machine takes. */
const patient = { poll: { timeout: 15_000 } };

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'node',
          include: ['test/**/*.test.ts', 'container-runner/**/*.test.ts'],
          exclude: ['test/runtime/**', 'test/e2e/**', 'test/latency/**', '**/node_modules/**'],
          environment: 'node',
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: patient,
        },
      },
      {
        plugins: [cloudflareTest({ wrangler: { configPath: './wrangler.toml' }, remoteBindings: false })],
        test: {
          name: 'workerd',
          include: ['test/runtime/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: patient,
          globalSetup: ['./test/support/contract-llm.ts'],
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          globalSetup: ['./test/support/base-images.ts'],
          environment: 'node',
          testTimeout: 120_000,
          expect: patient,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
      {
        // Measures how long one caller waits for another, so it has the machine for itself: after all others.
        test: {
          name: 'latency',
          include: ['test/latency/**/*.test.ts'],
          environment: 'node',
          sequence: { groupOrder: 1 },
          testTimeout: 180_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
