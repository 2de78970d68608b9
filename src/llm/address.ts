/** The address of a model endpoint. */
import { EngineError } from '../domain/errors.ts';

/**
 * The origin of a base URL: the only place that the key is sent to (L7).
 *
 * @throws EngineError `model_rejected` where it is not an http or https address
 */
export function originOf(baseUrl: string): string {
  const base = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  if (base === null || !/^https?:$/.test(base.protocol)) {
    throw new EngineError('model_rejected', `"${baseUrl}" is no http or https address of a model endpoint`);
  }
  return base.origin;
}
