/** This machine: sandboxes, ports and Docker; and the account at Cloudflare. */
import { SERVICE as RUNNER } from '../../container-runner/version.ts';
import { parseRunnerUrls } from '../../src/executors/runner/list.ts';
import { portIn } from '../system/ports.ts';
import type { PortName } from '../system/ports.ts';
import { found } from './finding.ts';
import type { CheckResult, Finding } from './finding.ts';
import type { Machine, ManifestReport } from './machine.ts';
import type { ProjectFiles } from './project-files.ts';

/** Which programs this machine can run in a sandbox. */
export interface Sandboxes {
  readonly hasDocker: boolean;
  readonly hasBubblewrap: boolean;
}

export async function sandboxesOf({ root, settings }: ProjectFiles, machine: Machine): Promise<Sandboxes> {
  const { RUNNER_DOCKER: socket } = settings.runner;
  const [docker, bubblewrap] = await Promise.all([
    machine.run(root, 'docker', [
      ...(socket === undefined || socket === 'off' ? [] : ['--host', `unix://${socket}`]),
      'version',
      '--format',
      '{{.Server.Version}}',
    ]),
    machine.run(root, 'bwrap', ['--ro-bind', '/', '/', '--unshare-all', '--die-with-parent', 'true']),
  ]);
  return { hasDocker: docker.status === 0, hasBubblewrap: bubblewrap.status === 0 };
}

export function checkSandbox({ settings }: ProjectFiles, { hasDocker, hasBubblewrap }: Sandboxes): CheckResult {
  const { RUNNER_SANDBOX: wanted, RUNNER_DOCKER: socket } = settings.runner;
  const usesDocker = hasDocker && socket !== 'off';
  if (wanted === 'docker' && !usesDocker) {
    return found(
      'sandbox_missing',
      'RUNNER_SANDBOX is docker, and no engine answers',
      'start Docker, or remove RUNNER_SANDBOX from .dev.vars',
    );
  }
  if (wanted === 'bubblewrap' && !hasBubblewrap) {
    return found(
      'sandbox_missing',
      'RUNNER_SANDBOX is bubblewrap, which does not start here',
      'sudo apt-get install bubblewrap, or remove RUNNER_SANDBOX from .dev.vars',
    );
  }
  if (wanted !== undefined) return `${wanted}, as RUNNER_SANDBOX says`;
  if (usesDocker) return 'docker';
  if (hasBubblewrap) return 'bubblewrap; container actions need Docker';
  return found('sandbox_weak', 'wasm: neither Docker nor bubblewrap works here');
}

export async function checkPorts({ settings, worker }: ProjectFiles, machine: Machine): Promise<CheckResult> {
  const names: readonly PortName[] = runnersOf(worker) === 0 ? ['PORT', 'RUNNER_PORT'] : ['PORT'];
  // The check of the settings reports what is not a port.
  const wanted = names.flatMap((name) => {
    const port = portIn(settings.start, name);
    return port === null ? [] : [[name, port] as const];
  });
  const [first, second] = wanted.map(([, port]) => port);
  if (first !== undefined && first === second) {
    return found(
      'ports_equal',
      `PORT and RUNNER_PORT are ${first}`,
      `RUNNER_PORT=${await freeNear(first, machine)} npx cortex dev`,
    );
  }
  const findings = await Promise.all(wanted.map(async ([name, one]) => await checkPort(name, one, machine)));
  const taken = findings.filter((one) => one !== null);
  if (taken.length > 0 || wanted.length === 0) return taken;
  return `${wanted.map(([, one]) => one).join(' and ')} ${wanted.length === 1 ? 'is' : 'are'} free`;
}

async function checkPort(name: string, port: number, machine: Machine): Promise<Finding | null> {
  if (await machine.isPortFree(port)) return null;
  const fix = `${name}=${await freeNear(port, machine)} npx cortex dev`;
  const service = await machine
    .fetch(`http://127.0.0.1:${port}/health`)
    .then(async (answer) => (await answer.text()).slice(0, HEALTH_CHARS))
    .catch(() => '');
  const isOurs = ['cortex-edge', RUNNER].some((name) => service.includes(`"service":"${name}"`));
  return found(isOurs ? 'port_of_system' : 'port_in_use', `${name} ${port} is in use`, fix);
}

const HEALTH_CHARS = 65_536;
/** The ports of a second system are near those of the first. */
const PORTS_TRIED = 20;

