/** What is installed, and what the manifests need. */
import { dirname, join, relative, sep } from 'node:path';
import { bindingIssue } from '../../src/domain/bindings.ts';
import { isJsonObject, parseObject } from '../../src/domain/json.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { nearestNames } from '../../src/domain/nearest.ts';
import { namespacesOf } from '../../src/http/api-keys.ts';
import { apiKeysOf } from '../../src/settings/keys.ts';
import { deploymentOf } from '../../src/settings/deployment.ts';
import { MANIFESTS } from '../project/folders.ts';
import { isNodeSupported, LEAST_NODE } from '../project/least-node.ts';
import { found } from './finding.ts';
import type { CheckResult, Finding } from './finding.ts';
import type { Machine, ManifestReport } from './machine.ts';
import type { ProjectFiles } from './project-files.ts';

/** Errors of a folder from elsewhere; the command in the fix prints all. */
const SHOWN_ERRORS = 10;

export function checkNode({ nodeVersion }: Machine): CheckResult {
  if (isNodeSupported(nodeVersion)) return nodeVersion;
  return found('node_too_old', `Node ${nodeVersion}; at least ${LEAST_NODE} is needed`);
}

/** In a workspace, packages and the lock file may be in a folder above the project. */
export function checkPackages({ root }: ProjectFiles, machine: Machine): CheckResult {
  const read = (folder: string, file: string): JsonObject | null => parseObject(machine.read(join(folder, file)) ?? '');
  const text = machine.read(join(root, 'package.json'));
  const own = parseObject(text ?? '');
  if (own === null && text !== null) return found('package_file_invalid', 'package.json is not a JSON object');
  if (own === null) return found('not_installed', 'the folder has no package.json', 'npx cortex init <folder>');
  const installed = (name: string, from = root): Package | null =>
    firstOf(foldersFrom(from), (above) => {
      const folder = join(above, 'node_modules', name);
      const version = read(folder, 'package.json')?.['version'];
      return version === undefined ? null : { folder, version: String(version) };
    });
  const locked = lockedVersions(root, read);
  // In the repository of Cortex Edge, the package is the project.
  const isPackage = own['name'] === NAME;
  const findings: Finding[] = [];
  for (const name of isPackage ? ['zod', 'wrangler'] : [NAME, 'zod', 'wrangler']) {
    const wanted = locked(name);
    const version = installed(name)?.version;
    if (version === undefined) {
      if (name === NAME || wanted !== null) findings.push(found('not_installed', `${name} is not installed`));
    } else if (wanted !== null && wanted !== version) {
      const message = `${name} ${version} is installed, package-lock.json has ${wanted}`;
      findings.push(found('package_differs_from_lock', message));
    }
  }
  const edge = installed(NAME);
  const ours = edge === null ? null : installed('zod', edge.folder);
  const other = installed('zod');
  if (ours !== null && ours.folder !== other?.folder) {
    const message = `zod ${other?.version ?? 'none'} of the project, and zod ${ours.version} of ${NAME}`;
    findings.push(found('two_zods', message, `npm install zod@${ours.version}`));
  }
  return findings.length > 0 ? findings : 'as in package-lock.json';
}

const NAME = 'cortex-edge';

interface Package {
  readonly folder: string;
  readonly version: string;
}

/** What the nearest package-lock.json has for a package that is resolved from the project; null if it has none. */
function lockedVersions(
  root: string,
  read: (folder: string, file: string) => JsonObject | null,
): (name: string) => string | null {
  const above = foldersFrom(root);
  const at = above.findIndex((folder) => read(folder, 'package-lock.json') !== null);
  const place = above[at];
  if (place === undefined) return () => null;
  const packages = read(place, 'package-lock.json')?.['packages'];
  if (!isJsonObject(packages)) return () => null;
  return (name) =>
    firstOf(above.slice(0, at + 1), (folder) => {
      const entry =
        packages[
          relative(place, join(folder, 'node_modules', name))
            .split(sep)
            .join('/')
        ];
      return isJsonObject(entry) && typeof entry['version'] === 'string' ? entry['version'] : null;
    });
}

/** A folder and those above it, the nearest first: Node looks for packages in this order. */
function foldersFrom(folder: string): string[] {
  const above = dirname(folder);
  return above === folder ? [folder] : [folder, ...foldersFrom(above)];
}

function firstOf<T, R>(list: readonly T[], find: (one: T) => R | null): R | null {
  for (const one of list) {
    const result = find(one);
    if (result !== null) return result;
  }
  return null;
}

export function checkManifests({ fault, missing, errors, warnings, definitions }: ManifestReport): CheckResult {
  if (fault !== null) return found('manifests_unread', fault);
  const findings = missing.map((folder) => {
    const fix = folder === MANIFESTS ? `mkdir ${folder}` : `mkdir ${folder}, or correct CORTEX_MANIFESTS`;
    return found('manifest_error', `${folder}: no such folder`, fix);
  });
  const shown = errors.slice(0, SHOWN_ERRORS);
  const rest = errors.length - shown.length;
  findings.push(
    ...shown.map(({ file, text }, at) =>
      found(
        'manifest_error',
        at === shown.length - 1 && rest > 0 ? `${text} (and ${rest} more)` : text,
        `correct the line, then: npx cortex validate ${file}`,
      ),
    ),
  );
  if (findings.length > 0) return findings;
  return [
    `${definitions} manifests load`,
    ...(warnings > 0 ? [found('manifest_warnings', `${warnings} warnings`)] : []),
  ];
}

export function checkTools(files: ProjectFiles, { secrets: named, bindings }: ManifestReport): CheckResult {
  const secrets = new Map(named.map(({ name, file }) => [name, file]));
  const missing = missingSecret(files.worker);
  const findings = [...secrets].flatMap(([name, file]): Finding | [] => {
    const reason = missing(name);
    if (reason === null) return [];
    return found(
      'tool_secret_missing',
      `${name}, which ${file} uses: ${reason}`,
      `${name}=… in .dev.vars; for a deployment: npx wrangler secret put ${name}`,
    );
  });
  const known = files.environment?.bindings ?? new Set<string>();
  const usable = [...known].filter((name) => bindingIssue(name) === null);
  for (const { name, tool, file } of bindings) {
    if (known.has(name)) continue;
    const [nearest] = nearestNames(name, usable);
    findings.push(
      found(
        'tool_binding_missing',
        `${file}: the tool ${tool} uses the binding ${name}, which wrangler.toml does not have`,
        nearest === undefined
          ? bindingExample(name)
          : `"${nearest}" instead of "${name}" in ${file}, or ${bindingExample(name)}`,
      ),
    );
  }
  if (findings.length > 0) return findings;
  return `${secrets.size} secrets and ${bindings.length} bindings are there`;
}

function bindingExample(name: string): string {
  return `a binding in wrangler.toml, such as:\n[[kv_namespaces]]\nbinding = "${name}"\nid = "<id of npx wrangler kv namespace create ${name}>"`;
}

/** Why the manifests of no namespace can read a secret. */
function missingSecret(worker: ProjectFiles['worker']): (name: string) => string | null {
  try {
    const owners = namespacesOf(apiKeysOf(worker));
    const { missingSecret: reasonOf } = deploymentOf(worker, owners.length === 0 ? [null] : owners);
    return reasonOf;
  } catch {
    // The check of the keys reports it.
    return (name) => (worker[name] === undefined ? 'it is not set' : null);
  }
}
