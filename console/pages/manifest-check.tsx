/** Validates a manifest while one types (U4). */
import type { ManifestIssue } from '../../src/client/index.ts';
import { draft } from '../parts/drafts.ts';
import { CodeField } from '../parts/fields.tsx';
import { cut, plural } from '../parts/format.ts';
import { Loaded } from '../parts/loaded.tsx';
import { Section } from '../parts/section.tsx';
import { useTyped } from '../parts/typed.ts';
import { Issues } from './issues.tsx';
import { lineOf, selectLine } from './text-lines.ts';

const LINE_CHARS = 120;

const EXAMPLE = `kind: Agent
version: "1.0"
name: night_porter
summary: Answers questions of hotel guests at night.
persona:
  agent: You are the night porter of a small hotel. Compute prices with the calculator.
import:
  tools: [calculator]
capabilites: [python]
`;

function textBox(): HTMLTextAreaElement | null {
  return document.querySelector('textarea');
}

/** Goes to the text box. */
export function showCheck(): void {
  textBox()?.focus();
}

export function ManifestCheck() {
  const written = draft('manifest', '');
  const text = written.value;
  const load = useTyped(text, async (client, aborted) => ({
    text,
    check: await client.validateManifests({ 'manifest.yaml': text }, { signal: aborted }),
  }));
  return (
    <Section
      title="Validate a manifest"
      actions={
        <button type="button" onClick={() => (written.value = EXAMPLE)}>
          Insert an example
        </button>
      }
    >
      <p class="quiet">It is checked while you type, and not stored.</p>
      <CodeField label="Manifest" rows={14} value={text} set={(to) => (written.value = to)} />
      <Loaded load={load}>
        {({ result }) => {
          if (result === undefined) return null;
          const { manifests, problems, warnings, skipped } = result.check;
          const failed = [...problems, ...skipped];
          const issue = ({ line, column, field, message }: ManifestIssue) => (
            <>
              <button type="button" class="small" onClick={() => showLine(line)}>
                Line {line}, column {column}
              </button>
              <p>
                <code>{field}</code> {message}
              </p>
              <code class="clip">{cut(lineOf(result.text, line), LINE_CHARS)}</code>
            </>
          );
          return (
            <>
              <p role="status" class={failed.length === 0 ? 'status-completed' : 'status-failed'}>
                {failed.length === 0
                  ? `Valid: ${manifests.map(({ kind, name }) => `${kind} ${name}`).join(', ')}`
                  : `Not usable: ${plural(failed.length, 'problem')}`}
                {warnings.length > 0 && `, ${plural(warnings.length, 'warning')}`}
              </p>
              <Issues title="Problems" issues={failed}>
                {issue}
              </Issues>
              <Issues title="Warnings" isWarning issues={warnings}>
                {issue}
              </Issues>
            </>
          );
        }}
      </Loaded>
    </Section>
  );
}

function showLine(line: number): void {
  const box = textBox();
  if (box !== null) selectLine(box, line);
}
