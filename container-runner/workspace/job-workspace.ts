/** The workspace of one job (C7), from its request to its end. */
import { RunnerError } from '../problem.ts';
import type { FileCache } from './file-cache.ts';
import { JobReceiver, UNCHANGED, type WireResult } from './receiver.ts';
import type { JobWorkspaceRequest } from './request.ts';
import type { LaunchWorkspace } from './workspace.ts';

export class JobWorkspace {
  readonly #cache: FileCache;
  readonly #session: string;
  readonly #request: JobWorkspaceRequest;
  readonly #unpin: () => void;
  #receiver: JobReceiver | null = null;

  private constructor(cache: FileCache, session: string, request: JobWorkspaceRequest) {
    this.#cache = cache;
    this.#session = session;
    this.#request = request;
    this.#unpin = cache.pin(
      session,
      request.files.map(({ sha256 }) => sha256),
    );
  }

  /**
   * Checks that all files are in the cache, and keeps them there until `release`.
   *
   * @throws RunnerError `missing_files` with `missing`, each hash once; `invalid_request` for a wrong size
   */
  static async take(cache: FileCache, session: string, request: JobWorkspaceRequest): Promise<JobWorkspace> {
    const workspace = new JobWorkspace(cache, session, request);
    try {
      await workspace.#check();
      return workspace;
    } catch (fault) {
      workspace.release();
      throw fault;
    }
  }

  async #check(): Promise<void> {
    const missing = new Set<string>();
    for (const [at, { path, sha256, size }] of this.#request.files.entries()) {
      const actual = missing.has(sha256) ? null : await this.#cache.size(this.#session, sha256);
      if (actual === null) missing.add(sha256);
      else if (actual !== size) {
        const issue = `the file ${JSON.stringify(path)} has ${actual} bytes, not ${size}`;
        throw new RunnerError('invalid_request', `workspace.files.${at}.size: ${issue}`);
      }
    }
    if (missing.size > 0) {
      const message = `${missing.size} files of the workspace are not in the cache of the runner`;
      throw new RunnerError('missing_files', message, {}, { missing: [...missing] });
    }
  }

  /** The path of a file that is missing or damaged now; null = all are intact. */
  async damaged(): Promise<string | null> {
    for (const { path, sha256 } of this.#request.files) {
      if (!(await this.#cache.has(this.#session, sha256))) return path;
    }
    return null;
  }

  launch(): LaunchWorkspace {
    const { files, max_bytes: maxBytes } = this.#request;
    this.#receiver = new JobReceiver(this.#cache, this.#session, files, maxBytes);
    return {
      files: files.map(({ path, sha256, size, executable, modified_at: modifiedAt }) => {
        return { path, size, executable, modifiedAt, source: this.#cache.path(this.#session, sha256) };
      }),
      receiver: this.#receiver,
    };
  }

  /** What the program left, if it ended by itself. Call it once its sandbox has ended. */
  result(): WireResult {
    return this.#receiver?.result() ?? UNCHANGED;
  }

  /** The files may be pruned. Idempotent. */
  release(): void {
    this.#unpin();
  }
}
