/** Settings: the tables in the docs list exactly the ones that are read, and each service gets its own (H8). */
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { RUNNER_SETTINGS } from '../../container-runner/config.ts';
import {
  checkWorkerSettings,
  readSettings,
  runnerEnvironment,
  tokenSecretIn,
  workerEnvironment,
} from '../../cli/system/settings.ts';
import { START_SETTINGS } from '../../cli/system/start-settings.ts';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { withSettingTable } from '../../scripts/event-tables.ts';
import { WORKER_SETTINGS } from '../../src/settings/setting-table.ts';

/** Names in the first column of the table below a heading. */
function documented(file: string, heading: string): string[] {
  const text = readFileSync(join(PACKAGE_ROOT, file), 'utf8');
  const section = text.slice(text.indexOf(`\n${heading}\n`));
  const rows = section.slice(0, section.indexOf('\n\n##')).split('\n');
  return rows.flatMap((row) => {
    const [, cell = ''] = /^\| ((?:`[A-Z_…]+`(?:, )?)+) \|/.exec(row) ?? [];
    return [...cell.matchAll(/`([A-Z_…]+)`/g)].map(([, name = '']) => name);
  });
}

const general = documented('docs/configure.md', '## Settings');
const ofRunner = documented('docs/runner.md', '## Settings');
const read = new Set<string>([
  ...WORKER_SETTINGS,
  ...START_SETTINGS,
  ...RUNNER_SETTINGS,
  'CORTEX_KEEP_BUNDLE',
  'TOOL_…',
  'CORTEX_API_KEY',
  'CORTEX_URL',
]);

