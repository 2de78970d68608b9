/** Memory of a host whose garbage is collected. */
import { setTimeout as delay } from 'node:timers/promises';
import { inspect } from '../load/inspector.ts';
import type { Host } from './host.ts';

export interface HostMemory {
  /** Resident memory of workerd. */
  readonly residentKb: number;
  /** The JavaScript heap of the Worker's isolate. */
  readonly heapKb: number;
}

/** Collects garbage; then reads the memory. */
export async function collectedMemory({ base, inspectorPort, usage }: Host): Promise<HostMemory> {
  const heapKb = await inspect(inspectorPort, async (call) => {
    for (let round = 0; round < 2; round += 1) await whileUsed(base, call('HeapProfiler.collectGarbage'));
    const { usedSize } = (await call('Runtime.getHeapUsage')) as { readonly usedSize: number };
    return usedSize / 1_024;
  });
  return { residentKb: usage().memoryMb * 1_024, heapKb };
}

/** The isolate collects its garbage as a task of its thread, and runs those tasks only while it is used. */
async function whileUsed(base: string, collected: Promise<unknown>): Promise<void> {
  const answered = collected.then(() => true);
  answered.catch(() => undefined);
  do await (await fetch(`${base}/health`)).arrayBuffer();
  while (!(await Promise.race([answered, delay(50, false, { ref: false })])));
}
