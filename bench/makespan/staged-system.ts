/**
 * The whole system from a copy of the sources, with the benchmark's own agents and tools in its
 * catalogue: the built-in delay under three names, and slots for all actions or for eight.
 */
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { freePort } from '../../scripts/services.ts';
import { ROOT } from '../../scripts/system.ts';
import type * as SystemModule from '../../scripts/system.ts';
import { WIDE } from './workloads.ts';

const COPIED = ['src', 'scripts', 'manifests', 'wrangler.toml', 'package.json'] as const;

export interface StagedSystem extends AsyncDisposable {
  readonly url: string;
}

/** The agent with at least so many slots. */
export function agentFor(slots: number): string {
  return `bench_${slots}`;
}

export async function startStagedSystem(vars: Readonly<Record<string, string>>): Promise<StagedSystem> {
  const root = mkdtempSync(join(tmpdir(), 'cortex-makespan-'));
  for (const name of COPIED) cpSync(join(ROOT, name), join(root, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'), 'dir');
  for (const slots of [8, WIDE]) {
    writeFileSync(join(root, `manifests/agents/${agentFor(slots)}.yaml`), agentYaml(slots));
  }
  for (const name of ['search', 'math', 'work'])
    writeFileSync(join(root, `manifests/tools/${name}.yaml`), toolYaml(name));
  const remove = (): void => rmSync(root, { recursive: true, force: true });
  try {
    // The copy's own module starts the copy.
    const { startSystem } = (await import(pathToFileURL(join(root, 'scripts/system.ts')).href)) as typeof SystemModule;
    const system = await startSystem({
      port: await freePort(),
      runnerPort: await freePort(),
      stateDir: join(root, 'state'),
      vars,
      ownRunner: false,
      progress: (message) => console.error(message),
    });
    return {
      url: system.url,
      async [Symbol.asyncDispose]() {
        await system.stop();
        remove();
      },
    };
  } catch (fault) {
    remove();
    throw fault;
  }
}

function agentYaml(slots: number): string {
  return `kind: Agent
version: "1.0"
name: ${agentFor(slots)}
summary: Carries out the plans of the benchmark.
persona: You carry out plans.
import:
  tools: [search, math, work, web_fetch]
loop:
  max_parallel_actions: ${slots}
`;
}

function toolYaml(name: string): string {
  return `kind: Tool
version: "1.0"
name: ${name}
summary: Waits delay_ms and returns its parameters.
implementation: { type: builtin, entrypoint: echo }
effects: pure
parameters:
  type: object
  properties:
    delay_ms: { type: integer, minimum: 0 }
    q: { type: string }
    of: { type: string }
`;
}
