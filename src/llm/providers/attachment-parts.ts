/** The wire form of attachments: content parts of user messages, as each provider takes them (C2). */
import { base64Of } from '../../domain/base64.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Attachment, ChatMessage } from '../../domain/ports/model.ts';
import type { AttachmentQuirks } from './presets.ts';

/** The parts of a request's attachments. */
export type AttachmentParts = ReadonlyMap<Attachment, JsonObject>;

/** Reads the bytes of all attachments. One whose bytes are lost has no part: its placeholder is in the text. */
export async function readParts(messages: readonly ChatMessage[], quirks: AttachmentQuirks): Promise<AttachmentParts> {
  const parts = new Map<Attachment, JsonObject>();
  for (const attachment of messages.flatMap(({ attachments = [] }) => attachments)) {
    const bytes = await attachment.read().catch(() => null);
    if (bytes !== null) parts.set(attachment, partOf(attachment, bytes, quirks));
  }
  return parts;
}

function partOf({ kind, name, mediaType }: Attachment, bytes: Uint8Array, quirks: AttachmentQuirks): JsonObject {
  const url = `data:${mediaType};base64,${base64Of(bytes)}`;
  if (kind === 'image') return { type: 'image_url', image_url: quirks.images === 'object' ? { url } : url };
  return quirks.files === 'document_url'
    ? { type: 'document_url', document_url: url, document_name: name }
    : { type: 'file', file: { filename: name, file_data: url } };
}
