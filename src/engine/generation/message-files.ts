/** The images and files of a message, as attachments of its turn (C2). */
import { filesOfContent, textOfContent } from '../../domain/content.ts';
import type { FilePart, MessageContent } from '../../domain/content.ts';
import type { Attachment } from '../../domain/ports/model.ts';
import type { BlobStore } from '../../domain/ports/storage.ts';

export type Blobs = Pick<BlobStore, 'get'>;

/** The user's part of a turn. */
export function userTurn(
  content: MessageContent,
  blobs: Blobs | null,
): { user: string; files?: readonly Attachment[] } {
  const user = textOfContent(content);
  const files = filesOfContent(content).map((part) => attachmentOf(part, blobs));
  return files.length === 0 ? { user } : { user, files };
}

/** A file whose bytes are read when a prompt shows it. @param blobs null: it is never shown */
export function attachmentOf(part: FilePart, blobs: Blobs | null): Attachment {
  const { name, media_type: given, size, sha256 } = part;
  const mediaType = (given.split(';', 1)[0] ?? '').trim().toLowerCase();
  return {
    kind: mediaType.startsWith('image/') ? 'image' : 'file',
    name,
    mediaType,
    size,
    sha256,
    read: async () => {
      const bytes = (await blobs?.get(sha256)) ?? null;
      if (bytes === null) throw new Error(`The file with the hash ${sha256.slice(0, 12)} is missing`);
      return bytes;
    },
  };
}
