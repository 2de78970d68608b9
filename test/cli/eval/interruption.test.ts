/** Evaluations that are stopped: what ends, and what is kept (O3). */
import { expect, test } from 'vitest';
import { Interruption, SIGNALS } from '../../../cli/eval/interruption.ts';
import { agentJudge, systemRuns } from '../../../cli/eval/system-runs.ts';
import type { Client } from '../../../src/client/client.ts';

const listening = (): number[] => SIGNALS.map((name) => process.listenerCount(name));

test.each(SIGNALS)('[O3] the first %s stops the runs, and the next one is not taken', async (name) => {
  const before = listening();
  const said: string[] = [];
  const interruption = new Interruption((line) => said.push(line));
  expect(interruption.takesNext).toBe(false);
  const result = await interruption.during(async () => {
    expect(interruption.takesNext).toBe(true);
    process.emit(name);
    expect(interruption.signal.aborted).toBe(true);
    expect(interruption.takesNext).toBe(false);
    expect(listening()).toEqual(before);
    return 'the rest';
  });
  expect(result).toBe('the rest');
  expect(said).toHaveLength(1);
});

test('[O3] an evaluation that ends leaves no listener', async () => {
  const before = listening();
  const interruption = new Interruption(() => undefined);
  await expect(interruption.during(async () => await Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  expect([listening(), interruption.takesNext, interruption.signal.aborted]).toEqual([before, false, false]);
});

/** A system whose runs end only when they are cancelled. */
function endlessSystem(stop: AbortController): { readonly client: Client; readonly did: string[] } {
  const did: string[] = [];
  const run = {
    async *events(): AsyncGenerator<{ type: string; data: object }> {
      yield { type: 'agent_started', data: {} };
      did.push('read');
      stop.abort(new Error('stopped'));
    },
    document: async () => did.push('document'),
  };
  const session = {
    id: 'ses_1',
    send: async () => run,
    cancel: async () => did.push('cancel'),
  };
  return { client: { createSession: async () => session } as unknown as Client, did };
}

test('[O3] a stopped evaluation cancels the run of a case', async () => {
  const stop = new AbortController();
  const { client, did } = endlessSystem(stop);
  const request = { agent: 'a', message: 'm', variables: {}, history: [], approvals: null };
  await expect(systemRuns(client, stop.signal)(request)).rejects.toThrow('stopped');
  expect(did).toEqual(['read', 'cancel']);
});

test('[O3] a stopped evaluation cancels the run of a judge', async () => {
  const stop = new AbortController();
  const { client, did } = endlessSystem(stop);
  await expect(agentJudge(client, 'eval_judge', stop.signal)('judge it')).rejects.toThrow('stopped');
  expect(did).toEqual(['read', 'cancel']);
});
