/** A Worker without workflows, for tests of other routes. */
import { createHash } from 'node:crypto';
import { WorkMeter } from '../../src/domain/work.ts';
import type { WorkflowHost } from '../../src/http/routes/workflows.ts';

const nothing = async (): Promise<never> => await Promise.reject(new Error('not called'));

export const noWorkflows: WorkflowHost = {
  now: () => 0,
  newSessionId: async () => `ses_${'0'.repeat(32)}`,
  sessionIdOf: async (start) => `ses_${createHash('md5').update(start).digest('hex')}`,
  find: () => Promise.resolve(null),
  list: () => Promise.resolve([]),
  secret: () => null,
  paced: async (_owner, steps, work) => work(new WorkMeter(steps)),
  start: nothing,
  create: nothing,
  schedules: () => Promise.resolve([]),
};
