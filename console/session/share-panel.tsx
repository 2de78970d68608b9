/** Makes a link to a view of the session: its token is in the fragment, which browsers do not send (U6). */
import { useState } from 'preact/hooks';
import { href } from '../app/router.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { Field } from '../parts/fields.tsx';
import { time } from '../parts/format.ts';
import { useTask } from '../parts/task.tsx';
import type { SessionModel } from './session-model.ts';

const HOURS = [
  [1, '1 hour'],
  [24, '1 day'],
  [168, '7 days'],
] as const;

export function SharePanel({ session: { session, id } }: { readonly session: SessionModel }) {
  const [hours, setHours] = useState(24);
  const [link, setLink] = useState<{ readonly url: string; readonly expiresAt: number } | null>(null);
  const { fault, run } = useTask();
  const create = async (): Promise<void> => {
    const { token, expires_at: expiresAt } = await session.createToken({
      scopes: ['view'],
      expiresIn: hours * 3_600,
    });
    setLink({ url: `${location.origin}/${href(['sessions', id], { token })}`, expiresAt });
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void run(create);
      }}
    >
      <p>
        Anyone with the link can watch this session, also what happens from now on, but not change anything. They see
        the parameters and results of actions. They do not see prompts, thoughts and feeds.
      </p>
      <Field label="Valid for">
        {(id) => (
          <select id={id} value={hours} onChange={({ currentTarget: { value } }) => setHours(Number(value))}>
            {HOURS.map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      <button type="submit" class="primary">
        Create a link
      </button>
      {fault}
      {link !== null && (
        <Field label={`Link, until ${time(link.expiresAt)}`}>
          {(id) => (
            <div class="row">
              <input
                id={id}
                class="grow"
                readOnly
                value={link.url}
                onFocus={({ currentTarget }) => currentTarget.select()}
              />
              <CopyButton text={link.url} label="Copy link" />
            </div>
          )}
        </Field>
      )}
    </form>
  );
}
