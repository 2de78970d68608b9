/**
 * Files of the session: large outputs and files of its actions, and its workspace (C7). They open through fetch and a blob,
 * never by an address (U6).
 */
import { useState } from 'preact/hooks';
import { listFiles, readFile, removeFile } from '../../src/client/files.ts';
import { access } from '../app/access.ts';
import { FileRow } from '../parts/file-row.tsx';
import { relative } from '../parts/format.ts';
import { Loaded, useLoad } from '../parts/loaded.tsx';
import type { SessionModel } from './session-model.ts';

export function FilesPanel({ session: { session, document } }: { readonly session: SessionModel }) {
  const [after, setAfter] = useState<number>();
  const load = useLoad(
    (_client, signal) =>
      Promise.all([
        session.artifacts({ signal, after }),
        // The token of a shared view may not read them.
        access.value.mode === 'view' ? { files: [] } : listFiles(session, { signal }),
      ]),
    [session, document.value?.last_seq, after],
  );
  return (
    <Loaded load={load}>
      {([{ artifacts, next }, { files }]) => (
        <>
          {artifacts.length + files.length === 0 && <p class="quiet">No files.</p>}
          <ul class="list">
            {artifacts.map(({ id, name, content_type: type, size_bytes: size }) => (
              <li key={id}>
                <FileRow name={name} type={type} size={size} load={() => session.artifact(id)} />
              </li>
            ))}
          </ul>
          {next !== null && (
            <button type="button" onClick={() => setAfter(next)}>
              Next page
            </button>
          )}
          {files.length > 0 && <h3>Workspace</h3>}
          <ul class="list">
            {files.map(({ path, size, modified_at: at }) => (
              <li key={path}>
                <FileRow
                  name={path}
                  type={relative(at, Date.now())}
                  size={size}
                  load={() => readFile(session, path)}
                  remove={() => removeFile(session, path).then(load.reload)}
                />
              </li>
            ))}
          </ul>
        </>
      )}
    </Loaded>
  );
}
