/** What a policy sees in a test: a payment by an HTTP tool, on a Friday night. */
import type { PolicySubject } from '../../src/domain/policy.ts';

export function policySubject(fields: Partial<PolicySubject> = {}): PolicySubject {
  return {
    action: {
      type: 'tool',
      name: 'pay',
      id: 'a',
      mode: 'async',
      effects: 'unsafe',
      implementation: 'http',
      server: '',
      feed: '',
    },
    parameters: {},
    inputs: {},
    session: {
      id: 's',
      agent: 'assistant',
      kind: 'chat',
      user_id: '',
      namespace: '',
      depth: 0,
      metadata: { team: 'red' },
      cost: 0,
    },
    run: { iteration: 1, actions: 1, calls: 0, model_calls: 1, tokens: 500, cost: 0.5, seconds: 2 },
    // 00:30 on Saturday in Berlin.
    now: Date.UTC(2026, 10, 27, 23, 30),
    ...fields,
  };
}
