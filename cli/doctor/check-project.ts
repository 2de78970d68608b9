/** What is installed, and what the manifests need. */
import { join } from 'node:path';
import { bindingIssue } from '../../src/domain/bindings.ts';
import { isJsonObject, parseObject } from '../../src/domain/json.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { nearestNames } from '../../src/domain/nearest.ts';
import { namespacesOf } from '../../src/http/api-keys.ts';
import { apiKeysOf } from '../../src/settings/keys.ts';
import { deploymentOf } from '../../src/settings/deployment.ts';
import { MANIFESTS } from '../project/folders.ts';
import { found, ok } from './finding.ts';
import type { Finding } from './finding.ts';
import type { Machine, ManifestReport } from './machine.ts';
import type { ProjectFiles } from './project-files.ts';

/** Wrangler's least version. */
const LEAST_NODE = 22;
/** Errors of a folder from elsewhere; the command in the fix prints all. */
const SHOWN_ERRORS = 10;

export function checkNode({ nodeVersion }: Machine): Finding[] {
  const major = Number(nodeVersion.split('.')[0]);
  if (major >= LEAST_NODE) return [ok('node', nodeVersion)];
  return [found('node_too_old', `Node ${nodeVersion}; at least ${LEAST_NODE} is needed`)];
}

export function checkPackages({ root }: ProjectFiles, machine: Machine): Finding[] {
  const read = (path: string): JsonObject | null => parseObject(machine.read(join(root, path)) ?? '');
  const own = read('package.json');
  if (own === null) return [found('not_installed', 'the folder has no package.json', 'npx cortex init <folder>')];
  // In the repository of Cortex Edge, the package is the project.
  const isPackage = own['name'] === NAME;
  const lock = read('package-lock.json');
  const locked = isJsonObject(lock?.['packages']) ? lock['packages'] : {};
  const findings: Finding[] = [];
  for (const name of isPackage ? ['zod', 'wrangler'] : [NAME, 'zod', 'wrangler']) {
    const entry = locked[`node_modules/${name}`];
    const wanted = isJsonObject(entry) ? entry['version'] : undefined;
    const installed = read(`node_modules/${name}/package.json`)?.['version'];
    if (installed === undefined) {
      if (name === NAME || wanted !== undefined) findings.push(found('not_installed', `${name} is not installed`));
    } else if (wanted !== undefined && wanted !== installed) {
      const message = `${name} ${String(installed)} is installed, package-lock.json has ${String(wanted)}`;
      findings.push(found('package_differs_from_lock', message));
    }
  }
  const ours = read(`node_modules/${NAME}/node_modules/zod/package.json`)?.['version'];
  if (ours !== undefined) {
    const other = String(read('node_modules/zod/package.json')?.['version'] ?? 'none');
    const message = `zod ${other} of the project, and zod ${String(ours)} of ${NAME}`;
    findings.push(found('two_zods', message, `npm install zod@${String(ours)}`));
  }
  return findings.length > 0 ? findings : [ok('packages', 'as in package-lock.json')];
}

const NAME = 'cortex-edge';

export function checkManifests({ fault, missing, errors, warnings, definitions }: ManifestReport): Finding[] {
  if (fault !== null) return [found('manifests_unread', fault)];
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
    ok('manifests', `${definitions} manifests load`),
    ...(warnings > 0 ? [found('manifest_warnings', `${warnings} warnings`)] : []),
  ];
}

export function checkTools(files: ProjectFiles, { secrets: named, bindings }: ManifestReport): Finding[] {
  const secrets = new Map(named.map(({ name, file }) => [name, file]));
  const missing = missingSecret(files.worker);
  const findings = [...secrets].flatMap(([name, file]) => {
    const reason = missing(name);
    if (reason === null) return [];
    return [
      found(
        'tool_secret_missing',
        `${name}, which ${file} uses: ${reason}`,
        `${name}=… in .dev.vars; for a deployment: npx wrangler secret put ${name}`,
      ),
    ];
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
  return [ok('tools', `${secrets.size} secrets and ${bindings.length} bindings are there`)];
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
