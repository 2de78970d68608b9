/** Asks for an API key. The key stays in the memory of this tab (U6). */
import { useState } from 'preact/hooks';
import { Dialog } from '../parts/dialog.tsx';
import { Field } from '../parts/fields.tsx';
import { messageOf } from '../parts/fault.tsx';
import { connectionFault, keyRequest, useKey } from './access.ts';

export function KeyDialog({ reason }: { readonly reason: string }) {
  const [key, setKey] = useState('');
  const [fault, setFault] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);

  const submit = async (form: HTMLFormElement): Promise<void> => {
    setBusy(true);
    try {
      // The dialog closes at once, but this component is left only some tasks later: an answer may arrive before.
      await useKey(key.trim(), () => form.checkVisibility());
    } catch (error) {
      setFault(messageOf(error));
      setBusy(false);
    }
  };

  return (
    <Dialog title="Sign in" close={() => (keyRequest.value = null)}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <p>{reason} The key is kept in this tab only, until you reload or close it.</p>
        <Field label="API key">
          {(id) => (
            <input
              id={id}
              type="password"
              autocomplete="off"
              required
              value={key}
              onInput={({ currentTarget: { value } }) => setKey(value)}
            />
          )}
        </Field>
        {connectionFault.value !== null && <p role="status">The server cannot be reached; trying again.</p>}
        {fault !== null && (
          <p class="fault" role="alert">
            {fault}
          </p>
        )}
        <button type="submit" class="primary" disabled={isBusy || key.trim() === ''}>
          Use this key
        </button>
      </form>
    </Dialog>
  );
}
