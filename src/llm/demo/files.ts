/** The images and files of a message, as the demo model describes them (C2): it reads headers and recognises nothing. */
import type { ChatMessage } from '../../domain/ports/model.ts';
import { pixelSize } from './image-size.ts';

/** A placeholder line, as the runtime writes it. */
const PLACEHOLDER = /^\[(image|file) "(.*)", ([\w.+-]+\/[\w.+-]+), (\d+) bytes\]$/gm;

export interface SeenFile {
  readonly kind: string;
  readonly name: string;
  readonly type: string;
  readonly bytes: string;
}

export function filesIn(message: string): SeenFile[] {
  return Array.from(message.matchAll(PLACEHOLDER), ([, kind = '', name = '', type = '', bytes = '']) => ({
    kind,
    name,
    type,
    bytes,
  }));
}

export function withoutPlaceholders(message: string): string {
  return message.replace(PLACEHOLDER, '').trim();
}

/** Width and height by type and size of the file. */
export type PixelSizes = ReadonlyMap<string, string>;

/** Reads the headers of the images that are attached to the newest message with any. */
export async function readPixelSizes(messages: readonly ChatMessage[]): Promise<PixelSizes> {
  const sizes = new Map<string, string>();
  const newest = messages.findLast(({ attachments = [] }) => attachments.length > 0);
  for (const { mediaType, size, read } of newest?.attachments ?? []) {
    const bytes = await read().catch(() => null);
    const pixels = bytes === null ? null : pixelSize(bytes);
    if (pixels !== null) sizes.set(placeOf(mediaType, String(size)), `${pixels.width} x ${pixels.height} pixels`);
  }
  return sizes;
}

export function describeFile({ kind, name, type, bytes }: SeenFile, sizes: PixelSizes): string {
  const pixels = sizes.get(placeOf(type, bytes));
  return `${kind} "${name}": ${type}, ${bytes} bytes${pixels === undefined ? '' : `, ${pixels}`}`;
}

function placeOf(type: string, bytes: string): string {
  return `${type} ${bytes}`;
}
