/** The package's entry `cortex-edge/runner`: the runner inside another Node program. `main.ts` is the program of its own. */
export { readConfig } from './config.ts';
export type { RunnerConfig } from './config.ts';
export type { OperatorLimits } from './operator-limits.ts';
export type { SpanExportSettings } from './telemetry/otlp-settings.ts';
export type { SandboxLevel } from './sandbox/sandbox.ts';
export { createRunner } from './runner.ts';
export type { Runner, RunnerOptions } from './runner.ts';
