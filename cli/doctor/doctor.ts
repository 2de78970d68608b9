/** All checks of a project, and of a system if one is given (K5). */
import {
  checkDeployment,
  checkContainers,
  checkLogin,
  checkPorts,
  checkSandbox,
  sandboxesOf,
} from './check-machine.ts';
import { checkModel, checkRunners, checkSystem } from './check-network.ts';
import { checkManifests, checkNode, checkPackages, checkTools } from './check-project.ts';
import { checkGit, checkKeys, checkSecrets, checkSettings } from './check-settings.ts';
import { checkWorker, checkWrangler } from './check-wrangler.ts';
import type { Finding } from './finding.ts';
import type { Machine } from './machine.ts';
import type { ToolRights } from '../project/code-tools.ts';
import { projectFolders } from '../project/manifest-files.ts';
import type { Connection } from '../terminal/connection.ts';
import { readProject } from './project-files.ts';

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

/** Runs every check. Never rejects because of what it finds. */
export async function examine({ root, env, system, rights }: DoctorOptions, machine: Machine): Promise<Finding[]> {
  const files = await readProject(root, env, machine);
  const report = machine.manifests(root, projectFolders(files.settings.start.CORTEX_MANIFESTS), rights);
  const [sandboxes, login, ...asked] = await Promise.all([
    sandboxesOf(files, machine),
    checkLogin(files, machine),
    checkGit(files, machine),
    checkPorts(files, machine),
    checkRunners(files, machine),
    checkModel(files, machine),
    system === null ? [] : checkSystem(system, machine),
  ]);
  const needed = report.secrets.map(({ name }) => name);
  return [
    ...checkNode(machine),
    ...checkPackages(files, machine),
    ...checkSettings(files),
    ...checkKeys(files),
    ...checkSecrets(files, machine),
    ...checkWrangler(files, machine),
    ...checkWorker(files, machine),
    ...checkManifests(report),
    ...checkTools(files, report),
    ...checkSandbox(files, sandboxes),
    ...checkContainers(files, sandboxes, login.isLoggedIn),
    ...login.findings,
    ...(login.isLoggedIn === true ? await checkDeployment(files, { env, needed }, machine) : []),
    ...asked.flat(),
  ];
}
