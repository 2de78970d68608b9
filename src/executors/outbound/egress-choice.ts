/** Who sends outbound requests, as `EGRESS` says (X2). */
import { EngineError } from '../../domain/errors.ts';

const EGRESS_CHOICES = ['platform', 'runner'] as const;
export type EgressChoice = (typeof EGRESS_CHOICES)[number];

/**
 * Unset or empty = the platform: on Cloudflare its network reaches no private address.
 *
 * @throws EngineError `internal`: a system that was meant to judge addresses must not start without
 */
export function parseEgress(text: string | undefined): EgressChoice {
  const written = text?.trim().toLowerCase() ?? '';
  if (written === '') return 'platform';
  const choice = EGRESS_CHOICES.find((known) => known === written);
  if (choice !== undefined) return choice;
  throw new EngineError('internal', `EGRESS must be ${EGRESS_CHOICES.join(' or ')}, found "${written.slice(0, 20)}"`);
}
