/**
 * Folders that hold data and secrets: only their user may read them. Checked and corrected at each start, because earlier
 * versions, other programs and a umask leave other modes.
 */
import fs from 'node:fs';
import path from 'node:path';

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

/**
 * Creates a folder, or makes an existing one private.
 *
 * @throws Error that names the folder and the remedy: it is a link, or belongs to another user
 * @throws Error of the file system if it cannot be created or changed
 */
export function privateFolder(folder: string): void {
  if (!exists(folder)) create(folder);
  const found = fs.lstatSync(folder);
  const remedy = 'use another folder with CORTEX_STATE_DIR';
  if (found.isSymbolicLink()) {
    throw new Error(`The state folder ${folder} is a symbolic link; ${remedy}, or name its target`);
  }
  // the error of the file system for a file
  if (!found.isDirectory()) fs.mkdirSync(folder);
  const user = process.getuid?.();
  if (user !== undefined && found.uid !== user) {
    throw new Error(`The state folder ${folder} belongs to another user (${found.uid}, this is ${user}); ${remedy}`);
  }
  setMode(folder, FOLDER_MODE);
}

/**
 * The same with everything in the folder. Links in it are not followed.
 *
 * @param parts names of folders in it that must not be links
 * @throws as `privateFolder`
 */
export function privateTree(folder: string, parts: readonly string[] = []): void {
  privateFolder(folder);
  for (const part of parts.map((name) => path.join(folder, name))) if (exists(part)) privateFolder(part);
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const place = path.join(folder, entry.name);
    if (entry.isDirectory()) {
      setMode(place, FOLDER_MODE);
      privateTree(place);
    } else if (entry.isFile()) setMode(place, FILE_MODE);
  }
}

function create(folder: string): void {
  try {
    fs.mkdirSync(folder, { recursive: true, mode: FOLDER_MODE });
  } catch {
    // with `recursive`, the error would be ENOENT on a read-only disk
    fs.mkdirSync(folder);
  }
}

function setMode(place: string, wanted: number): void {
  // another program may have removed it
  const mode = fs.lstatSync(place, { throwIfNoEntry: false })?.mode;
  if (mode !== undefined && process.platform !== 'win32' && (mode & 0o777) !== wanted) fs.chmodSync(place, wanted);
}

function exists(place: string): boolean {
  return fs.lstatSync(place, { throwIfNoEntry: false }) !== undefined;
}