async function freeNear(port: number, machine: Machine): Promise<number> {
  for (let other = port + 10; other < port + 10 + PORTS_TRIED; other += 1) {
    if (await machine.isPortFree(other)) return other;
  }
  return port + 10;
}

function runnersOf(worker: ProjectFiles['worker']): number {
  try {
    return parseRunnerUrls(worker['RUNNER_URLS']).length;
  } catch {
    return 0;
  }
}

export function checkContainers(
  { environment, containersElsewhere }: ProjectFiles,
  { hasDocker }: Sandboxes,
  { isLoggedIn }: Pick<Login, 'isLoggedIn'>,
): CheckResult {
  const containers = environment?.containers ?? [];
  if (containers.length === 0) {
    if (containersElsewhere.length === 0) return 'wrangler.toml has none';
    const names = containersElsewhere.join(', ');
    if (hasDocker) return `only in the environment ${names}; Docker answers`;
    return found('docker_missing_elsewhere', `the environment ${names} has containers, and Docker does not answer`);
  }
  const findings: Finding[] = [];
  if (!hasDocker) findings.push(found('docker_missing', 'wrangler.toml has containers, and Docker does not answer'));
  if (isLoggedIn !== true) findings.push(found('containers_plan', 'the plan of the account is not known'));
  const wanted = Number(environment?.vars['RUNNER_INSTANCES'] ?? 0);
  for (const one of containers) {
    const most = Number(one['max_instances'] ?? 1);
    if (one['class_name'] === 'RunnerContainer' && wanted > most) {
      const message = `RUNNER_INSTANCES is ${wanted}, max_instances of RunnerContainer ${most}`;
      findings.push(found('too_many_instances', message, `max_instances = ${wanted}`));
    }
  }
  return findings.length > 0 ? findings : `${containers.length} with Docker`;
}

export interface Login {
  readonly findings: CheckResult;
  /** Null if it is not known. */
  readonly isLoggedIn: boolean | null;
}

export async function checkLogin({ root }: ProjectFiles, machine: Machine): Promise<Login> {
  const end = await machine.wrangler(root, ['whoami']);
  if (end === null) return { isLoggedIn: null, findings: found('wrangler_missing', 'wrangler is not installed') };
  const { status, output } = end;
  if (/not authenticated/i.test(output)) {
    return { isLoggedIn: false, findings: found('not_logged_in', 'wrangler is not logged in') };
  }
  if (status === 0) return { isLoggedIn: true, findings: 'wrangler is logged in' };
  return { isLoggedIn: null, findings: found('login_unknown', 'wrangler whoami has no answer') };
}

/** Only with a login: the secrets of the deployment are those that the settings and the manifests need. */
export async function checkDeployment({
  files: { root, worker, environment },
  env,
  manifests,
  login,
  machine,
}: {
  readonly files: ProjectFiles;
  readonly env: string | null;
  readonly manifests: Pick<ManifestReport, 'secrets'>;
  readonly login: Login;
  readonly machine: Machine;
}): Promise<CheckResult> {
  if (login.isLoggedIn !== true) return [];
  const needed = manifests.secrets.map(({ name }) => name);
  const args = ['secret', 'list', '--format', 'json', ...(env === null ? [] : ['--env', env])];
  const end = await machine.wrangler(root, args);
  const names = end?.status === 0 ? secretNames(end.stdout) : null;
  if (names === null)
    return found('not_deployed', 'wrangler secret list has no answer: the Worker is not deployed yet');
  const vars = new Set(Object.keys(environment?.vars ?? {}));
  const hasRunner = vars.has('RUNNER_URLS') || names.has('RUNNER_URLS') || worker['RUNNER_URLS'] !== undefined;
  const wanted = ['API_KEYS', ...(hasRunner ? ['RUNNER_URLS', 'RUNNER_SECRET'] : []), ...needed];
  const missing = [...new Set(wanted)].filter((name) => !names.has(name) && !vars.has(name));
  if (missing.length === 0) return `${names.size} secrets`;
  const option = env === null ? '' : ` --env ${env}`;
  return missing.map((name) =>
    found(
      'deployed_secret_missing',
      `${name} is not a secret of the deployment`,
      `npx wrangler secret put ${name}${option}`,
    ),
  );
}

function secretNames(output: string): Set<string> | null {
  try {
    const start = output.indexOf('[');
    const list = JSON.parse(output.slice(Math.max(0, start))) as readonly { readonly name: string }[];
    return new Set(list.map(({ name }) => name));
  } catch {
    return null;
  }
}
