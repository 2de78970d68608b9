/** A session whose programs only change files, for the tests of its workspace (C7). */
import type { SessionEvent } from '../../../src/domain/event.ts';
import { sessionKit } from '../../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../../support/session-kit.ts';
import { workspaceRunner } from '../../support/workspace-runner.ts';
import type { WorkspaceRunner } from '../../support/workspace-runner.ts';
import { createOptionalTables } from '../../support/optional-tables.ts';

export interface WorkspaceKit extends SessionKit {
  readonly runner: WorkspaceRunner;
}

export async function kitWith(options: KitOptions = {}, runner = workspaceRunner()): Promise<WorkspaceKit> {
  return { ...(await sessionKit({ ...options, runner })), runner };
}

/** A python action whose code is lines for workspace-runner.ts. */
export const action = (id: string, code: string, more: object = {}): string =>
  `<action type="python" mode="async" id="${id}">${JSON.stringify({ parameters: { code }, ...more })}</action>`;

/** The text of a file; null: there is none, or its bytes are lost. */
export const textAt = async (kit: SessionKit, path: string): Promise<string | null> => {
  const file = kit.session.workspace.file(path);
  const bytes = file === null ? null : await kit.session.workspace.read(file.sha256);
  return bytes === null ? null : new TextDecoder().decode(bytes);
};

export const paths = (kit: SessionKit): string[] => kit.session.workspace.list().map(({ path }) => path);

/** The data of all events of a type. */
export const dataOf = (kit: SessionKit, type: SessionEvent['type']): unknown[] =>
  kit.events.filter((event) => event.type === type).map(({ data }) => data);

/** The hashes of all bytes that are stored, or for which there is a row. */
export const stored = (kit: SessionKit): string[] => {
  createOptionalTables(kit.sql);
  const rows = kit.sql.exec(`SELECT sha256 FROM message_files UNION SELECT sha256 FROM blobs`);
  return rows.map(({ sha256 }) => String(sha256));
};
