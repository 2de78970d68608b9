/** The files of the message that is written. */
import { bytes } from '../parts/format.ts';
import { showInvisible } from '../parts/safe-text.ts';
import { IMAGE_TYPES } from './attachments.ts';
import type { Attachment } from './attachments.ts';
import { BlobImage } from './blob-image.tsx';

interface AttachmentListProps {
  readonly files: readonly Attachment[];
  readonly remove: (id: number) => void;
}

export function AttachmentList({ files, remove }: AttachmentListProps) {
  if (files.length === 0) return null;
  return (
    <ul class="row attachments" aria-label="Attached files">
      {files.map(({ id, file }) => {
        const name = showInvisible(file.name);
        return (
          <li key={id} class="card row">
            {IMAGE_TYPES.has(file.type) && <BlobImage blob={file} alt="" />}
            <bdi>{name}</bdi>
            <span class="quiet">{bytes(file.size)}</span>
            <button type="button" class="small" aria-label={`Remove ${name}`} onClick={() => remove(id)}>
              Remove
            </button>
          </li>
        );
      })}
    </ul>
  );
}
