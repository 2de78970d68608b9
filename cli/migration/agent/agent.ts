/** Agent manifests of the original system. */
import { isProtecting } from '../draft.ts';
import type { Draft } from '../draft.ts';
import { understandEngine } from './agent-engine.ts';
import { understandFeeds } from './agent-feeds.ts';
import { understandImports } from './agent-imports.ts';
import { defaultPersona, understandPersona } from './agent-persona.ts';
import { understandRuntime } from './agent-runtime.ts';
import { keepAsMetadata } from '../values.ts';

export function understandAgent(draft: Draft): void {
  emptyFields(draft);
  understandEngine(draft);
  const empty = understandPersona(draft);
  // reads `sandbox`, which is then removed
  understandImports(draft);
  understandRuntime(draft);
  understandFeeds(draft);
  keepAsMetadata(draft, DESCRIPTIVE);
  // in our own form, these fields are required
  if (draft.notes.length > 0 || !draft.has(['persona'])) defaults(draft);
  defaultPersona(draft, empty);
}

/** Maps of an agent whose members may be empty. */
const BLOCKS = [
  [],
  ['import'],
  ['context'],
  ['persona'],
  ['runtime'],
  ['memory'],
  ['loop'],
  ['environment'],
  ['cognitive_engine'],
  ['cognitive_engine', 'primary'],
  ['cognitive_engine', 'fallback'],
] as const;

/** `agents:` without a value, as the original allows. */
function emptyFields(draft: Draft): void {
  for (const block of BLOCKS) {
    const members = draft.get(block);
    if (typeof members !== 'object' || members === null || Array.isArray(members)) continue;
    for (const [name, value] of Object.entries(members)) {
      // the schema refuses it
      if (value !== null || isProtecting(name)) continue;
      draft.note([...block, name], 'has no value and is ignored');
      draft.remove([...block, name]);
    }
  }
}

/** The original has defaults for `version` and `summary`. */
function defaults(draft: Draft): void {
  const name = draft.get(['name']);
  if (typeof name !== 'string') return;
  if (!draft.has(['version'])) {
    draft.note(['name'], 'there is no version: 1.0 is used');
    draft.set(['version'], '1.0', ['name']);
  }
  const summary = draft.get(['summary']);
  if (summary !== undefined && summary !== '') return;
  const description = draft.get(['description']);
  const [line = ''] = typeof description === 'string' ? description.trim().split('\n') : [];
  draft.note(
    ['name'],
    `there is no summary: ${line === '' ? 'the name' : 'the first line of the description'} is used`,
  );
  draft.set(['summary'], line === '' ? `The agent ${name}.` : line.slice(0, 500), ['name']);
}

/** Fields that describe an agent of the original and change nothing here. */
const DESCRIPTIVE = ['agency_level', 'grade', 'category', 'metrics'] as const;
