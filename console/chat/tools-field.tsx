/** Tools that the reader executes: they are sent with each message while they are written here (C3). */
import { CodeField } from '../parts/fields.tsx';
import type { Declared } from './tool-declarations.ts';

interface ToolsFieldProps {
  readonly text: string;
  readonly declared: Declared;
  readonly change: (text: string) => void;
}

const EXAMPLE = '[{"name": "get_location", "description": "Where the user is", "parameters": {"type": "object"}}]';

export function ToolsField({ text, declared, change }: ToolsFieldProps) {
  const { tools, issue } = declared;
  return (
    <details class="tools-field">
      <summary>Client tools{tools.length > 0 && ` (${tools.length})`}</summary>
      <CodeField label="Tools that you execute yourself, as JSON" value={text} set={change} rows={4} />
      <p class={issue === undefined ? 'quiet' : 'fault'}>{issue ?? `For example: ${EXAMPLE}`}</p>
    </details>
  );
}
