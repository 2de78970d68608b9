/** Why a run or an action failed. */
import type { Failure } from './trace-types.ts';

export function Failed({ error: { code, message } }: { readonly error: Failure }) {
  return (
    <div class="fault">
      <p>{message}</p>
      <code>{code}</code>
    </div>
  );
}
