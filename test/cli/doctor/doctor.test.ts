/** `cortex doctor` finds each prepared mistake, and says how to correct it (K5). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { COMPATIBILITY_DATE, COMPATIBILITY_FLAGS } from '../../../cli/doctor/check-wrangler.ts';
import { CHECKS, reportOf, summaryOf } from '../../../cli/doctor/doctor.ts';
import { machine } from '../../../cli/doctor/machine.ts';
import { PROBLEMS } from '../../../cli/doctor/problems.ts';
import type { ProblemId } from '../../../cli/doctor/problems.ts';
import { PACKAGE_ROOT } from '../../../cli/project/folders.ts';
import { RUNTIME_OBJECTS } from '../../../src/domain/bindings.ts';
import { SERVICE } from '../../../container-runner/version.ts';
import { VERSION } from '../../../src/domain/version.ts';
import { cortexHere } from '../../support/cortex.ts';
import { Project } from './project.ts';

const SECRET = '0123456789abcdef0123456789abcdef';
const RUNNER = 'http://127.0.0.1:8790';
const HEALTH = { status: 'healthy', service: SERVICE, version: VERSION };
/** A code tool with this implementation; it needs no package, because none is installed. */
function withTool(project: Project, implementation: string, manifest = 'manifests/tools/lookup.yaml'): void {
  const schema = "{ '~standard': { jsonSchema: { input: () => ({ type: 'object', properties: {} }) } } }";
  project.write(
    'tools/lookup.ts',
    `export default { name: 'lookup', description: 'd', effects: 'pure', parameters: ${schema}, run() {} };`,
  );
  const text = `kind: Tool\nname: lookup\nimplementation: {type: code, ${implementation}}\n`;
  project.write(manifest, manifest.endsWith('.md') ? `---\n${text}---\n` : text);
}

/** With a runner that answers like this. */
function withRunner(project: Project, health: object, job: number, ahead = 0): void {
  project.settings(`RUNNER_URLS=${RUNNER}\nRUNNER_SECRET=${SECRET}`);
  project.answer(`${RUNNER}/health`, health, { ahead });
  project.answer(`${RUNNER}/jobs/doctor-`, job, { ahead });
}

const CONTAINERS = `
[[containers]]
class_name = "RunnerContainer"
image = "./Dockerfile"
max_instances = 2
[vars]
RUNNER_INSTANCES = "3"
`;

type Case = readonly [id: ProblemId, prepare: (project: Project) => void, message: string, fix: string];

