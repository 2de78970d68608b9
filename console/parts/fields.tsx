/** Controls with their names. */
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import * as limits from './limits.ts';

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly set: (value: string) => void;
  readonly placeholder?: string;
}

/** A control with its name. @param props.children the control, with the id that its name refers to */
export function Field({
  label,
  children,
}: {
  readonly label: ComponentChildren;
  readonly children: (id: string) => ComponentChildren;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id)}
    </div>
  );
}

/** A box for code or data. Tab leaves it. */
export function CodeField({ label, value, set, placeholder, rows }: FieldProps & { readonly rows: number }) {
  return (
    <Field label={label}>
      {(id) => (
        <textarea
          id={id}
          class="code"
          rows={rows}
          value={value}
          placeholder={placeholder}
          maxLength={limits.editorChars}
          spellcheck={false}
          autocomplete="off"
          autocapitalize="off"
          onInput={({ currentTarget }) => set(currentTarget.value)}
        />
      )}
    </Field>
  );
}

export function TextField({ label, value, set, placeholder }: FieldProps) {
  return (
    <Field label={label}>
      {(id) => (
        <input
          id={id}
          type="search"
          value={value}
          placeholder={placeholder}
          autocomplete="off"
          spellcheck={false}
          onInput={({ currentTarget }) => set(currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** @param props.all the title of the choice of all, whose value is empty; without it, one must be chosen */
export function ChoiceField({
  label,
  value,
  set,
  options,
  all,
}: FieldProps & { readonly options: readonly string[]; readonly all?: string }) {
  return (
    <Field label={label}>
      {(id) => (
        <select id={id} value={value} onChange={({ currentTarget }) => set(currentTarget.value)}>
          {all !== undefined && <option value="">{all}</option>}
          {options.map((option) => (
            <option key={option}>{option}</option>
          ))}
        </select>
      )}
    </Field>
  );
}
