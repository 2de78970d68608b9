/** Tests what a sandbox can run, by running a program. */
import { limits } from '../limits.ts';
import type { Availability, Interpreter, Launch, Sandbox } from './sandbox.ts';
import { unavailable } from './sandbox.ts';

const HELLO = { python3: 'print("ok")', shell: 'echo ok', node: 'console.log("ok")' } as const;

export async function probeBy(start: Sandbox['start'], interpreter: Interpreter): Promise<Availability> {
  const launch: Launch = {
    interpreter,
    entry: 'tool',
    source: HELLO[interpreter],
    inputsJson: '{}',
    args: [],
    stdin: '',
    env: {},
    memoryMb: limits.memoryMb,
    cpus: limits.cpus,
    processes: limits.processes,
    diskMb: limits.diskMb,
    timeoutMs: limits.probeMs,
  };
  try {
    const process = await start(launch);
    const timer = setTimeout(() => process.kill(), limits.probeMs);
    const printed: Record<'stdout' | 'stderr', string> = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      process[name].on('data', (chunk: Buffer) => {
        printed[name] = `${printed[name]}${chunk.toString()}`.slice(0, 500);
      });
    }
    const { exitCode, signal } = await process.ended;
    clearTimeout(timer);
    if (exitCode === 0 && printed.stdout === 'ok\n') return { ok: true };
    return unavailable(
      `a test ended with ${signal ?? `exit code ${exitCode ?? 'unknown'}`}: ${printed.stderr.trim() || 'no message'}`,
    );
  } catch (fault) {
    return unavailable(fault instanceof Error ? fault.message : String(fault));
  }
}
