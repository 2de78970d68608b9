/**
 * Everything that `cortex doctor` finds: what it means, and what removes it. docs/doctor.md lists the same table, which a
 * test compares.
 */

interface Problem<Check extends string = string> {
  readonly check: Check;
  /** A warning does not change the exit code: it concerns only a deployment, or nothing can be said. */
  readonly level: 'problem' | 'warning';
  /** One sentence: what happens because of it. */
  readonly meaning: string;
  /** A command or a line of a file; a finding replaces what is in angle brackets. */
  readonly fix: string;
}

const at =
  (level: Problem['level']) =>
  <Check extends string>(check: Check, meaning: string, fix: string): Problem<Check> => ({
    check,
    level,
    meaning,
    fix,
  });
const problem = at('problem');
const warning = at('warning');

/** By id, which is stable: `--json` prints it. */
export const PROBLEMS = {
  node_too_old: problem('node', 'Wrangler and the runner need a newer Node.', 'npm install --save-dev node@24'),
  package_differs_from_lock: problem(
    'packages',
    'The installed version is not the one of package-lock.json, so this machine and a deployment run different code.',
    'npm ci',
  ),
  package_file_invalid: problem('packages', 'npm cannot read the file.', 'correct package.json'),
  not_installed: problem('packages', 'The package is not installed.', 'npm install'),
  two_zods: warning(
    'packages',
    'The schemas of code tools come from another zod than the one of Cortex Edge, so their types may not match.',
    'npm install zod@<version>',
  ),
  unknown_setting: problem(
    'settings',
    'The setting has no effect: no part of the system reads this name.',
    '<nearest name>=… instead of <name>=… in .dev.vars',
  ),
  malformed_line: problem(
    'settings',
    'The system does not start: it cannot read the line.',
    '<name>=<value> in .dev.vars',
  ),
  invalid_setting: problem('settings', 'The system does not start with this value.', '<name>=… in .dev.vars'),
  keys_malformed: problem(
    'keys',
    'The system does not start: an entry of API_KEYS is not name:role:key, or its role is neither run nor admin.',
    'API_KEYS=admin:admin:<key> in .dev.vars, with a key of openssl rand -hex 24',
  ),
  keys_missing: warning(
    'keys',
    'This machine may call without a key. A deployment without API_KEYS answers no request from elsewhere.',
    'npx wrangler secret put API_KEYS',
  ),
  key_weak: problem('keys', 'The key is short, so it can be guessed.', 'openssl rand -hex 24'),
  runner_secret_missing: problem(
    'secrets',
    'RUNNER_URLS names runners, but requests to them cannot be signed.',
    'RUNNER_SECRET=<secret> in .dev.vars, with the secret of the runner',
  ),
  runner_secret_weak: problem(
    'secrets',
    'The runner does not start with this secret, or it can be guessed.',
    'RUNNER_SECRET=<secret> in .dev.vars and on the runner, with a secret of openssl rand -hex 32',
  ),
  runner_secret_overridden: warning(
    'secrets',
    'The environment has another RUNNER_SECRET than .dev.vars, and takes precedence.',
    'unset RUNNER_SECRET',
  ),
  token_secret_weak: problem(
    'secrets',
    'The system does not start with this secret, or the tokens of sessions can be forged.',
    'SESSION_TOKEN_SECRET=<secret> in .dev.vars, with a secret of openssl rand -hex 32',
  ),
  vars_committed: problem(
    'git',
    'The secrets of .dev.vars are in the history of the repository. Replace them after the fix.',
    "git rm --cached .dev.vars && echo '.dev.vars' >> .gitignore",
  ),
  vars_not_ignored: problem(
    'git',
    'The next git add commits the secrets of .dev.vars.',
    "echo '.dev.vars' >> .gitignore",
  ),
  wrangler_file_missing: problem('wrangler', 'The folder is not a project.', 'npx cortex init <folder>'),
  wrangler_file_invalid: problem('wrangler', 'Wrangler cannot read the file.', 'correct wrangler.toml at this place'),
  binding_missing: problem(
    'wrangler',
    'The Worker cannot reach the objects of this class: requests that need them fail.',
    '[[durable_objects.bindings]]\nname = "<binding>"\nclass_name = "<class>"',
  ),
  migration_missing: problem(
    'wrangler',
    'Cloudflare does not create the objects of a class that no migration names: the deployment is rejected.',
    '[[migrations]]\ntag = "<tag>"\nnew_sqlite_classes = ["<class>"]',
  ),
  migration_without_sqlite: problem(
    'wrangler',
    'The class stores its data with SQL, which objects of new_classes do not have.',
    'new_sqlite_classes = ["<class>"] instead of new_classes in wrangler.toml',
  ),
  compatibility_date_old: problem(
    'wrangler',
    'The platform behaves as at that date, before features that the Worker relies on.',
    'compatibility_date = "<date>"',
  ),
  compatibility_date_future: problem(
    'wrangler',
    'The platform does not know this date yet, so the Worker does not start.',
    'compatibility_date = "<date>"',
  ),
  build_missing: problem(
    'wrangler',
    'A start of wrangler does not collect manifests and tools, so the Worker runs old ones.',
    '[build]\ncommand = "<command>"\nwatch_dir = ["manifests", "tools"]',
  ),
  compatibility_flag_missing: problem(
    'wrangler',
    'A client that leaves is not noticed, so its work continues.',
    'compatibility_flags = [<flags>]',
  ),
  main_missing: problem('worker', 'Wrangler finds no entry point.', 'main = "src/worker.ts" in wrangler.toml'),
  object_not_exported: problem(
    'worker',
    'A class that a binding names is not exported: neither npm start nor a deployment works.',
    "export { <class> } from 'cortex-edge';",
  ),
  entrypoint_not_exported: problem(
    'worker',
    'Code tools run in this class, so every call of one fails.',
    "export { <class> } from 'cortex-edge';",
  ),
  manifest_error: problem('manifests', 'The manifest does not load, so the build fails.', 'npx cortex validate <file>'),
  manifest_warnings: warning('manifests', 'The manifests load with warnings.', 'npx cortex validate'),
  manifests_unread: warning(
    'manifests',
    'The manifests were not checked, because a setting is not valid.',
    'correct the setting, then: npx cortex doctor',
  ),
  tool_secret_missing: problem(
    'tools',
    'Calls that use the secret fail. .dev.vars has the secrets of npm start, `wrangler secret put` those of a deployment.',
    '<name>=… in .dev.vars; npx wrangler secret put <name>',
  ),
  tool_binding_missing: problem(
    'tools',
    'The code tool gets no such binding, so its calls fail.',
    'a binding <name> in wrangler.toml',
  ),
  model_incomplete: problem(
    'model',
    'The model cannot be called: a setting is missing or not known.',
    'LLM_MODEL=<model> in .dev.vars',
  ),
  model_unreachable: problem(
    'model',
    'The endpoint does not answer.',
    'LLM_BASE_URL=<address of a server that runs> in .dev.vars',
  ),
  model_key_refused: problem('model', 'The endpoint does not accept the key.', 'LLM_API_KEY=<key> in .dev.vars'),
  runner_unreachable: problem(
    'runner',
    'The runner does not answer: python, shell and container actions wait, and then fail.',
    'start the runner, or correct RUNNER_URLS in .dev.vars',
  ),
  runner_secret_differs: problem(
    'runner',
    'The runner has another secret, so it refuses every job.',
    'RUNNER_SECRET=<secret> in .dev.vars, the same as on the runner',
  ),
  runner_unhealthy: warning('runner', 'The runner answers, but accepts no jobs now.', 'look at the log of the runner'),
  clock_skew: problem(
    'runner',
    'The clocks differ by more than the lifetime of a signature, so the runner refuses every job.',
    'sudo timedatectl set-ntp true on the machine with the wrong clock',
  ),
  sandbox_weak: warning(
    'sandbox',
    'Programs run in the embedded sandbox: fewer commands and packages, and no container tools.',
    'sudo apt-get install bubblewrap',
  ),
  sandbox_missing: problem(
    'sandbox',
    'RUNNER_SANDBOX asks for a level that this machine does not have, so the runner runs no programs.',
    'remove RUNNER_SANDBOX from .dev.vars, or install the level',
  ),
  ports_equal: problem(
    'ports',
    'The Worker and the runner cannot both listen there.',
    'RUNNER_PORT=<port> npx cortex dev',
  ),
  port_in_use: problem('ports', 'Another program listens on the port.', 'PORT=<port> npx cortex dev'),
  port_of_system: warning('ports', 'A Cortex Edge runs on the port already.', 'PORT=<port> npx cortex dev'),
  docker_missing: problem(
    'containers',
    'Wrangler builds the image of the containers with Docker, which does not answer here.',
    'install Docker and start it',
  ),
  docker_missing_elsewhere: warning(
    'containers',
    'Another environment of wrangler.toml has containers, and only machines with Docker can deploy it.',
    'install Docker and start it',
  ),
  containers_plan: warning(
    'containers',
    'Containers need the Workers Paid plan, which cannot be checked without a login.',
    'npx wrangler login',
  ),
  too_many_instances: problem(
    'containers',
    'The Worker uses more containers than Cloudflare starts, so some jobs wait until they fail.',
    'max_instances = <number>',
  ),
  wrangler_missing: problem('login', 'Wrangler is not installed.', 'npm install --save-dev wrangler'),
  not_logged_in: warning('login', 'Nothing can be deployed from this machine.', 'npx wrangler login'),
  login_unknown: warning('login', 'Cloudflare could not be asked.', 'npx wrangler whoami'),
  not_deployed: warning('deployment', 'The secrets of the deployment are not known.', 'npx cortex deploy'),
  deployed_secret_missing: problem(
    'deployment',
    'The deployment does not have the secret.',
    'npx wrangler secret put <name>',
  ),
  system_unreachable: problem('system', 'No Cortex Edge answers at the address.', 'npx cortex doctor --url <address>'),
  system_key_refused: problem('system', 'The system does not know the key.', 'npx cortex doctor --key <key>'),
  system_part_missing: problem('system', 'A configured part of the system does not work.', 'npx cortex doctor'),
  system_starting: warning('system', 'The system is not ready.', 'npx cortex doctor --url <address>'),
  system_version: warning('system', 'The system runs another version than this project.', 'npx cortex deploy'),
  system_clock: problem(
    'system',
    'The clocks differ, so tokens that one machine creates are not valid on the other.',
    'sudo timedatectl set-ntp true',
  ),
} as const satisfies Readonly<Record<string, Problem>>;

export type ProblemId = keyof typeof PROBLEMS;
export type CheckId = (typeof PROBLEMS)[ProblemId]['check'];
