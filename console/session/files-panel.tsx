/** Large outputs and files of the session's actions. They open through fetch and a blob, never by an address (U6). */
import { useState } from 'preact/hooks';
import { FileRow } from '../parts/file-row.tsx';
import { Loaded, useLoad } from '../parts/loaded.tsx';
import type { SessionModel } from './session-model.ts';

export function FilesPanel({ session: { session, document } }: { readonly session: SessionModel }) {
  const [after, setAfter] = useState<number | undefined>(undefined);
  const load = useLoad(
    async (_client, signal) => await session.artifacts({ signal, ...(after === undefined ? {} : { after }) }),
    [session, document.value?.last_seq, after],
  );
  return (
    <Loaded load={load}>
      {({ artifacts, next }) => (
        <>
          {artifacts.length === 0 && <p class="quiet">The actions of this session have left no files.</p>}
          <ul class="list">
            {artifacts.map(({ id, name, content_type: type, size_bytes: size }) => (
              <li key={id}>
                <FileRow name={name} type={type} size={size} load={async () => await session.artifact(id)} />
              </li>
            ))}
          </ul>
          {next !== null && (
            <button type="button" onClick={() => setAfter(next)}>
              Next page
            </button>
          )}
        </>
      )}
    </Loaded>
  );
}
