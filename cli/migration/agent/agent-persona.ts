/** Where agents of the original have their prompts: `persona` with paths, `context`, modules and skills of one file. */
import { isJsonObject } from '../../../src/domain/json.ts';
import type { Json } from '../../../src/domain/json.ts';
import type { FieldPath } from '../../../src/catalog/check/problem.ts';
import { quoted } from '../../../src/catalog/check/problem.ts';
import { splitFrontMatter } from '../../../src/catalog/read/front-matter.ts';
import type { Draft } from '../draft.ts';
import { words } from '../values.ts';

/** Most characters of a module or a skill that become part of the persona. */
const PART_CHARS = 4_000;

/** A part of the persona: text, or a file. */
interface Part {
  readonly from: FieldPath;
  readonly value: Json;
}

/** @returns where the manifest names parts of a persona, if none of them exists; else null */
export function understandPersona(draft: Draft): FieldPath | null {
  const written = [['persona'], ['context'], ['system_prompt']].find((path) => draft.has(path)) ?? ['import'];
  wholePersona(draft);
  const found = [
    ofFields(draft, ['persona'], ['agent']),
    ofContext(draft),
    ofFields(draft, ['persona'], ['system', 'knowledge']),
    ofFields(draft, [], ['system_prompt']),
    modules(draft),
    singleFiles(draft),
  ].filter((parts) => parts !== null);
  userOfTheAgent(draft);
  examples(draft);
  if (found.length === 0) return null;
  const parts = found.flat();
  const isRead = parts.some(({ from }) => from[0] === 'persona' && from[1] === 'agent');
  const all = [...(isRead ? [] : ownPersona(draft)), ...parts];
  setParts(draft, all);
  return all.length === 0 ? written : null;
}

/** An agent without a persona, which has a default in the original. */
export function defaultPersona(draft: Draft, empty: FieldPath | null): void {
  if (draft.has(['persona']) && empty === null) return;
  const from = ['description', 'summary'].find((name) => typeof draft.get([name]) === 'string');
  if (from === undefined) return;
  const text = draft.get([from]) ?? '';
  if (empty !== null) {
    draft.lose(empty, `none of its parts has text, so the ${from} is the persona`, 'value');
    return draft.set(['persona', 'agent'], text);
  }
  draft.note([from], `there is no persona: the ${from} is used`);
  draft.set(['persona'], text, [from]);
}

/** `persona: ./persona.md`. */
function wholePersona(draft: Draft): void {
  const persona = draft.get(['persona']);
  if (typeof persona !== 'string' || !isPath(persona)) return;
  draft.set(['persona'], { agent: persona });
}

/** Parts in fields of the original; their text is the path of a file. */
function ofFields(draft: Draft, owner: FieldPath, names: readonly string[]): Part[] | null {
  const found = names.flatMap((name) => {
    const path = [...owner, name];
    const written = draft.get(path);
    if (typeof written !== 'string') return [];
    const isFile = isPath(written);
    // text in `persona.agent` is our own form
    if (!isFile && name === 'agent') return [];
    draft.note(path, isFile ? 'understood as a file that is part of the persona' : 'understood as part of the persona');
    const part = partOf(draft, path, written);
    if (name !== 'agent') draft.remove(path);
    return [part];
  });
  return found.length === 0 ? null : found.flat();
}

/** `context: {persona, system, harness, user, …}` of agent-lib. */
function ofContext(draft: Draft): Part[] | null {
  const context = draft.get(['context']);
  if (!isJsonObject(context)) return null;
  const names = ['persona', 'system'].filter((name) => typeof context[name] === 'string');
  const parts = names.flatMap((name) => partOf(draft, ['context', name], context[name] as string));
  const understood = names.length === 0 ? [] : [`${words(names)} as parts of the persona`];
  const user = ['user', 'user_context', 'operator'].find((name) => typeof context[name] === 'string');
  if (user !== undefined && !draft.has(['persona', 'user'])) {
    understood.push(`${user} as persona.user`);
    for (const { value, from } of partOf(draft, ['context', user], context[user] as string)) {
      draft.set(['persona', 'user'], value, from);
    }
    draft.remove(['context', user]);
  }
  const ignored = draft.has(['context', 'harness'])
    ? ['harness is not used, because the prompt of this system teaches its own protocol']
    : [];
  const said = [understood.length > 0 ? `understood: ${understood.join(', ')}` : '', ...ignored].filter(Boolean);
  if (said.length > 0) draft[ignored.length > 0 ? 'lose' : 'note'](['context'], said.join('; '));
  for (const name of ['persona', 'system', 'harness']) draft.remove(['context', name]);
  return names.length === 0 ? null : parts;
}

/** `import.files`: prompt modules. */
function modules(draft: Draft): Part[] | null {
  const path = ['import', 'files'];
  const written = draft.get(path);
  if (written === undefined) return null;
  const entries = [written].flat().map((file, index) => ({ file, index }));
  const parts = partsOf(draft, path, entries, Array.isArray(written));
  draft.remove(path);
  return parts;
}

