/**
 * The referee of the Model Context Protocol judges our client (E5): `@modelcontextprotocol/conformance`, with all scenarios
 * that each revision of the protocol requires.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';

const REVISIONS = ['2026-07-28', '2025-11-25'] as const;
const REFEREE = join(PACKAGE_ROOT, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const CLIENT = join(PACKAGE_ROOT, 'test/mcp/referee/client.ts');

/** Scenarios that do not apply, by the reason. */
const EXCLUDED: readonly { readonly reason: string; readonly scenarios: readonly string[] }[] = [
  {
    reason: 'A server is reached with a secret that the operator configures; no person is there to log in with OAuth',
    scenarios: [
      'auth/authorization-server-migration',
      'auth/basic-cimd',
      'auth/iss-normalized',
      'auth/iss-not-advertised',
      'auth/iss-supported',
      'auth/iss-supported-missing',
      'auth/iss-unexpected',
      'auth/iss-wrong-issuer',
      'auth/metadata-default',
      'auth/metadata-issuer-mismatch',
      'auth/metadata-var1',
      'auth/metadata-var2',
      'auth/metadata-var3',
      'auth/offline-access-not-supported',
      'auth/offline-access-scope',
      'auth/pre-registration',
      'auth/resource-mismatch',
      'auth/scope-from-scopes-supported',
      'auth/scope-from-www-authenticate',
      'auth/scope-omitted-when-undefined',
      'auth/scope-retry-limit',
      'auth/scope-step-up',
      'auth/token-endpoint-auth-basic',
      'auth/token-endpoint-auth-none',
      'auth/token-endpoint-auth-post',
    ],
  },
  {
    reason: 'Extensions of the authorization, which no revision requires',
    scenarios: [
      'auth/client-credentials-basic',
      'auth/client-credentials-jwt',
      'auth/dpop',
      'auth/dpop-nonce',
      'auth/enterprise-managed-authorization',
      'auth/wif-jwt-bearer',
    ],
  },
];

interface Check {
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO';
  readonly description: string;
  readonly errorMessage?: string;
}

const excluded = new Set(EXCLUDED.flatMap(({ scenarios }) => scenarios));
let folder: string;
/** The scenarios of each revision. */
const scenarios = new Map<string, readonly string[]>();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cortex-referee-'));
  for (const revision of REVISIONS) {
    const [, text = ''] = (await referee('list', '--client', '--requirements', revision)).split('Client scenarios');
    scenarios.set(
      revision,
      // Those that are not scored name their side.
      [...text.matchAll(/^ {2}- (\S+)$|^ {4}- (\S+) \[client\]$/gm)].map(([, scored, other = '']) => scored ?? other),
    );
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(REVISIONS)('[E5] the referee for %s finds no fault in the client', async (revision) => {
  const applicable = scenarios.get(revision)?.filter((scenario) => !excluded.has(scenario)) ?? [];
  expect(applicable.length).toBeGreaterThan(4);
  const faults = await Promise.all(applicable.map(async (scenario) => [scenario, await faultsOf(scenario, revision)]));
  expect(Object.fromEntries(faults)).toEqual(Object.fromEntries(applicable.map((scenario) => [scenario, []])));
});

test('each excluded scenario exists', () => {
  const known = new Set([...scenarios.values()].flat());
  expect([...excluded].filter((scenario) => !known.has(scenario))).toEqual([]);
});

/** At most two at a time: each needs a process of the referee and one of the client. */
const lanes = [Promise.resolve(), Promise.resolve()];

async function faultsOf(scenario: string, revision: string): Promise<readonly string[]> {
  const [lane = Promise.resolve()] = lanes.splice(0, 1);
  const judged = lane.then(() => judge(scenario, revision));
  lanes.push(judged.then(() => undefined));
  return await judged;
}

async function judge(scenario: string, revision: string): Promise<readonly string[]> {
  const output = join(folder, revision, scenario);
  const options = ['--scenario', scenario, '--spec-version', revision, '--output-dir', output, '--timeout', '120000'];
  await referee('client', '--command', `${process.execPath} ${CLIENT}`, ...options);
  const file = readdirSync(output, { recursive: true, encoding: 'utf8' }).find((name) => name.endsWith('checks.json'));
  const checks = file === undefined ? [] : (JSON.parse(readFileSync(join(output, file), 'utf8')) as Check[]);
  // A client that does nothing makes no mistake in some scenarios.
  if (!checks.some(({ status }) => status === 'SUCCESS')) return ['nothing was checked'];
  return checks
    .filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
    .map(({ description, errorMessage = description }) => errorMessage);
}

/** @returns what it prints; its status says less than its files */
async function referee(...args: readonly string[]): Promise<string> {
  const env = { ...process.env, NODE_COMPILE_CACHE: join(folder, 'cache') };
  return await new Promise((resolve) => {
    execFile(process.execPath, [REFEREE, ...args], { cwd: folder, env, maxBuffer: 64 * 1024 * 1024 }, (_, stdout) => {
      resolve(stdout);
    });
  });
}