const CASES: readonly Case[] = [
  ['node_too_old', (one) => void (one.nodeVersion = '20.11.0'), 'Node 20.11.0', 'npm install --save-dev node@24'],
  [
    'node_too_old',
    (one) => void (one.nodeVersion = '22.5.0'),
    'Node 22.5.0; at least 22.15',
    'npm install --save-dev node@24',
  ],
  [
    'package_differs_from_lock',
    (one) => one.write('node_modules/cortex-edge/package.json', '{"version": "1.2.2"}'),
    'cortex-edge 1.2.2 is installed, package-lock.json has 1.2.3',
    'npm ci',
  ],
  ['package_file_invalid', (one) => one.write('package.json', '{'), 'package.json is not', 'correct package.json'],
  ['not_installed', (one) => one.remove('node_modules/cortex-edge'), 'cortex-edge is not installed', 'npm install'],
  [
    'two_zods',
    (one) => one.write('node_modules/cortex-edge/node_modules/zod/package.json', '{"version": "4.0.1"}'),
    'zod 4.6.7 of the project, and zod 4.0.1',
    'npm install zod@4.0.1',
  ],
  ['unknown_setting', (one) => one.settings('LLM_MODLE=x'), 'LLM_MODLE', 'LLM_MODEL=… instead of LLM_MODLE=…'],
  ['unknown_setting', (one) => one.settings('WEATHER=x'), 'WEATHER', 'begin its name with TOOL_'],
  ['malformed_line', (one) => one.settings('the-secret-value'), '.dev.vars:2 is not NAME=value', 'line 2'],
  ['malformed_line', (one) => one.settings('TOOL_A="a\nb"\n# c\n\nexport TOOL_B=\'x'), '.dev.vars:6', 'line 6'],
  ['invalid_setting', (one) => one.settings('RATE_LIMIT=many'), 'RATE_LIMIT', 'RATE_LIMIT=…'],
  [
    'invalid_setting',
    (one) => one.settings('RUNNER_PORT=99999'),
    'RUNNER_PORT "99999" is not a port (1-65535)',
    'RUNNER_PORT=…',
  ],
  ['keys_missing', (one) => one.write('.dev.vars', ''), 'API_KEYS is not set', 'npx wrangler secret put API_KEYS'],
  [
    'keys_malformed',
    (one) => one.write('.dev.vars', 'API_KEYS=ann:admn:0123456789abcdef0123'),
    'entry 1',
    'ann:admin:<key> instead of ann:admn:<key>',
  ],
  ['keys_malformed', (one) => one.write('.dev.vars', 'API_KEYS=0123456789abcdef'), 'entry 1', 'API_KEYS=admin:admin:'],
  [
    'key_weak',
    (one) => one.write('.dev.vars', 'API_KEYS=ann:run:abc'),
    '"ann" has 3 characters',
    'openssl rand -hex 24',
  ],
  [
    'runner_secret_missing',
    (one) => one.settings(`RUNNER_URLS=${RUNNER}`),
    'RUNNER_SECRET is not',
    'RUNNER_SECRET=<secret> in .dev.vars',
  ],
  [
    'runner_secret_weak',
    (one) => one.settings('RUNNER_SECRET=short'),
    'has 5 characters; at least 32',
    'openssl rand -hex 32',
  ],
  [
    'runner_secret_weak',
    (one) => one.settings(`RUNNER_SECRET=${'ab'.repeat(20)}`),
    'only 2 different characters',
    'openssl rand -hex 32',
  ],
  [
    'runner_secret_overridden',
    (one) => {
      one.settings(`RUNNER_SECRET=${SECRET}`);
      one.environment['RUNNER_SECRET'] = `${SECRET}${SECRET}`;
    },
    '64 and 32 characters',
    'unset RUNNER_SECRET',
  ],
  ['token_secret_weak', (one) => one.settings('SESSION_TOKEN_SECRET=abc'), 'has 3 characters', 'openssl rand -hex 32'],
  [
    'vars_committed',
    (one) => void (one.programs['git ls-files'] = { status: 0 }),
    'committed',
    'git rm --cached .dev.vars',
  ],
  [
    'vars_not_ignored',
    (one) => void (one.programs['git check-ignore'] = { status: 1 }),
    'does not ignore',
    "echo '.dev.vars' >> .gitignore",
  ],
  ['wrangler_file_missing', (one) => one.remove('wrangler.toml'), 'no wrangler.toml', 'npx cortex init'],
  [
    'wrangler_file_invalid',
    (one) => one.write('wrangler.toml', 'name = "a\n'),
    'wrangler.toml',
    'correct wrangler.toml',
  ],
  [
    'binding_missing',
    (one) => one.change('wrangler.toml', 'name = "FEEDS"', 'name = "FEED"'),
    'FEEDS',
    'name = "FEEDS"\nclass_name = "SharedFeedObject"',
  ],
  [
    'migration_missing',
    (one) => one.change('wrangler.toml', '"RelicObject", ', ''),
    'RelicObject',
    '[[migrations]]\ntag = "v2"\nnew_sqlite_classes = ["RelicObject"]',
  ],
  [
    'migration_without_sqlite',
    (one) => one.change('wrangler.toml', 'new_sqlite_classes', 'new_classes'),
    'SessionObject is in new_classes',
    'new_sqlite_classes = ["SessionObject"]',
  ],
  [
    'compatibility_date_old',
    (one) => one.change('wrangler.toml', COMPATIBILITY_DATE, '2024-01-01'),
    '2024-01-01',
    `compatibility_date = "${COMPATIBILITY_DATE}"`,
  ],
  [
    'compatibility_date_future',
    (one) => one.change('wrangler.toml', COMPATIBILITY_DATE, '2099-01-01'),
    '2099-01-01 is in the future',
    `compatibility_date = "${COMPATIBILITY_DATE}"`,
  ],
  [
    'compatibility_date_old',
    (one) => one.change('wrangler.toml', `"${COMPATIBILITY_DATE}"`, '20240101'),
    '20240101',
    `compatibility_date = "${COMPATIBILITY_DATE}"`,
  ],
  ['build_missing', (one) => one.change('wrangler.toml', '[build]\ncommand = "true"', ''), 'no [build]', 'cortex-edge'],
  [
    'compatibility_flag_missing',
    (one) => one.change('wrangler.toml', `"${COMPATIBILITY_FLAGS[0]}"`, '"nodejs_compat"'),
    COMPATIBILITY_FLAGS[0] ?? '',
    `"nodejs_compat", "${COMPATIBILITY_FLAGS[1]}", "${COMPATIBILITY_FLAGS[0]}"`,
  ],
  ['main_missing', (one) => one.remove('src/worker.ts'), 'src/worker.ts does not exist', 'main = "src/worker.ts"'],
  [
    'object_not_exported',
    (one) => one.change('src/worker.ts', '  DirectoryObject,', '  // DirectoryObject,'),
    'DirectoryObject',
    "export { DirectoryObject } from 'cortex-edge';",
  ],
  [
    'entrypoint_not_exported',
    (one) => one.change('src/worker.ts', '  CodeToolHost,', ''),
    'src/worker.ts does not export CodeToolHost',
    "export { CodeToolHost } from 'cortex-edge';",
  ],
  [
    'manifest_error',
    (one) => one.change('manifests/tools/ping.yaml', 'summary', 'sumary'),
    'ping.yaml:1:1: summary: is missing',
    'npx cortex validate',
  ],
  [
    'tool_secret_missing',
    (one) => withTool(one, 'secrets: [TOOL_WEATHER]'),
    'TOOL_WEATHER',
    'npx wrangler secret put TOOL_WEATHER',
  ],
  [
    'tool_binding_missing',
    (one) => withTool(one, 'bindings: [MY_STORE]'),
    'the tool lookup uses the binding MY_STORE',
    'binding = "MY_STORE"',
  ],
  [
    'tool_binding_missing',
    (one) => {
      one.change('wrangler.toml', '\n[[migrations]]', '\n[[kv_namespaces]]\nbinding = "MY_STORE"\n[[migrations]]');
      withTool(one, 'bindings: [MY_STOR]', 'manifests/lookup.md');
    },
    'lookup.md: the tool lookup uses the binding MY_STOR',
    '"MY_STORE" instead of "MY_STOR"',
  ],
  [
    'tool_secret_missing',
    (one) => {
      one.settings('CORTEX_MANIFESTS=more');
      withTool(one, 'secrets: [TOOL_WEATHER]', 'more/lookup.yaml');
    },
    'more/lookup.yaml',
    'npx wrangler secret put TOOL_WEATHER',
  ],
  [
    'manifest_error',
    (one) => {
      one.settings('CORTEX_MANIFESTS=more');
      one.write('more/bad.yaml', 'kind: Agent\n');
    },
    'more/bad.yaml:1:1: ',
    'npx cortex validate',
  ],
  [
    'manifest_error',
    (one) => one.settings('CORTEX_MANIFESTS=absent'),
    'absent: no such folder',
    'correct CORTEX_MANIFESTS',
  ],
  [
    'model_incomplete',
    (one) => one.settings('LLM_BASE_URL=http://127.0.0.1:9/v1'),
    'LLM_MODEL is not set',
    'LLM_MODEL=<model>',
  ],
  ['model_incomplete', (one) => one.settings('LLM_PROVIDER=opnai'), 'opnai', 'LLM_PROVIDER=…'],
  [
    'model_unreachable',
    (one) => one.settings('LLM_BASE_URL=http://127.0.0.1:9/v1\nLLM_MODEL=m'),
    'connect ECONNREFUSED',
    'LLM_BASE_URL=',
  ],
  [
    'model_key_refused',
    (one) => {
      one.settings('LLM_BASE_URL=http://127.0.0.1:9/v1\nLLM_MODEL=m\nLLM_API_KEY=wrong');
      one.answer('http://127.0.0.1:9/v1/models', 401);
    },
    'answers 401',
    'LLM_API_KEY=<key>',
  ],
  [
    'runner_unreachable',
    (one) => one.settings(`RUNNER_URLS=${RUNNER}\nRUNNER_SECRET=${SECRET}`),
    'connect ECONNREFUSED',
    'start the runner',
  ],
  ['runner_unreachable', (one) => withRunner(one, { status: 'ok' }, 404), 'is not a runner', 'correct RUNNER_URLS'],
  ['runner_secret_differs', (one) => withRunner(one, HEALTH, 401), 'does not accept', 'the same as on the runner'],
  [
    'runner_unhealthy',
    (one) => withRunner(one, { ...HEALTH, status: 'draining' }, 404),
    'draining',
    'log of the runner',
  ],
  ['clock_skew', (one) => withRunner(one, HEALTH, 401, -11_000), '11 s behind', 'timedatectl set-ntp true'],
  ['clock_skew', (one) => withRunner(one, HEALTH, 401, 71_000), '71 s ahead', 'timedatectl set-ntp true'],
  [
    'sandbox_weak',
    (one) => Object.assign(one.programs, { 'docker version': { status: 1 }, 'bwrap --ro-bind': { status: null } }),
    'wasm',
    'apt-get install bubblewrap',
  ],
  [
    'sandbox_missing',
    (one) => {
      one.settings('RUNNER_SANDBOX=docker');
      one.programs['docker version'] = { status: 1 };
    },
    'no engine answers',
    'start Docker',
  ],
  [
    'port_in_use',
    (one) => {
      one.settings('PORT=9100');
      one.takenPorts.add(9100);
    },
    'PORT 9100',
    'PORT=9110 npx cortex dev',
  ],
  [
    'ports_equal',
    (one) => one.settings('PORT=9100\nRUNNER_PORT=9100'),
    'PORT and RUNNER_PORT are 9100',
    'RUNNER_PORT=9110 npx cortex dev',
  ],
  ['port_in_use', (one) => void one.takenPorts.add(8787), 'PORT 8787', 'PORT=8797 npx cortex dev'],
  [
    'port_of_system',
    (one) => {
      one.takenPorts.add(8790).add(8800);
      one.answer('http://127.0.0.1:8790/health', HEALTH);
    },
    'RUNNER_PORT 8790',
    'RUNNER_PORT=8801 npx cortex dev',
  ],
  [
    'docker_missing',
    (one) => {
      one.change('wrangler.toml', '\n[[migrations]]', `${CONTAINERS}\n[[migrations]]`);
      one.programs['docker version'] = { status: 1 };
    },
    'Docker does not answer',
    'install Docker',
  ],
  [
    'docker_missing_elsewhere',
    (one) => {
      one.change('wrangler.toml', '\n[[migrations]]', `\n[[env.big.containers]]\nimage = "x"\n[[migrations]]`);
      one.programs['docker version'] = { status: 1 };
    },
    'the environment big',
    'install Docker',
  ],
  [
    'containers_plan',
    (one) => {
      one.change('wrangler.toml', '\n[[migrations]]', `${CONTAINERS}\n[[migrations]]`);
      one.programs['wrangler whoami'] = { status: 1, stdout: 'You are not authenticated.' };
    },
    'plan',
    'npx wrangler login',
  ],
  [
    'too_many_instances',
    (one) => one.change('wrangler.toml', '\n[[migrations]]', `${CONTAINERS}\n[[migrations]]`),
    'RUNNER_INSTANCES is 3, max_instances of RunnerContainer 2',
    'max_instances = 3',
  ],
  ['wrangler_missing', (one) => void (one.hasWrangler = false), 'not installed', 'npm install --save-dev wrangler'],
  [
    'not_logged_in',
    (one) => void (one.programs['wrangler whoami'] = { status: 0, stdout: 'You are not authenticated. Please run' }),
    'not logged in',
    'npx wrangler login',
  ],
  [
    'login_unknown',
    (one) => void (one.programs['wrangler whoami'] = { status: null, output: 'Getting User settings...' }),
    'no answer',
    'npx wrangler whoami',
  ],
  [
    'not_deployed',
    (one) => void (one.programs['wrangler secret'] = { status: 1 }),
    'not deployed',
    'npx cortex deploy',
  ],
  [
    'deployed_secret_missing',
    (one) => void (one.programs['wrangler secret'] = { status: 0, stdout: '[]' }),
    'API_KEYS',
    'npx wrangler secret put API_KEYS',
  ],
];