/** Skills of one file: others than those in a folder with a `SKILL.md`, they cannot be loaded when they are needed (C8). */
function singleFiles(draft: Draft): Part[] | null {
  const path = ['import', 'skills'];
  const written = draft.get(path);
  if (written === undefined) return null;
  const entries = [written].flat().map((file, index) => ({ file, index }));
  const isSingle = ({ file }: { readonly file: Json }): boolean =>
    typeof file === 'string' && /\.(md|markdown)$/i.test(file) && !/(^|\/)SKILL\.md$/i.test(file);
  const single = entries.filter(isSingle);
  if (single.length === 0) return null;
  const parts = partsOf(draft, path, single, Array.isArray(written));
  if (single.length === entries.length) draft.remove(path);
  else draft.removeItems(path, new Set(single.map(({ index }) => index)));
  return parts;
}

/** The files of a list as parts of the persona. */
function partsOf(
  draft: Draft,
  path: FieldPath,
  entries: readonly { readonly file: Json; readonly index: number }[],
  isList: boolean,
): Part[] | null {
  const isSkill = path[1] === 'skills';
  const names = entries.filter(({ file }) => typeof file === 'string' && file !== '');
  if (names.length === 0) return null;
  draft.note(path, 'understood as parts of the persona');
  return names.flatMap(({ file, index }): Part[] => {
    const from = isList ? [...path, index] : path;
    const text = draft.around.textOf(String(file));
    if (text === null) {
      draft.lose(from, `there is no file ${quoted(file)}, so it is not part of the persona`, 'value');
      return [];
    }
    const body = (isSkill ? (splitFrontMatter(text)?.body ?? text) : text).trim();
    if (body === '') return [];
    const heading = `${isSkill ? '## Skill: ' : '## '}${titleOf(String(file))}`;
    if (body.length <= PART_CHARS) return [{ from, value: `${heading}\n\n${body}` }];
    const cut = `has ${body.length} characters, of which the first ${PART_CHARS} are part of the persona`;
    draft.lose(from, cut, 'value');
    return [{ from, value: `${heading}\n\n${body.slice(0, PART_CHARS).toWellFormed()}…` }];
  });
}

/** The name of a file without folder and extension. */
function titleOf(path: string): string {
  const steps = path.split('/').filter((step) => step !== '');
  return (steps.at(-1) ?? path).replace(/\.[A-Za-z0-9]+$/, '');
}

/** A path in `persona.user`. */
function userOfTheAgent(draft: Draft): void {
  const path = ['persona', 'user'];
  const written = draft.get(path);
  if (typeof written !== 'string' || !isPath(written)) return;
  draft.note(path, 'understood as a file');
  const [part] = partOf(draft, path, written);
  if (part === undefined) draft.remove(path);
  else draft.set(path, part.value);
}

/** Paths in `persona.examples`. */
function examples(draft: Draft): void {
  const written = draft.get(['persona', 'examples']);
  if (!Array.isArray(written)) return;
  const missing = new Set<number>();
  for (const [index, example] of written.entries()) {
    const path = ['persona', 'examples', index];
    if (typeof example !== 'string' || !isPath(example)) continue;
    draft.note(path, 'understood as a file');
    const [part] = partOf(draft, path, example);
    if (part === undefined) missing.add(index);
    else draft.set(path, part.value);
  }
  draft.removeItems(['persona', 'examples'], missing);
}

/** The persona in our own form, if the original's parts are added to it. */
function ownPersona(draft: Draft): Part[] {
  const persona = draft.get(['persona']);
  const whole = isJsonObject(persona) ? (persona['agent'] ?? fileOf(persona['file'])) : persona;
  const from = isJsonObject(persona) && persona['agent'] !== undefined ? ['persona', 'agent'] : ['persona'];
  return [whole ?? []].flat().map((value) => ({ from, value }));
}

function fileOf(path: Json | undefined): Json | undefined {
  return path === undefined ? undefined : { file: path };
}

function setParts(draft: Draft, parts: readonly Part[]): void {
  const different = parts.filter(
    ({ value }, at) => parts.findIndex((one) => JSON.stringify(one.value) === JSON.stringify(value)) === at,
  );
  const from = different[0]?.from ?? ['persona'];
  if (!isJsonObject(draft.get(['persona']))) draft.set(['persona'], {}, from);
  // a list whose items keep the places where the author wrote them
  draft.set(
    ['persona', 'agent'],
    different.map(() => null),
    from,
  );
  draft.remove(['persona', 'file']);
  for (const [index, { value, from: place }] of different.entries()) {
    draft.set(['persona', 'agent', index], value, place);
  }
}

/** A text, or a file; nothing if it does not exist. */
function partOf(draft: Draft, from: FieldPath, written: string): readonly Part[] {
  if (!isPath(written) && /\s/.test(written)) return [{ from, value: written }];
  if (draft.around.textOf(written) !== null) return [{ from, value: { file: written } }];
  draft.lose(from, `there is no file ${quoted(written)}, so this part of the persona is empty`, 'value');
  return [];
}

/** A single line that ends like the name of a text file, or a path without white space. */
function isPath(text: string): boolean {
  const line = text.trim();
  if (line === '' || line.includes('\n') || line.length > 255) return false;
  return (
    /^(\.{1,2}\/|\/)?\S+\.(md|markdown|txt|prompt)$/i.test(line) ||
    /^\.{0,2}\/.*\.(md|markdown|txt|prompt)$/i.test(line)
  );
}
