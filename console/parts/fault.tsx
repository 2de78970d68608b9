/** An error as people need it: what happened, its code, and a way to try again. */
import { CortexError } from '../../src/client/index.ts';

export function messageOf(fault: unknown): string {
  return fault instanceof Error ? fault.message : String(fault);
}

export function Fault({ fault, retry }: { readonly fault: unknown; readonly retry?: () => void }) {
  return (
    <div class="fault" role="alert">
      <p>{messageOf(fault)}</p>
      {fault instanceof CortexError && <code>{fault.code}</code>}
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}
