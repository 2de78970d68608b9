/** The files that a job's program sees, in a job request (C7). */
import { z } from 'zod';

import { limits } from '../limits.ts';
import { SHA256 } from './cache-folder.ts';
import { foldersAbove, pathIssue } from './path-rule.ts';

export const fileHash = z.string().regex(SHA256, 'must be a SHA-256 in lower-case hexadecimal');

const jobFile = z.strictObject({
  path: z.string().superRefine((path, context) => {
    const issue = pathIssue(path);
    if (issue !== null) context.addIssue({ code: 'custom', message: issue });
  }),
  sha256: fileHash,
  size: z.int().min(0).max(limits.workspaceFileBytes),
  executable: z.boolean().default(false),
  /** Epoch milliseconds. */
  modified_at: z.int().min(0).max(8.64e15),
});
export type JobFile = z.infer<typeof jobFile>;

/** `max_bytes`: what all files may have together at the end. */
export const jobWorkspace = z.strictObject({
  files: z
    .array(jobFile)
    .max(limits.workspaceFiles)
    .superRefine((files, context) => {
      const issue = issueOf(files);
      if (issue !== null) context.addIssue({ code: 'custom', message: issue });
    }),
  max_bytes: z.int().min(0).max(limits.workspaceBytes),
});
export type JobWorkspaceRequest = z.infer<typeof jobWorkspace>;

/** Why the files do not make a tree, or null. */
function issueOf(files: readonly JobFile[]): string | null {
  const paths = new Set<string>();
  let bytes = 0;
  for (const { path, size } of files) {
    if (paths.has(path)) return `${JSON.stringify(path)} is a duplicate`;
    paths.add(path);
    bytes += size;
  }
  if (bytes > limits.workspaceBytes) return `${bytes} bytes in total (maximum ${limits.workspaceBytes})`;
  for (const { path } of files) {
    const file = foldersAbove(path).find((folder) => paths.has(folder));
    if (file !== undefined) return `${JSON.stringify(path)} is below the file ${JSON.stringify(file)}`;
  }
  return null;
}
