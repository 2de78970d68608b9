/** Who sends outbound requests, configured by `EGRESS` (X2). */
import { EngineError } from '../../domain/errors.ts';

const EGRESS_CHOICES = ['platform', 'runner'] as const;
export type EgressChoice = (typeof EGRESS_CHOICES)[number];

/**
 * Unset or empty means the platform: Cloudflare's network reaches no private address.
 *
 * @throws EngineError `internal`, so that a system with a wrong setting does not start without address checks
 */
export function parseEgress(text: string | undefined): EgressChoice {
  const written = text?.trim().toLowerCase() ?? '';
  if (written === '') return 'platform';
  const choice = EGRESS_CHOICES.find((known) => known === written);
  if (choice !== undefined) return choice;
  throw new EngineError('internal', `EGRESS must be ${EGRESS_CHOICES.join(' or ')}, found "${written.slice(0, 20)}"`);
}
