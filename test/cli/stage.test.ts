import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { unstable_readConfig as readConfig } from 'wrangler';
import { stageConfig } from '../../cli/system/stage-config.ts';
import { folderOfFile } from './scene.ts';

const folder = folderOfFile();
afterAll(() => {
  rmSync(STAGED, { force: true });
});
const OWN = 'wrangler.toml';
// next to wrangler.toml, because its paths are relative to its folder
const STAGED = `wrangler.test-${process.pid}.jsonc`;
const options = {
  stage: 'staging',
  domain: 'staging.example.com',
  variables: ['RATE_LIMIT=60', 'ALLOWED_ORIGINS=a=b'],
};

test.each([undefined, 'containers', 'workers-ai'])(
  '[H8] a stage has the bindings, migrations and other settings of wrangler.toml (environment %s)',
  (env) => {
    writeFileSync(STAGED, `// generated\n${JSON.stringify(stageConfig(OWN, options))}`);
    const read = (config: string) =>
      readConfig({ config, ...(env === undefined ? {} : { env }) }, { hideWarnings: true });
    const own = read(OWN);
    const staged = read(STAGED);
    expect(staged.durable_objects.bindings.length).toBeGreaterThan(5);
    const same = [
      'durable_objects',
      'migrations',
      'ai',
      'compatibility_date',
      'compatibility_flags',
      'observability',
    ] as const;
    for (const key of [...same, 'minify', 'keep_names'] as const) {
      expect([key, staged[key]]).toEqual([key, own[key]]);
    }
    expect(staged.vars).toEqual({ ...own.vars, RATE_LIMIT: '60', ALLOWED_ORIGINS: 'a=b' });
    expect(staged.routes).toEqual([{ pattern: 'staging.example.com', custom_domain: true }]);
    expect(staged.name).toBe(`cortex-edge-staging${env === undefined ? '' : `-${env}`}`);
  },
);

test('[H8] a stage has its own name, domain and variables', () => {
  expect(stageConfig(OWN, options)).toMatchObject({ name: 'cortex-edge-staging', workers_dev: false });
  const other = join(folder, 'wrangler.toml');
  writeFileSync(
    other,
    'name = "mine"\nroutes = [{ pattern = "example.com", custom_domain = true }]\n[vars]\nEGRESS = "platform"\n',
  );
  const plain = stageConfig(other, { stage: 'eu-1', domain: null, variables: [] });
  // the domain of the other deployment must not move to this one
  expect(plain).toEqual({ name: 'mine-eu-1', workers_dev: true, vars: { EGRESS: 'platform' } });
});

test.each([
  [{ stage: '../x' }, 'is not the name of a stage'],
  [{ stage: '' }, 'is not the name of a stage'],
  [{ domain: 'https://a.example.com' }, 'is not a domain'],
  [{ domain: 'localhost' }, 'is not a domain'],
  [{ variables: ['RATE_LIMIT'] }, '"RATE_LIMIT" is not NAME=value'],
  [{ variables: ['RATE_LIMITS=1'] }, 'RATE_LIMITS is not a setting of the Worker'],
  [{ variables: ['API_KEYS=a:admin:k'] }, 'API_KEYS is a secret: set it with npx wrangler secret put'],
  [{ variables: ['TOOL_CRM=k'] }, 'TOOL_CRM is a secret'],
])('[H8] %j is rejected', (changes, message) => {
  expect(() => stageConfig(OWN, { ...options, ...changes })).toThrow(message);
});
