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
}

export function FileRow({ name, type, size, load }: FileRowProps) {
  const { fault, run } = useTask();
  const shown = showInvisible(name);
  return (
    <>
      <p class="row">
        <bdi class="grow">{shown}</bdi>
        <span class="quiet">
          {type} · {bytes(size)}
        </span>
        {load !== null && (
          <button
            type="button"
            class="small"
            aria-label={`Download ${shown}`}
            onClick={() => void run(async () => saveFile(await (await load()).blob(), name))}
          >
            Download
          </button>
        )}
      </p>
      {fault}
    </>
  );
}
