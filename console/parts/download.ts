/** Downloads bytes as a file. */
import * as limits from './limits.ts';

/** Characters that a file's name may not have, or that hide what it is. */
const UNSAFE = /[/\\:*?"<>|\p{Cc}\p{Cf}]/gu;

/** @param name the file's name, from a model, a tool or another user */
export function safeFileName(name: string): string {
  const safe = name.replace(UNSAFE, '_').replace(/^\.+/, '_').trim();
  return safe === '' ? 'file' : safe.slice(-limits.fileNameChars).toWellFormed();
}

/** The browser never shows the content in this page: it is downloaded, whatever its type is. */
export function saveFile(blob: Blob, name: string): void {
  const url = URL.createObjectURL(new Blob([blob], { type: 'application/octet-stream' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = safeFileName(name);
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1_000);
}