/** The text of every source file in a folder. */
function sources(folder: string): { readonly path: string; readonly text: string }[] {
  return readdirSync(join(PACKAGE_ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter(
      (path) => /\.(ts|mjs)$/.test(path) && !/(^|\/)(test|node_modules)\//.test(path) && !path.includes('.generated'),
    )
    .map((path) => ({ path: join(folder, path), text: readFileSync(join(PACKAGE_ROOT, folder, path), 'utf8') }));
}

describe('[H8] the tables of settings', () => {
  test('are not empty', () => {
    expect(general.length).toBeGreaterThan(15);
    expect(ofRunner.length).toBeGreaterThan(15);
    expect(ofRunner).toEqual(expect.arrayContaining(['RUNNER_IMAGE_PYTHON', 'RUNNER_MAX_SECONDS']));
  });

  test('have every setting that is read, and no other', () => {
    expect([...new Set([...general, ...ofRunner])].toSorted()).toEqual([...read].toSorted());
  });

  test('is what the code says', () => {
    const page = readFileSync(join(PACKAGE_ROOT, 'docs/configure.md'), 'utf8');
    expect(page).toBe(withSettingTable(page));
  });

  test('have only settings that the Worker uses', () => {
    const used = sources('src').filter(({ path }) => !path.endsWith('setting-table.ts'));
    expect(used.length).toBeGreaterThan(100);
    expect(WORKER_SETTINGS.filter((name) => !used.some(({ text }) => text.includes(name)))).toEqual([]);
  });

  test('the Worker, the commands and the runner read no other environment variable', () => {
    const names = ['src', 'container-runner', 'cli'].flatMap((folder) => {
      const found = sources(folder).flatMap(({ text }) =>
        [...text.matchAll(/\b(?:env|process\.env|environment)(?:\.|\[')([A-Z][A-Z0-9_]{2,})\b/g)].map(
          ([, name = '']) => name,
        ),
      );
      expect(found, folder).not.toEqual([]);
      return found;
    });
    const ofCommands = readFileSync(join(PACKAGE_ROOT, 'docs/evaluation.md'), 'utf8');
    const wrangler = readFileSync(join(PACKAGE_ROOT, 'wrangler.toml'), 'utf8');
    const isBinding = (name: string): boolean => new RegExp(`^(name|binding) = "${name}"$`, 'm').test(wrangler);
    const isKnown = (name: string): boolean => read.has(name) || isBinding(name) || ofCommands.includes(`\`${name}\``);
    // PATH and DOCKER_HOST are of the machine.
    expect(names.filter((name) => !isKnown(name) && name !== 'PATH' && name !== 'DOCKER_HOST')).toEqual([]);
  });
});

describe('[H8] npm start', () => {
  test.each([...WORKER_SETTINGS, 'TOOL_ANN__CRM'])(
    'passes %s to the Worker, from the environment and from .dev.vars',
    (name) => {
      expect(readSettings({ [name]: 'from-outside' }).worker).toEqual({ [name]: 'from-outside' });
      expect(readSettings({}, `${name}="from-file"`).worker).toEqual({ [name]: 'from-file' });
      expect(readSettings({ [name]: 'from-outside' }, `${name}=from-file`).worker).toEqual({ [name]: 'from-outside' });
      expect(readSettings({ [name]: '' }, `${name}=from-file`).worker).toEqual({ [name]: 'from-file' });
    },
  );

  test.each(START_SETTINGS)('reads %s from both', (name) => {
    expect(readSettings({ [name]: '1' }).start).toEqual({ [name]: '1' });
    expect(readSettings({}, `${name}=2`).start).toEqual({ [name]: '2' });
  });

  test('passes the runner’s own settings to the runner', () => {
    const settings = readSettings({ RUNNER_SANDBOX: 'wasm', HOME: '/root' }, 'RUNNER_LOG=debug\nTOOL_A=b');
    expect(settings.runner).toEqual({ RUNNER_SANDBOX: 'wasm', RUNNER_LOG: 'debug' });
    expect(settings.worker).toEqual({ TOOL_A: 'b' });
  });

  const others =
    'TOOL_ANN__CRM AWS_SECRET_ACCESS_KEY OPENAI_API_KEY CLOUDFLARE_API_TOKEN CORTEX_API_KEY npm_config_token';
  const everything = Object.fromEntries(
    [...WORKER_SETTINGS, ...RUNNER_SETTINGS, ...others.split(' ')].map((name) => [name, `secret of ${name}`]),
  );

  test('[R2] passes no secret except the runner’s own to the runner', () => {
    const environment = runnerEnvironment(
      { ...everything, PATH: '/bin', DOCKER_HOST: 'unix:///d.sock' },
      { ...readSettings(everything).runner, RUNNER_SECRET: 'shared' },
    );
    const names = Object.keys(environment);
    expect(names.filter((name) => !RUNNER_SETTINGS.includes(name)).toSorted()).toEqual(['DOCKER_HOST', 'PATH']);
    expect(environment['RUNNER_SECRET']).toBe('shared');
    for (const name of ['SESSION_TOKEN_SECRET', 'LLM_API_KEY', 'API_KEYS', 'RUNNER_ACCESS_SECRET']) {
      expect(JSON.stringify(environment)).not.toContain(`secret of ${name}`);
    }
  });

  test('passes no secret to the development server', () => {
    const machine = { PATH: '/bin', NODE_COMPILE_CACHE: '/compiled' };
    expect(workerEnvironment({ ...everything, ...machine })).toEqual(machine);
  });

  test.each([
    ['SESSION_TOKEN_SECRET', 'short', 'at least 32 characters'],
    ['API_KEYS', 'ann:admin:k1,ANN:run:k2', 'cannot both be used'],
    ['API_KEYS', 'ann:admin:k1@', 'the namespace after the last "@"'],
    ['OWNER_OF_KEYLESS', 'home', 'but API_KEYS is not set'],
    ['RUNNER_URLS', 'ftp://x', 'not an HTTP(S) URL'],
    ['RATE_LIMIT', 'many', 'RATE_LIMIT'],
    ['POLICIES', '[{"do": "never"}]', 'POLICIES: policies[0].do "never" is not allowed'],
    ['CRON_MIN_SECONDS', '0', 'CRON_MIN_SECONDS'],
    ['FEED_MIN_SECONDS', '0.5', 'FEED_MIN_SECONDS'],
    ['SESSION_EXPIRY', 'soon', 'SESSION_EXPIRY'],
    ['REDACT', '["a+"]', 'pattern 1, "a+", has no greatest length'],
    ['EGRESS', 'nowhere', 'EGRESS must be platform or runner, found "nowhere"'],
    [
      'ALLOW_HOSTS',
      'db.internal,http://127.0.0.1:24100',
      'ALLOW_HOSTS must be a list of host or host:port, found "http',
    ],
    ['DEBUG_PROMPTS', 'maybe', 'DEBUG_PROMPTS must be 1 or 0, found "maybe"'],
    ['LLM_BASE_URL', '127.0.0.1:24200', 'LLM_BASE_URL "127.0.0.1:24200" is not an HTTP(S) URL'],
    ['LLM_PROVIDER', 'skynet', 'LLM_PROVIDER "skynet" is unknown'],
  ])('reports an error in %s=%s before anything starts', (name, value, message) => {
    expect(() => checkWorkerSettings({ [name]: value })).toThrow(message);
  });

  test('[H5] creates the signing secret of session tokens once per state folder, readable by this user only', () => {
    const folder = mkdtempSync(join(tmpdir(), 'cortex-settings-'));
    const other = mkdtempSync(join(tmpdir(), 'cortex-settings-'));
    try {
      const made = tokenSecretIn(folder);
      expect(made).toMatch(/^[0-9a-f]{64}$/);
      expect(tokenSecretIn(folder)).toBe(made);
      expect(tokenSecretIn(other)).not.toBe(made);
      expect(statSync(join(folder, 'session-token.secret')).mode & 0o077).toBe(0);
    } finally {
      for (const one of [folder, other]) rmSync(one, { recursive: true });
    }
  });
});
