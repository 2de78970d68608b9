/** A file of a message: an image is shown, everything else can be downloaded. Both by fetch, never by an address (U6). */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { MessagePart, Session } from '../../src/client/index.ts';
import { access } from '../app/access.ts';
import { saveFile } from '../parts/download.ts';
import { bytes } from '../parts/format.ts';
import { Loaded, useLoad } from '../parts/loaded.tsx';
import { showInvisible } from '../parts/safe-text.ts';
import { useTask } from '../parts/task.tsx';
import { IMAGE_TYPES } from './attachments.ts';
import { BlobImage } from './blob-image.tsx';

interface StoredFileProps {
  readonly session: Session;
  readonly part: Exclude<MessagePart, { type: 'text' }>;
}

export function StoredFile({ session, part }: StoredFileProps) {
  const { name, media_type: type, size, sha256 } = part;
  const { fault, run } = useTask();
  const shown = showInvisible(name);
  // The token of a shared view is not for files.
  const canLoad = access.value.mode !== 'view';
  const save = async (): Promise<void> => saveFile(await (await session.content(sha256)).blob(), name);
  return (
    <div>
      {canLoad && IMAGE_TYPES.has(type) && <StoredImage session={session} part={part} />}
      <p class="row">
        <bdi>{shown}</bdi>
        <span class="quiet">
          {type} · {bytes(size)}
        </span>
        {canLoad && (
          <button type="button" class="small" aria-label={`Download ${shown}`} onClick={() => void run(save)}>
            Download
          </button>
        )}
      </p>
      {fault}
    </div>
  );
}

/** Loaded when it comes near the visible part of the page. */
function StoredImage({ session, part: { name, media_type: type, sha256 } }: StoredFileProps) {
  const place = useRef<HTMLDivElement>(null);
  const [isNear, setNear] = useState(false);
  useEffect(() => {
    const near = new IntersectionObserver(
      (entries) => setNear((wasNear) => wasNear || entries.some(({ isIntersecting }) => isIntersecting)),
      { rootMargin: '400px' },
    );
    if (place.current !== null) near.observe(place.current);
    return () => near.disconnect();
  }, []);
  const load = useLoad(
    async (_, signal) => {
      if (!isNear) return null;
      const response = await session.content(sha256, { signal });
      return new Blob([await response.blob()], { type });
    },
    [isNear, sha256],
  );
  return (
    <div ref={place}>
      <Loaded load={load}>{(blob) => blob !== null && <BlobImage blob={blob} alt={showInvisible(name)} />}</Loaded>
    </div>
  );
}
