/** The policies of a simulated agent. Each action gets a verdict, so that every call can be compared with its judgement. */
import type { PolicyRule } from '../../../src/domain/policy.ts';

/** Rules by the last digit of an action's id. */
export const POLICIES: readonly PolicyRule[] = [
  { when: 'action.id.endsWith("2")', do: 'deny', message: 'its id ends with 2' },
  { when: 'action.id.endsWith("1") && action.type != "internal"', do: 'ask', message: 'its id ends with 1' },
  // An error if there is no value, which denies.
  { when: 'action.name == "idempotent" && parameters.values[0] == "never"', do: 'deny', message: null },
  { when: null, do: 'allow', message: null },
];
