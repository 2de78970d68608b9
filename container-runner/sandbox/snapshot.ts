/** The memory of a loaded interpreter, kept in a file: restoring it is some five times faster than loading. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';

import { limits } from '../limits.ts';

export interface SnapshotSource {
  readonly stateDir: string;
  readonly harness: string;
  /** The interpreter's directory. */
  readonly pyodide: string;
  /** The command that writes a snapshot to its standard output. */
  readonly build: () => string[];
  readonly warn: (message: string) => void;
}

/**
 * The file of the snapshot that fits this interpreter, this Node and this harness; built if there is
 * none. Null when it cannot be had: interpreters are then loaded the slow way.
 */
export async function snapshotOf(source: SnapshotSource): Promise<string | null> {
  try {
    const directory = path.resolve(source.stateDir, 'runner');
    const identity = createHash('sha256').update(process.version).update(process.arch);
    for (const file of [
      path.join(source.pyodide, 'package.json'),
      source.harness,
      new URL('../guest/python.ts', import.meta.url),
    ]) {
      identity.update(await fs.readFile(file));
    }
    const file = path.join(directory, `python-${identity.digest('hex').slice(0, 16)}.snapshot`);
    const known = await fs.stat(file).catch(() => null);
    if (known?.isFile() === true) return file;
    await fs.mkdir(directory, { recursive: true });
    const partial = `${file}.${process.pid}.tmp`;
    await fs.writeFile(partial, await outputOf(source.build()), { mode: 0o644 });
    await fs.rename(partial, file);
    await removeOthers(directory, path.basename(file));
    return file;
  } catch (fault) {
    source.warn(
      `No snapshot of the python interpreter; each one takes seconds to load (${fault instanceof Error ? fault.message : String(fault)})`,
    );
    return null;
  }
}

async function removeOthers(directory: string, keep: string): Promise<void> {
  for (const name of await fs.readdir(directory)) {
    if (name.endsWith('.snapshot') && name !== keep) await fs.rm(path.join(directory, name), { force: true });
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
    let said = '';
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => {
      said = `${said}${chunk.toString()}`.slice(0, 2_000);
    });
    child.once('error', reject);
    child.once('close', (code) => {
      const bytes = Buffer.concat(chunks);
      if (code === 0 && bytes.length > 0) resolve(bytes);
      else reject(new Error(`the interpreter ended with exit code ${code ?? 'unknown'}: ${said.trim()}`));
    });
  });
}
