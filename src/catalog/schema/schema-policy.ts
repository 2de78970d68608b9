/** Schema of `policies:` in agents, workflows and the setting `POLICIES` (C9). */
import * as z from 'zod';
import { limits } from '../../domain/limits.ts';
import { POLICY_DECISIONS } from '../../domain/policy.ts';

const rule = z.strictObject({
  when: z
    .string()
    .min(1)
    .max(limits.conditionChars)
    .optional()
    .describe('CEL over action, parameters, inputs, session, run and now. Default: the rule always applies.'),
  do: z.enum(POLICY_DECISIONS).describe('The strictest rule that applies counts: deny, then ask, then allow.'),
  message: z
    .string()
    .min(1)
    .max(limits.policyMessageChars)
    .optional()
    .describe('Why: for the model, and for the person who is asked.'),
});

export const policies = z.array(rule).max(limits.policyRules);

export type PoliciesInput = z.infer<typeof policies>;
