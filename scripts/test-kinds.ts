/** The commands that run tests. Each test file belongs to one project of vitest.config.ts, and each project to one command. */
export interface TestKind {
  readonly command: string;
  readonly projects: readonly string[];
  /** Whether a Docker engine is used, or started, for its tests. */
  readonly usesDocker: boolean;
  /** Whether its tests find the programs of the machine. */
  readonly usesMachine: boolean;
  /** On two cores; null: no limit. Only `npm run test:steady` fails above it. */
  readonly mostSeconds: number | null;
}

export const TEST_KINDS = {
  fast: {
    command: 'npm test',
    projects: ['node', 'simulation', 'smoke', 'wasm'],
    usesDocker: false,
    usesMachine: false,
    mostSeconds: 240,
  },
  system: {
    command: 'npm run test:system',
    projects: ['workerd', 'alone', 'code-tools', 'system'],
    usesDocker: true,
    usesMachine: true,
    mostSeconds: 420,
  },
  long: {
    command: 'npm run test:long',
    projects: ['long'],
    usesDocker: true,
    usesMachine: true,
    mostSeconds: null,
  },
  programs: {
    command: 'npm run test:programs',
    projects: ['programs'],
    usesDocker: false,
    usesMachine: true,
    mostSeconds: null,
  },
} as const satisfies Record<string, TestKind>;

export type TestKindName = keyof typeof TEST_KINDS;

export function isTestKind(name: string): name is TestKindName {
  return name in TEST_KINDS;
}
