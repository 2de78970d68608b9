/**
 * Closes inherited file descriptors (R2). Node opens its own descriptors with close-on-exec. Descriptors of a shell, a
 * supervisor or npm have no such flag, so every sandbox would inherit them: for example a file that only the
 * administrator may read, a log, or a socket.
 */
import fs from 'node:fs';

/** Standard input, output and error. Sandboxes have their own pipes for these. */
const STANDARD = 2;
/** `O_CLOEXEC`; the same value on all architectures that Node supports. */
const CLOSES_ON_EXEC = 0o2000000;

/**
 * Descriptors above 2 that a child process would inherit.
 *
 * Other systems have no list of descriptor flags and need none: there, libuv passes only explicit descriptors to children
 * (macOS, Windows).
 */
function inheritable(): number[] {
  if (process.platform !== 'linux') return [];
  return fs
    .readdirSync('/proc/self/fd')
    .map(Number)
    .filter((descriptor) => descriptor > STANDARD && passesExec(descriptor));
}

/**
 * Closes them. Call it once at startup; descriptors that Node opens later have close-on-exec.
 *
 * @throws Error if one of them is still open afterwards
 */
export function closeInherited(): void {
  // an IPC channel to the parent is among them; libuv must close it
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
    // closed meanwhile: the descriptor that read the directory
    return false;
  }
}
