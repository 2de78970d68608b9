/** `/attach <path or URL>` of the chat: files that are sent with the next message. */
import { readFile } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import { messageOf } from '../../src/domain/errors.ts';
import { requireReadable } from '../project/real-path.ts';

/** A part of a message, as the API takes it. */
type Part =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'file'; readonly name: string; readonly data: string }
  | { readonly type: 'image' | 'file'; readonly url: string };

const COMMAND = /^\/attach(?:\s+(.*))?$/i;
const IMAGES: ReadonlySet<string> = new Set(['.png', '.jpg', '.jpeg', '.gif', '.webp']);

function typeOf(path: string): 'image' | 'file' {
  return IMAGES.has(extname(path).toLowerCase()) ? 'image' : 'file';
}

export class Attachments {
  #files: Exclude<Part, { type: 'text' }>[] = [];

  /** @returns what to print, or null if the line is a message */
  async command(line: string): Promise<string | null> {
    const found = COMMAND.exec(line.trimEnd());
    if (found === null) return null;
    // A terminal writes the path of a dropped file in quotes, or with escaped spaces.
    const path = (found[1] ?? '')
      .trim()
      .replace(/^(['"])(.*)\1$/, '$2')
      .replaceAll('\\ ', ' ');
    if (path === '') return 'usage: /attach <path or URL of a file>';
    if (/^https?:\/\//i.test(path) && URL.canParse(path)) {
      this.#files.push({ type: typeOf(new URL(path).pathname), url: path });
      return `attached ${path} to your next message; the system fetches it`;
    }
    try {
      requireReadable(path);
      const bytes = await readFile(path);
      this.#files.push({ type: typeOf(path), name: basename(path), data: bytes.toString('base64') });
      return `attached ${basename(path)} (${bytes.length} bytes) to your next message`;
    } catch (fault) {
      return `not attached: ${messageOf(fault)}`;
    }
  }

  /** The content of a message with the files, which are sent once. */
  take(text: string): string | readonly Part[] {
    const files = this.#files;
    this.#files = [];
    return files.length === 0 ? text : [{ type: 'text', text }, ...files];
  }
}
