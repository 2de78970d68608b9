/** Responses about the workspace of a session (C7). */
import * as z from 'zod';
import { at, number, text } from './members.ts';

export const workspaceFile = z.object({
  path: text('Relative to the workspace'),
  size: number('Bytes'),
  modified_at: at,
  sha256: text('Of the content, in hexadecimal; its `ETag`'),
  executable: z.literal(true).exactOptional().describe('Programs may execute it'),
});

export const workspaceFiles = z.object({
  files: z.array(workspaceFile).describe('The files, in the order of their paths'),
  bytes: number('Bytes that all files of the workspace have together'),
  max_bytes: number('Bytes that they may have'),
});

export const deletedFiles = z.object({ deleted: z.array(z.string()).describe('Paths of the deleted files') });
