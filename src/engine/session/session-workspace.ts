/**
 * The files of one session (C7), in memory.
 *
 * Invariant: a change is made in one turn, after all of its checks: completely, or not at all.
 */
import { bytesToHex } from '@noble/hashes/utils.js';
import { EngineError, unknownSession } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { Clock, WorkspaceStore } from '../../domain/ports.ts';
import { pathIssue } from '../../domain/workspace.ts';
import type { WorkspaceFile } from '../../domain/workspace.ts';

interface Stored extends WorkspaceFile {
  readonly bytes: Uint8Array;
}

interface WorkspacePorts {
  readonly clock: Clock;
  /** Whether the session is closed. */
  readonly isGone: () => boolean;
}

export class SessionWorkspace implements WorkspaceStore {
  readonly maxBytes = limits.workspaceBytes;
  readonly #ports: WorkspacePorts;
  #files: ReadonlyMap<string, Stored> = new Map();

  constructor(ports: WorkspacePorts) {
    this.#ports = ports;
  }

  list(): readonly WorkspaceFile[] {
    return [...this.#files.values()].map(shown).sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  file(path: string): WorkspaceFile | null {
    const found = this.#files.get(path);
    return found === undefined ? null : shown(found);
  }

  async read(hash: string): Promise<Uint8Array | null> {
    if (this.#ports.isGone()) throw unknownSession();
    return await Promise.resolve([...this.#files.values()].find((file) => file.sha256 === hash)?.bytes ?? null);
  }

  async write(
    files: readonly { readonly path: string; readonly bytes: Uint8Array; readonly executable?: boolean }[],
    check?: () => void,
  ): Promise<readonly WorkspaceFile[]> {
    const written: Stored[] = [];
    for (const { path, bytes, executable = false } of files) {
      const issue = pathIssue(path);
      if (issue !== null) throw new EngineError('invalid_request', `The path cannot name a file: ${issue}`);
      const hash = await crypto.subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>);
      const modifiedAt = this.#ports.clock.now();
      written.push({
        path,
        sha256: bytesToHex(new Uint8Array(hash)),
        size: bytes.length,
        executable,
        modifiedAt,
        bytes,
      });
    }
    // From here on in one turn.
    if (this.#ports.isGone()) throw unknownSession();
    check?.();
    const next = new Map(this.#files);
    for (const file of written) {
      for (const other of next.keys()) {
        if (other.startsWith(`${file.path}/`) || file.path.startsWith(`${other}/`)) next.delete(other);
      }
      next.set(file.path, file);
    }
    const total = [...next.values()].reduce((sum, { size }) => sum + size, 0);
    if (total > this.maxBytes || next.size > limits.workspaceFiles) {
      const message = `The workspace may have ${limits.workspaceFiles} files with ${this.maxBytes} bytes together`;
      throw new EngineError('workspace_full', message);
    }
    this.#files = next;
    return written.map(shown);
  }

  async remove(path: string, check?: () => void): Promise<readonly WorkspaceFile[]> {
    if (this.#ports.isGone()) throw unknownSession();
    check?.();
    const removed = this.list().filter((file) => file.path === path || file.path.startsWith(`${path}/`));
    const next = new Map(this.#files);
    for (const file of removed) next.delete(file.path);
    this.#files = next;
    return await Promise.resolve(removed);
  }
}

function shown({ bytes: _bytes, ...file }: Stored): WorkspaceFile {
  return file;
}