describe('[K5] the doctor', () => {
  test('finds nothing in a project without mistakes, with a runner and a model', async () => {
    using project = new Project();
    withRunner(project, HEALTH, 404);
    project.programs['wrangler secret'] = {
      status: 0,
      stdout: '[{"name":"API_KEYS"},{"name":"RUNNER_URLS"},{"name":"RUNNER_SECRET"}]',
    };
    const findings = await project.examine();
    expect(findings.filter(({ state }) => state !== 'ok')).toEqual([]);
    expect(findings.length).toBeGreaterThan(14);
  });

  test.each(CASES)('finds %s', async (id, prepare, message, fix) => {
    using project = new Project();
    prepare(project);
    const findings = await project.examine();
    const finding = findings.find(({ problem }) => problem === id);
    expect(finding, JSON.stringify(findings.filter(({ state }) => state !== 'ok'))).toBeDefined();
    expect(finding?.state).toBe(PROBLEMS[id].level);
    expect(finding?.message).toContain(message);
    expect(finding?.fix).toContain(fix);
    expect(finding?.meaning).toBe(PROBLEMS[id].meaning);
  });

  describe('in a folder of a workspace', () => {
    /** Packages and lock file are two folders above the project. */
    async function examined(prepare: (workspace: Project) => void = () => undefined): Promise<string[]> {
      using workspace = new Project();
      workspace.write('apps/mine/package.json', '{"name": "mine"}');
      prepare(workspace);
      const findings = await workspace.examine({ root: join(workspace.root, 'apps/mine') });
      return findings.filter(({ check }) => check === 'packages').map(({ message }) => message);
    }

    test('finds the packages and the lock file of the workspace', async () => {
      expect(await examined()).toEqual(['as in package-lock.json']);
      expect(await examined((one) => one.remove('node_modules/cortex-edge'))).toEqual(['cortex-edge is not installed']);
      expect(
        await examined((one) => one.write('node_modules/cortex-edge/package.json', '{"version": "1.2.2"}')),
      ).toEqual(['cortex-edge 1.2.2 is installed, package-lock.json has 1.2.3']);
    });

    test('the own packages of the project take precedence', async () => {
      const own = await examined((one) => {
        one.change(
          'package-lock.json',
          '{"packages":{',
          '{"packages":{"apps/mine/node_modules/zod":{"version":"4.0.0"},',
        );
        one.write('apps/mine/node_modules/zod/package.json', '{"version": "4.0.0"}');
      });
      expect(own).toEqual(['zod 4.0.0 of the project, and zod 4.6.7 of cortex-edge']);
    });

    test('runs the wrangler that the package finds', async () => {
      using workspace = new Project();
      expect(await machine.wrangler(workspace.root, ['--version'])).toMatchObject({ status: 0 });
    });
  });

  const URL = 'https://mine.example';
  const SYSTEM = { status: 'healthy', service: 'cortex-edge', version: VERSION };
  const remote: readonly (readonly [id: ProblemId, health: object, agents: number, message: string, ahead: number])[] =
    [
      ['system_unreachable', { hello: 1 }, 200, 'is not a Cortex Edge', 0],
      ['system_key_refused', SYSTEM, 401, 'does not know this key', 0],
      [
        'system_part_missing',
        { ...SYSTEM, status: 'degraded', missing: [{ part: 'runner', reason: 'the runner does not answer' }] },
        200,
        'runner: the runner does not answer',
        0,
      ],
      ['system_starting', { ...SYSTEM, status: 'starting' }, 200, 'is starting', 0],
      ['system_version', { ...SYSTEM, version: '0.0.1' }, 200, 'has version 0.0.1', 0],
      ['system_clock', SYSTEM, 200, '30 s ahead of', 30_000],
    ];

  test.each(remote)('finds %s of a deployed system', async (id, health, agents, message, ahead) => {
    using project = new Project();
    project.answer(`${URL}/health`, health, { ahead });
    project.answer(`${URL}/agents`, agents);
    const findings = await project.examine({ system: { url: URL, key: 'a-key' } });
    const finding = findings.find(({ problem }) => problem === id);
    expect(finding?.message).toContain(message);
    expect(finding?.state).toBe(PROBLEMS[id].level);
  });

  test('sends the key of a deployed system in a header, and says that it works', async () => {
    using project = new Project();
    project.answer(`${URL}/health`, SYSTEM);
    project.answers[`${URL}/agents`] = (headers) =>
      new Response('{}', { status: headers.get('authorization') === 'Bearer a-key' ? 200 : 401 });
    const findings = await project.examine({ system: { url: URL, key: 'a-key' } });
    const about = findings.filter(({ check }) => check === 'system');
    expect(about.map(({ state, message }) => [state, message])).toEqual([
      ['ok', `${URL} is healthy, version ${VERSION}`],
      ['ok', 'the key works'],
    ]);
  });

  test('every problem of the table has a test', () => {
    const tested = new Set<string>([
      ...CASES.map(([id]) => id),
      ...remote.map(([id]) => id),
      'manifest_warnings',
      'manifests_unread',
    ]);
    expect(Object.keys(PROBLEMS).filter((id) => !tested.has(id))).toEqual([]);
  });

  test('reports warnings of manifests, and that they could not be read', async () => {
    using project = new Project();
    const report = { fault: null, missing: [], errors: [], warnings: 2, definitions: 1, secrets: [], bindings: [] };
    const warned = await project.examine({}, { manifests: () => report });
    expect(warned.find(({ problem }) => problem === 'manifest_warnings')?.message).toBe('2 warnings');
    const unread = await project.examine({}, { manifests: () => ({ ...report, fault: 'API_KEYS entry 1' }) });
    expect(unread.find(({ problem }) => problem === 'manifests_unread')?.message).toBe('API_KEYS entry 1');
  });

  test('suggests no binding of the runtime for a code tool', async () => {
    using project = new Project();
    withTool(project, 'bindings: [FEED]');
    const finding = (await project.examine()).find(({ problem }) => problem === 'tool_binding_missing');
    expect(finding?.fix).toMatch(/^a binding in wrangler.toml/);
  });

  test('prints no secret', async () => {
    using project = new Project();
    project.write(
      '.dev.vars',
      `API_KEYS=ann:badrole:private-key-one,bob:run:pk2\nRUNNER_SECRET=private-three\nLLM_API_KEY=private-four`,
    );
    const text = reportOf(await project.examine()).join('\n');
    for (const secret of ['private-key-one', 'pk2', 'private-three', 'private-four'])
      expect(text).not.toContain(secret);
  });

  test('an environment of wrangler.toml has its own objects and variables', async () => {
    using project = new Project();
    project.change('wrangler.toml', '\n[[migrations]]', '\n[env.big.vars]\nTOOL_A = "x"\n[[migrations]]');
    const findings = await project.examine({ env: 'big' });
    expect(findings.filter(({ problem }) => problem === 'binding_missing')).toHaveLength(
      Object.keys(RUNTIME_OBJECTS).length,
    );
    const [unknown] = await project
      .examine({ env: 'bag' })
      .then((all) => all.filter(({ check }) => check === 'wrangler'));
    expect(unknown?.message).toContain('no environment "bag" (known: big)');
  });

  test('reports the checks in the order of their table, each with what it found', async () => {
    using project = new Project();
    const checks = (await project.examine()).map(({ check }) => check);
    const order = Object.keys(CHECKS);
    expect(checks).toEqual(checks.toSorted((a, b) => order.indexOf(a) - order.indexOf(b)));
    // Without a login and without a system, two have nothing to look at.
    expect(
      order.filter((check) => !checks.some((one) => one === check)).every((check) => /deployment|system/.test(check)),
    ).toBe(true);
  });

  test('a line for each check; below a problem, what it means and the fix', () => {
    const lines = reportOf([
      { check: 'node', state: 'ok', message: '24', problem: null, meaning: null, fix: null },
      { check: 'git', state: 'problem', message: 'm', problem: 'vars_not_ignored', meaning: 'why', fix: 'a\nb' },
    ]);
    expect(lines).toEqual([
      '✓ Node            24',
      '✗ Secrets in git  m',
      '                  why',
      '                  fix: a',
      '                       b',
    ]);
    expect(summaryOf([])).toBe('0 problems, 0 warnings');
  });
});

