/** The one file of a session that its jobs change: the truth is here, as it is in the session's object. */
import { createHash, randomBytes } from 'node:crypto';

import type { JobResult, JobWorkspace } from '../../src/domain/ports/runner.ts';
import { FILE_BYTES } from './several-report.ts';

export const FILE_NAME = 'state';

export class SessionFile {
  #bytes: Uint8Array = randomBytes(FILE_BYTES);
  #sha256 = createHash('sha256').update(this.#bytes).digest('hex');
  #modifiedAt = Date.now();

  workspace(): JobWorkspace {
    const bytes = this.#bytes;
    const file = { path: FILE_NAME, sha256: this.#sha256, size: bytes.length, executable: false };
    return {
      files: [{ ...file, modifiedAt: Math.floor(this.#modifiedAt) }],
      maxBytes: 2 * FILE_BYTES,
      read: () => Promise.resolve(bytes),
    };
  }

  /** Keeps what a job left. @throws Error if the job ended without a change of the file */
  async take({ end, workspace }: JobResult, signal: AbortSignal): Promise<void> {
    if (end !== 'exited') return;
    const [change] = workspace?.changes ?? [];
    if (workspace === undefined || change === undefined || !('sha256' in change))
      throw new Error('the file is unchanged');
    for await (const [sha256, bytes] of workspace.read([change.sha256], signal)) {
      this.#sha256 = sha256;
      this.#bytes = bytes;
      this.#modifiedAt = Date.now();
    }
  }
}
