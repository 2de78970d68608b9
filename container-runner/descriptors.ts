/**
 * Closes what the starter of this process left open (R2). Node opens its own descriptors so that they end with
 * `exec`; those that a shell, a supervisor or npm had open do not, and every sandbox would inherit them: a file that
 * only the administrator may read, a log, a socket.
 */
import fs from 'node:fs';

/** Standard input, output and error; sandboxes never get these: each has pipes of its own. */
const STANDARD = 2;
/** `O_CLOEXEC`, the same number on all architectures that Node runs on. */
const CLOSES_ON_EXEC = 0o2000000;

/**
 * Descriptors above 2 that a child process would inherit.
 *
 * Other systems have no list of flags. They need none: there, libuv starts children with nothing but their own
 * descriptors (macOS, Windows).
 */
export function inheritable(): number[] {
  if (process.platform !== 'linux') return [];
  return fs
    .readdirSync('/proc/self/fd')
    .map(Number)
    .filter((descriptor) => descriptor > STANDARD && passesExec(descriptor));
}

/**
 * Closes them. Call it once, before anything is started: what is opened later is Node's, and closes on `exec`.
 *
 * @throws Error when one is still open afterwards
 */
export function closeInherited(): void {
  // a channel to a parent that forked us is one of them; closing it under libuv would be a fault
  if (process.connected) process.disconnect();
  for (const descriptor of inheritable()) fs.closeSync(descriptor);
  const left = inheritable();
  if (left.length > 0) throw new Error(`descriptors ${left.join(', ')} of the starting process cannot be closed`);
}

function passesExec(descriptor: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(fs.readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8'))?.[1];
    return flags === undefined || (Number.parseInt(flags, 8) & CLOSES_ON_EXEC) === 0;
  } catch {
    // closed meanwhile: the one that read the directory
    return false;
  }
}
