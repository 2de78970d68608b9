import type { Attachment, ChatMessage } from '../../src/domain/ports/model.ts';

/** An attachment of the current turn whose bytes are its name; `reads` counts how often they were read. */
export function attachment(
  name: string,
  more: Partial<Attachment> = {},
): Attachment & { readonly reads: { count: number } } {
  const isPdf = name.endsWith('.pdf');
  const bytes = new TextEncoder().encode(name);
  const reads = { count: 0 };
  return {
    kind: isPdf ? 'file' : 'image',
    name,
    mediaType: isPdf ? 'application/pdf' : 'image/png',
    size: bytes.length,
    isCurrent: true,
    reads,
    read: async () => {
      reads.count += 1;
      return bytes;
    },
    ...more,
  };
}

export function withAttachments(...attachments: readonly Attachment[]): ChatMessage {
  return { role: 'user', content: 'look', attachments };
}
