/** Data of versions before schema 1 is refused before anything happens (J9). */
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { requireReadableDeployment, requireReadableState } from '../../cli/system/earlier-state.ts';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { cortex } from '../support/cortex.ts';
import { folderOfFile } from './scene.ts';

const folder = folderOfFile();

/** A state folder with objects of these classes. */
function stateOf(name: string, ...classes: readonly string[]): string {
  const root = join(folder, name);
  for (const type of classes) mkdirSync(join(root, `worker/v3/do/cortex-edge-${type}`), { recursive: true });
  return root;
}

describe('[J9] the state folder', () => {
  test.each([['ExecutionIndexObject'], ['IdentityObject']])('of a version with the class %s is refused', (type) => {
    const root = stateOf(type, 'SessionObject', type);
    expect(() => requireReadableState('.cortex', root)).toThrow(
      expect.objectContaining({
        code: 'schema_too_old',
        message: expect.stringMatching(/^\.cortex .*Remove the folder/),
      }),
    );
  });

  test('of this version, or one that does not exist yet, is used', () => {
    expect(() => requireReadableState('.cortex', stateOf('new', 'SessionObject', 'StatusObject'))).not.toThrow();
    expect(() => requireReadableState('.cortex', join(folder, 'nothing'))).not.toThrow();
  });

  test('is refused by cortex dev, which starts nothing', async () => {
    const state = stateOf('dev', 'IdentityObject');
    const env = { CORTEX_STATE_DIR: state, LLM_PROVIDER: 'demo' };
    const { out, code } = await cortex(['dev', '--json'], { cwd: PACKAGE_ROOT, env });
    expect([code, JSON.parse(out)]).toEqual([1, { error: { code: 'schema_too_old', message: expect.any(String) } }]);
  });
});

/** What Cloudflare answers about Workers: `classes` of the deployed one; null: there is none. */
const seen: string[] = [];
let classes: readonly string[] | null = null;
const cloudflare = createServer(({ method = '', url = '' }, response) => {
  seen.push(`${method} ${url.replace(/\?.*/, '')}`);
  const bindings = (classes ?? []).map((type) => ({ type: 'durable_object_namespace', name: 'X', class_name: type }));
  const result = url.endsWith('/deployments')
    ? {
        deployments: [
          { id: 'd1', created_on: '2026-01-01T00:00:00Z', versions: [{ version_id: 'v1', percentage: 100 }] },
        ],
      }
    : { id: 'v1', resources: { bindings } };
  const isKnown = classes !== null && /\/scripts\/cortex-edge\/(?:deployments|versions\/v1)$/.test(url);
  response.writeHead(isKnown ? 200 : 404, { 'content-type': 'application/json' });
  response.end(
    JSON.stringify(
      isKnown
        ? { success: true, errors: [], messages: [], result }
        : { success: false, errors: [{ code: 10007, message: 'not found' }], messages: [], result: null },
    ),
  );
});
await new Promise<void>((resolve) => cloudflare.listen(0, '127.0.0.1', resolve));
afterAll(() => cloudflare.close());

const account = {
  CLOUDFLARE_API_BASE_URL: `http://127.0.0.1:${(cloudflare.address() as AddressInfo).port}`,
  CLOUDFLARE_API_TOKEN: 'token',
  CLOUDFLARE_ACCOUNT_ID: 'a1',
};

describe('[J9] [K5] cortex deploy', () => {
  test('says before it uploads that a version before schema 1 is deployed under this name', async () => {
    classes = ['SessionObject', 'IdentityObject'];
    seen.length = 0;
    const { out, code } = await cortex(['deploy', '--json'], { cwd: PACKAGE_ROOT, env: account });
    expect([code, JSON.parse(out)]).toEqual([
      1,
      { error: { code: 'schema_too_old', message: expect.stringContaining('new Worker name') } },
    ]);
    expect(seen).toEqual([
      'GET /accounts/a1/workers/scripts/cortex-edge/deployments',
      'GET /accounts/a1/workers/scripts/cortex-edge/versions/v1',
    ]);
  });

  test.each<[what: string, version: unknown]>([
    ['with the classes of this version', { resources: { bindings: [{ type: 'x', class_name: 'StatusObject' }] } }],
    ['that cannot be read', null],
  ])('goes on over a deployment %s', (_what, version) => {
    const asked: string[] = [];
    requireReadableDeployment(['--env', 'e'], (args) => {
      asked.push(args.join(' '));
      return args[0] === 'deployments' ? { versions: [{ version_id: 'v1' }] } : version;
    });
    expect(asked).toEqual(['deployments status --json --env e', 'versions view v1 --json --env e']);
  });

  test('goes on if there is no deployment, or no login', () => {
    expect(() => requireReadableDeployment([], () => null)).not.toThrow();
  });
});
