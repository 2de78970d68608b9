/** A Worker without workflows, for tests of other routes. */
import type { WorkflowHost } from '../../src/http/workflows.ts';

const nothing = async (): Promise<never> => await Promise.reject(new Error('not called'));

export const noWorkflows: WorkflowHost = {
  now: () => 0,
  newSessionId: () => `ses_${'0'.repeat(32)}`,
  find: () => Promise.resolve(null),
  list: () => Promise.resolve([]),
  secret: () => null,
  start: nothing,
  create: nothing,
  schedules: () => Promise.resolve([]),
};
