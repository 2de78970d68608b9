/** Large outputs and files of the session's actions. They open through fetch and a blob, never by an address (U6). */
import { useState } from 'preact/hooks';
import type { Artifact } from '../../src/client/index.ts';
import { saveFile } from '../parts/download.ts';
import { ForeignText } from '../parts/foreign-text.tsx';
import { Fault } from '../parts/fault.tsx';
import { bytes } from '../parts/format.ts';
import { Loaded, useLoad } from '../parts/loaded.tsx';
import type { SessionModel } from './session-model.ts';

export function FilesPanel({ session: { session, document } }: { readonly session: SessionModel }) {
  const [after, setAfter] = useState<number | undefined>(undefined);
  const [fault, setFault] = useState<unknown>(null);
  const load = useLoad(
    async (_client, signal) => await session.artifacts({ signal, ...(after === undefined ? {} : { after }) }),
    [session, document.value?.last_seq, after],
  );
  const save = async ({ id, name }: Artifact): Promise<void> => {
    setFault(null);
    try {
      saveFile(await (await session.artifact(id)).blob(), name);
    } catch (error) {
      setFault(error);
    }
  };
  return (
    <>
      {fault !== null && <Fault fault={fault} />}
      <Loaded load={load}>
        {({ artifacts, next }) => (
          <>
            {artifacts.length === 0 && <p class="quiet">The actions of this session have left no files.</p>}
            <ul class="list">
              {artifacts.map((artifact) => (
                <li key={artifact.id} class="row">
                  <span class="grow">
                    <ForeignText text={artifact.name} />
                  </span>
                  <span class="quiet">
                    {artifact.content_type} · {bytes(artifact.size_bytes)}
                  </span>
                  <button type="button" class="small" onClick={() => void save(artifact)}>
                    Download<span class="visually-hidden"> {artifact.name}</span>
                  </button>
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
    </>
  );
}
