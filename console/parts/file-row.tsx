/** A file with its type and size, and a way to download it. */
import { saveFile } from './download.ts';
import { bytes } from './format.ts';
import { showInvisible } from './safe-text.ts';
import { useTask } from './task.tsx';

interface FileRowProps {
  readonly name: string;
  readonly type: string;
  readonly size: number;
  /** Loads it; null: it cannot be downloaded. @throws CortexError, which is shown */
  readonly load: (() => Promise<Response>) | null;
  /** Deletes it, after a question. Default: it cannot be deleted. */
  readonly remove?: () => Promise<unknown>;
}

export function FileRow({ name, type, size, load, remove }: FileRowProps) {
  const { fault, run } = useTask();
  const shown = showInvisible(name);
  const button = (does: string, work: () => Promise<unknown>) => (
    <button type="button" class="small" aria-label={`${does} ${shown}`} onClick={() => void run(work)}>
      {does}
    </button>
  );
  return (
    <>
      <p class="row">
        <bdi class="grow">{shown}</bdi>
        <span class="quiet">
          {type} · {bytes(size)}
        </span>
        {load && button('Download', async () => saveFile(await (await load()).blob(), name))}
        {remove && button('Delete', async () => confirm(`Delete ${shown}?`) && remove())}
      </p>
      {fault}
    </>
  );
}
