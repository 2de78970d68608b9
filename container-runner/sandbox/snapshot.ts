/** Stores the memory of a loaded interpreter in a file. Restoring it is about five times faster than loading. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';

import { limits } from '../limits.ts';
import type { StateFolder } from '../state.ts';

export interface SnapshotSource {
  readonly state: StateFolder;
  readonly harness: string;
  /** The interpreter's directory. */
  readonly pyodide: string;
  /** The command that writes a snapshot to standard output. */
  readonly build: () => string[];
  readonly warn: (message: string) => void;
}

const ENDING = '.snapshot';

/**
 * Returns the snapshot file for this interpreter, Node and harness; creates it if necessary. Its name contains the hash of
 * its content; a truncated or changed file is set aside, because every interpreter would fail with it. Null if there is
 * no snapshot: interpreters are then loaded the slow way.
 */
export async function snapshotOf(source: SnapshotSource): Promise<string | null> {
  const { state } = source;
  try {
    const identity = createHash('sha256').update(process.version).update(process.arch);
    for (const file of [
      path.join(source.pyodide, 'package.json'),
      source.harness,
      new URL(`../guest/python${path.extname(import.meta.filename)}`, import.meta.url),
    ]) {
      identity.update(await fs.readFile(file));
    }
    const family = `python-${identity.digest('hex').slice(0, 16)}-`;
    await fs.mkdir(state.directory, { recursive: true });
    const known = (await fs.readdir(state.directory)).filter(
      (name) => name.startsWith(family) && name.endsWith(ENDING),
    );
    for (const name of known) {
      state.requireFile(name);
      const bytes = await fs.readFile(state.file(name)).catch(() => null);
      if (bytes === null) continue;
      if (name === nameOf(family, bytes)) return state.file(name);
      state.setAside(name, 'its content does not match the hash in its name');
    }
    const bytes = await outputOf(source.build());
    const name = nameOf(family, bytes);
    const partial = state.file(`${name}.${process.pid}.tmp`);
    await fs.writeFile(partial, bytes, { mode: 0o644 });
    await fs.rename(partial, state.file(name));
    await removeOthers(state.directory, name);
    return state.file(name);
  } catch (fault) {
    source.warn(
      `No snapshot of the Python interpreter; each start takes seconds (${fault instanceof Error ? fault.message : String(fault)})`,
    );
    return null;
  }
}

function nameOf(family: string, bytes: Uint8Array): string {
  return `${family}${createHash('sha256').update(bytes).digest('hex').slice(0, 16)}${ENDING}`;
}

async function removeOthers(directory: string, keep: string): Promise<void> {
  for (const name of await fs.readdir(directory)) {
    if (name.endsWith(ENDING) && name !== keep) await fs.rm(path.join(directory, name), { force: true });
  }
}

function outputOf([command = '', ...args]: readonly string[]): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: path.parse(process.execPath).root,
      env: {},
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: limits.warmUpMs,
      killSignal: 'SIGKILL',
    });
    const chunks: Buffer[] = [];
    let printed = '';
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => {
      printed = `${printed}${chunk.toString()}`.slice(0, 2_000);
    });
    child.once('error', reject);
    child.once('close', (code) => {
      const bytes = Buffer.concat(chunks);
      if (code === 0 && bytes.length > 0) resolve(bytes);
      else reject(new Error(`the interpreter ended with exit code ${code ?? 'unknown'}: ${printed.trim()}`));
    });
  });
}
