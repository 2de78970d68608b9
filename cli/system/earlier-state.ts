/**
 * Data of versions before schema 1, which this version cannot read. It is recognised by classes of objects that were in every
 * such version, and that schema 1 does not have.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { EngineError } from '../../src/domain/errors.ts';
import { wranglerJson } from './wrangler.ts';

const CLASSES: readonly string[] = ['ExecutionIndexObject', 'IdentityObject'];

/** @param stateDir as people write it @throws EngineError `schema_too_old` for the state of a version before schema 1 */
export function requireReadableState(stateDir: string, root: string): void {
  let folders: string[];
  try {
    // One for each class: `<Worker>-<class>`.
    folders = readdirSync(join(root, 'worker/v3/do'));
  } catch {
    // It does not exist yet.
    return;
  }
  if (!folders.some((name) => CLASSES.some((type) => name.endsWith(`-${type}`)))) return;
  throw new EngineError(
    'schema_too_old',
    `${stateDir} has the sessions of a version before schema 1, which this version cannot read. Remove the folder, or use another one with CORTEX_STATE_DIR`,
  );
}

interface Deployment {
  readonly versions: readonly { readonly version_id: string }[];
}

interface Version {
  readonly resources?: { readonly bindings?: readonly { readonly type: string; readonly class_name?: string }[] };
}

/**
 * Asks Cloudflare which classes the deployed Worker has. Without a login or a deployment there is nothing to compare.
 *
 * @param args which Worker, as arguments of wrangler: `--env`, `--config`, `--name`
 * @param ask runs wrangler, and returns null if it fails
 * @throws EngineError `schema_too_old` if a version before schema 1 is deployed under this name
 */
export function requireReadableDeployment(args: readonly string[], ask = wranglerJson): void {
  const deployed = ask(['deployments', 'status', '--json', ...args]) as Deployment | null;
  for (const { version_id: id } of deployed?.versions ?? []) {
    const version = ask(['versions', 'view', id, '--json', ...args]) as Version | null;
    const isEarlier =
      version?.resources?.bindings?.some(({ class_name: type = '' }) => CLASSES.includes(type)) === true;
    if (!isEarlier) continue;
    throw new EngineError(
      'schema_too_old',
      'A version before schema 1 is deployed under this name. This version cannot read its objects, so nothing was uploaded. Deploy under a new Worker name: change "name" in wrangler.toml, or see cortex stage --help',
    );
  }
}
