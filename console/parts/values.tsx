/** The members of an object, for a person who reads or decides about them. */
import { Bounded } from './bounded.tsx';
import { TextView } from './json-view.tsx';
import { memo } from './memo.ts';
import { showInvisible } from './safe-text.ts';

interface ValuesProps {
  readonly title: string;
  readonly values: Readonly<Record<string, unknown>>;
}

/** Invisible characters are shown, and text has its line breaks. What exceeds a limit is behind a button. */
export const Values = memo(function Values({ title, values }: ValuesProps) {
  const entries = Object.entries(values);
  return (
    <>
      <h4>{title}</h4>
      {entries.length === 0 && <p class="quiet">None</p>}
      <Bounded items={entries}>
        {(shown) =>
          shown.map(([key, value]) => {
            const name = showInvisible(key);
            const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
            return (
              <div key={key}>
                <code class="quiet">{name}</code>
                <TextView text={showInvisible(text)} label={name} />
              </div>
            );
          })
        }
      </Bounded>
    </>
  );
});
