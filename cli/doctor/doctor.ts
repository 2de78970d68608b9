/** The checks of a project, and of a system if one is given (K5): what each needs, and the report of what they find. */
import type { ToolRights } from '../project/code-tools.ts';
import { projectFolders } from '../project/manifest-files.ts';
import type { Connection } from '../terminal/connection.ts';
import {
  checkContainers,
  checkDeployment,
  checkLogin,
  checkPorts,
  checkSandbox,
  sandboxesOf,
} from './check-machine.ts';
import type { Login, Sandboxes } from './check-machine.ts';
import { checkModel, checkRunners, checkSystem } from './check-network.ts';
import { checkManifests, checkNode, checkPackages, checkTools } from './check-project.ts';
import { checkGit, checkKeys, checkSecrets, checkSettings } from './check-settings.ts';
import { checkWorker, checkWrangler } from './check-wrangler.ts';
import type { CheckResult, Finding } from './finding.ts';
import type { Machine, ManifestReport } from './machine.ts';
import type { CheckId } from './problems.ts';
import { readProject } from './project-files.ts';
import type { ProjectFiles } from './project-files.ts';

export interface DoctorOptions {
  /** The project's folder. */
  readonly root: string;
  /** An environment of wrangler.toml; null means the top level. */
  readonly env: string | null;
  /** A running system; null means none. */
  readonly system: Connection | null;
  /** Of the code of the tools while it is loaded. */
  readonly rights: ToolRights;
}

/** What a check may need. */
interface Needs extends Pick<DoctorOptions, 'env' | 'system'> {
  readonly files: ProjectFiles;
  readonly machine: Machine;
  readonly manifests: ManifestReport;
  readonly sandboxes: Sandboxes;
  readonly login: Login;
}

interface Check {
  readonly title: string;
  readonly run: (needs: Needs) => CheckResult | Promise<CheckResult>;
}

/** In the order of the report. */
export const CHECKS: Readonly<Record<CheckId, Check>> = {
  node: { title: 'Node', run: ({ machine }) => checkNode(machine) },
  packages: { title: 'Packages', run: ({ files, machine }) => checkPackages(files, machine) },
  settings: { title: 'Settings', run: ({ files }) => checkSettings(files) },
  keys: { title: 'API keys', run: ({ files }) => checkKeys(files) },
  secrets: { title: 'Secrets', run: ({ files, machine }) => checkSecrets(files, machine) },
  git: { title: 'Secrets in git', run: async ({ files, machine }) => await checkGit(files, machine) },
  wrangler: { title: 'wrangler.toml', run: ({ files, machine }) => checkWrangler(files, machine) },
  worker: { title: 'Worker', run: ({ files, machine }) => checkWorker(files, machine) },
  manifests: { title: 'Manifests', run: ({ manifests }) => checkManifests(manifests) },
  tools: { title: 'Needs of tools', run: ({ files, manifests }) => checkTools(files, manifests) },
  model: { title: 'Model', run: async ({ files, machine }) => await checkModel(files, machine) },
  runner: { title: 'Runner', run: async ({ files, machine }) => await checkRunners(files, machine) },
  sandbox: { title: 'Sandbox', run: ({ files, sandboxes }) => checkSandbox(files, sandboxes) },
  ports: { title: 'Ports', run: async ({ files, machine }) => await checkPorts(files, machine) },
  containers: { title: 'Containers', run: ({ files, sandboxes, login }) => checkContainers(files, sandboxes, login) },
  login: { title: 'Cloudflare login', run: ({ login }) => login.findings },
  deployment: { title: 'Deployed secrets', run: async (needs) => await checkDeployment(needs) },
  system: { title: 'Deployed system', run: async ({ system, machine }) => await checkSystem(system, machine) },
};

/** Runs every check. Never rejects because of what it finds. @returns in the order of the checks */
export async function examine({ root, env, system, rights }: DoctorOptions, machine: Machine): Promise<Finding[]> {
  const files = await readProject(root, env, machine);
  const [sandboxes, login] = await Promise.all([sandboxesOf(files, machine), checkLogin(files, machine)]);
  const manifests = machine.manifests(root, projectFolders(files.settings.start.CORTEX_MANIFESTS), rights);
  const needs = { env, system, files, machine, manifests, sandboxes, login };
  const findings = Object.entries(CHECKS).map(async ([id, { run }]) => {
    const check = id as CheckId;
    const well = { check, state: 'ok', problem: null, meaning: null, fix: null } as const;
    return [await run(needs)].flat().map((one) => (typeof one === 'string' ? { ...well, message: one } : one));
  });
  return (await Promise.all(findings)).flat();
}

const MARKS = { ok: '✓', warning: '!', problem: '✗' } as const;

/** A line for each finding; below a problem, what it means and what removes it. */
export function reportOf(findings: readonly Finding[]): string[] {
  const width = Math.max(...findings.map(({ check }) => CHECKS[check].title.length));
  const indent = ' '.repeat(width + 4);
  return findings.flatMap(({ check, state, message, meaning, fix }) => [
    `${MARKS[state]} ${CHECKS[check].title.padEnd(width)}  ${message}`,
    ...(meaning === null ? [] : [`${indent}${meaning}`]),
    ...(fix === null ? [] : fix.split('\n').map((line, at) => `${indent}${at === 0 ? 'fix: ' : '     '}${line}`)),
  ]);
}

/** The last line of the report. */
export function summaryOf(findings: readonly Finding[]): string {
  const count = (state: Finding['state']): string => {
    const number = findings.filter((one) => one.state === state).length;
    return `${number} ${state}${number === 1 ? '' : 's'}`;
  };
  return `${count('problem')}, ${count('warning')}`;
}