test('[K5] what the doctor requires of wrangler.toml is what the Worker of this repository has', () => {
  const [own = ''] = readFileSync('wrangler.toml', 'utf8').split('[env.', 1);
  expect(own).toContain(`compatibility_date = "${COMPATIBILITY_DATE}"`);
  expect(own).toContain(`compatibility_flags = [${COMPATIBILITY_FLAGS.map((flag) => `"${flag}"`).join(', ')}]`);
});

describe('[K5] cortex doctor', () => {
  const refused: readonly (readonly [args: readonly string[], env: Record<string, string>, said: string])[] = [
    [['--url', 'http://me:s3cretpw@127.0.0.1:1/?token=t0ken'], {}, '--url must be an address'],
    [[], { CORTEX_URL: 'http://me:s3cretpw@127.0.0.1:1' }, 'CORTEX_URL must be an address'],
    [['--url', 'nonsense'], {}, '--url must be an address'],
    [['--url', ''], {}, '--url must be an address'],
    [['--url', 'http://127.0.0.1:1', '--key', 's3cretpw t0ken'], {}, '--key must be one API key'],
  ];
  test.each(refused)('refuses %j with %j like other commands, and prints no secret', async (args, env, said) => {
    const { out, err, code } = await cortexHere(['doctor', ...args], { cwd: PACKAGE_ROOT, env });
    expect(err).toContain(said);
    expect(`${out}${err}`).not.toMatch(/s3cretpw|t0ken/);
    expect(code).toBe(2);
  });
});

describe('[K5] docs/doctor.md', () => {
  const page = readFileSync('docs/doctor.md', 'utf8');

  test('has a row for each problem, in the order of the checks', () => {
    const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ⏎ ');
    const rows = Object.entries(CHECKS).flatMap(([check, { title }]) =>
      Object.entries(PROBLEMS)
        .filter(([, problem]) => problem.check === check)
        .map(
          ([id, { level, meaning, fix }]) =>
            `| ${title} | ${level === 'problem' ? '✗' : '!'} \`${id}\` | ${cell(meaning)} | \`\`${cell(fix)}\`\` |`,
        ),
    );
    const [, table = ''] = page.split('|---|---|---|---|\n');
    expect(table.split('\n').filter((line) => line.startsWith('|'))).toEqual(rows);
  });
});
