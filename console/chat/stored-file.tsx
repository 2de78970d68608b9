/** A file of a message: an image is shown, everything else can be downloaded. Both by fetch, never by an address (U6). */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { MessagePart, Session } from '../../src/client/index.ts';
import { access } from '../app/access.ts';
import { FileRow } from '../parts/file-row.tsx';
import { Loaded, useLoad } from '../parts/loaded.tsx';
import { showInvisible } from '../parts/safe-text.ts';
import { IMAGE_TYPES } from './attachments.ts';
import { BlobImage } from './blob-image.tsx';

interface StoredFileProps {
  readonly session: Session;
  readonly part: Exclude<MessagePart, { type: 'text' }>;
}

export function StoredFile({ session, part }: StoredFileProps) {
  const { name, media_type: type, size, sha256 } = part;
  // The token of a shared view is not for files.
  const canLoad = access.value.mode !== 'view';
  return (
    <div>
      {canLoad && IMAGE_TYPES.has(type) && <StoredImage session={session} part={part} />}
      <FileRow name={name} type={type} size={size} load={canLoad ? async () => await session.content(sha256) : null} />
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
