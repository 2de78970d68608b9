/**
 * The system with the benchmark's own agents and tools in its catalogue: the built-in delay under
 * three names, and slots for all actions or for eight.
 */
import { join } from 'node:path';
import { freePort } from '../../cli/system/services.ts';
import { stage } from '../../test/support/staged-system.ts';
import { WIDE } from './workloads.ts';

export interface StagedSystem extends AsyncDisposable {
  readonly url: string;
}

/** The agent with at least this number of slots. */
export function agentFor(slots: number): string {
  return `bench_${slots}`;
}

/** @param manifests more manifests, by path */
export async function startStagedSystem(
  vars: Readonly<Record<string, string>>,
  manifests: Readonly<Record<string, string>> = {},
): Promise<StagedSystem> {
  const staged = await stage({
    ...manifests,
    ...Object.fromEntries([8, WIDE].map((slots) => [`agents/${agentFor(slots)}.yaml`, agentYaml(slots)])),
    ...Object.fromEntries(['search', 'math', 'work'].map((name) => [`tools/${name}.yaml`, toolYaml(name)])),
  });
  try {
    const system = await staged.startSystem({
      port: await freePort(),
      runnerPort: await freePort(),
      stateDir: join(staged.root, 'state'),
      vars,
      ownRunner: false,
      progress: (message) => console.error(message),
    });
    return {
      url: system.url,
      async [Symbol.asyncDispose]() {
        await system.stop();
        staged[Symbol.dispose]();
      },
    };
  } catch (fault) {
    staged[Symbol.dispose]();
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
