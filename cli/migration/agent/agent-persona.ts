/** Where agents of the original have their prompts: `persona` with paths, `context`, modules and skills of one file. */
import { isJsonObject } from '../../../src/domain/json.ts';
import type { Json } from '../../../src/domain/json.ts';
import type { FieldPath } from '../../../src/catalog/check/problem.ts';
import { quoted } from '../../../src/catalog/check/problem.ts';
import { splitFrontMatter } from '../../../src/catalog/read/front-matter.ts';
import type { Draft, Tolerance } from '../draft.ts';
import { words } from '../values.ts';

/** Most characters of a module or a skill that become part of the persona. */
const PART_CHARS = 4_000;

/** A part of the persona: text, or a file that may be missing. */
interface Part {
  readonly from: FieldPath;
  readonly value: Json;
  readonly tolerance: Tolerance | null;
}

export function understandPersona(draft: Draft): void {
  wholePersona(draft);
  const parts = [
    ...ofFields(draft, ['persona'], ['agent']),
    ...ofContext(draft),
    ...ofFields(draft, ['persona'], ['system', 'knowledge']),
    ...ofFields(draft, [], ['system_prompt']),
  ];
  const more = [...modules(draft), ...singleFiles(draft)];
  userOfTheAgent(draft);
  examples(draft);
  if (parts.length > 0 || more.length > 0) {
    const isRead = parts.some(({ from }) => from[0] === 'persona' && from[1] === 'agent');
    const own = isRead ? [] : ownPersona(draft);
    setParts(draft, [...own, ...parts, ...more]);
  }
}

/** An agent without a persona, which has a default in the original. */
export function defaultPersona(draft: Draft): void {
  if (draft.has(['persona'])) return;
  const from = ['description', 'summary'].find((name) => typeof draft.get([name]) === 'string');
  if (from === undefined) return;
  draft.note([from], `there is no persona: the ${from} is used`);
  draft.set(['persona'], draft.get([from]) ?? '', [from]);
}

/** `persona: ./persona.md`. */
function wholePersona(draft: Draft): void {
  const persona = draft.get(['persona']);
  if (typeof persona !== 'string' || !isPath(persona)) return;
  draft.set(['persona'], { agent: persona });
}

/** Parts in fields of the original; their text is the path of a file. */
function ofFields(draft: Draft, owner: FieldPath, names: readonly string[]): Part[] {
  return names.flatMap((name) => {
    const path = [...owner, name];
    const written = draft.get(path);
    if (typeof written !== 'string') return [];
    const isFile = isPath(written);
    // text in `persona.agent` is our own form
    if (!isFile && name === 'agent') return [];
    draft.note(path, isFile ? 'understood as a file that is part of the persona' : 'understood as part of the persona');
    const part = partOf(path, written);
    if (name !== 'agent') draft.remove(path);
    return [part];
  });
}

/** `context: {persona, system, harness, user, …}` of agent-lib. */
function ofContext(draft: Draft): Part[] {
  const context = draft.get(['context']);
  if (!isJsonObject(context)) return [];
  const names = ['persona', 'system'].filter((name) => typeof context[name] === 'string');
  const parts = names.map((name) => partOf(['context', name], context[name] as string));
  const understood = names.length === 0 ? [] : [`${words(names)} as parts of the persona`];
  const user = ['user', 'user_context', 'operator'].find((name) => typeof context[name] === 'string');
  if (user !== undefined && !draft.has(['persona', 'user'])) {
    understood.push(`${user} as persona.user`);
    const { value, tolerance } = partOf(['context', user], context[user] as string);
    draft.set(['persona', 'user'], value, ['context', user]);
    if (tolerance !== null) draft.tolerate(['persona', 'user', 'file'], tolerance);
    draft.remove(['context', user]);
  }
  const ignored = draft.has(['context', 'harness'])
    ? ['harness is not used, because the prompt of this system teaches its own protocol']
    : [];
  const said = [understood.length > 0 ? `understood: ${understood.join(', ')}` : '', ...ignored].filter(Boolean);
  if (said.length > 0) draft[ignored.length > 0 ? 'lose' : 'note'](['context'], said.join('; '));
  for (const name of ['persona', 'system', 'harness']) draft.remove(['context', name]);
  return parts;
}

/** `import.files`: prompt modules. */
function modules(draft: Draft): Part[] {
  const path = ['import', 'files'];
  const written = draft.get(path);
  if (written === undefined) return [];
  const entries = [written].flat().map((file, index) => ({ file, index }));
  draft.remove(path);
  return partsOf(draft, path, entries, Array.isArray(written));
}

/** Skills of one file: others than those in a folder with a `SKILL.md`, they cannot be loaded when they are needed (C8). */
function singleFiles(draft: Draft): Part[] {
  const path = ['import', 'skills'];
  const written = draft.get(path);
  if (written === undefined) return [];
  const entries = [written].flat().map((file, index) => ({ file, index }));
  const isSingle = ({ file }: { readonly file: Json }): boolean =>
    typeof file === 'string' && /\.(md|markdown)$/i.test(file) && !/(^|\/)SKILL\.md$/i.test(file);
  const single = entries.filter(isSingle);
  if (single.length === 0) return [];
  const rest = entries.filter((entry) => !isSingle(entry)).map(({ file }) => file);
  if (rest.length === 0) draft.remove(path);
  else draft.set(path, rest);
  return partsOf(draft, path, single, Array.isArray(written));
}

/** The files of a list as parts of the persona. */
function partsOf(
  draft: Draft,
  path: FieldPath,
  entries: readonly { readonly file: Json; readonly index: number }[],
  isList: boolean,
): Part[] {
  const isSkill = path[1] === 'skills';
  const parts = entries.flatMap(({ file, index }): Part[] => {
    if (typeof file !== 'string' || file === '') return [];
    return [
      {
        from: isList ? [...path, index] : path,
        value: { file },
        tolerance: {
          missing: `there is no file ${quoted(file)}, so it is not part of the persona`,
          convert: (text) => asPart(text, titleOf(file), isSkill),
        },
      },
    ];
  });
  if (parts.length > 0) draft.note(path, 'understood as parts of the persona');
  return parts;
}

/** The name of a file without folder and extension. */
function titleOf(path: string): string {
  const steps = path.split('/').filter((step) => step !== '');
  return (steps.at(-1) ?? path).replace(/\.[A-Za-z0-9]+$/, '');
}

function asPart(text: string, title: string, isSkill: boolean): ReturnType<NonNullable<Tolerance['convert']>> {
  const body = (isSkill ? (splitFrontMatter(text)?.body ?? text) : text).trim();
  if (body === '') return { text: '', note: null };
  const heading = isSkill ? `## Skill: ${title}` : `## ${title}`;
  if (body.length <= PART_CHARS) return { text: `${heading}\n\n${body}`, note: null };
  return {
    text: `${heading}\n\n${body.slice(0, PART_CHARS).toWellFormed()}…`,
    note: `has ${body.length} characters, of which the first ${PART_CHARS} are part of the persona`,
  };
}

/** A path in `persona.user`. */
function userOfTheAgent(draft: Draft): void {
  const path = ['persona', 'user'];
  const written = draft.get(path);
  if (typeof written !== 'string' || !isPath(written)) return;
  draft.note(path, 'understood as a file');
  draft.set(path, { file: written });
  draft.tolerate([...path, 'file'], { missing: missing(written) });
}

/** Paths in `persona.examples`. */
function examples(draft: Draft): void {
  const written = draft.get(['persona', 'examples']);
  if (!Array.isArray(written)) return;
  for (const [index, example] of written.entries()) {
    if (typeof example !== 'string' || !isPath(example)) continue;
    draft.note(['persona', 'examples', index], 'understood as a file');
    draft.set(['persona', 'examples', index], { file: example });
    draft.tolerate(['persona', 'examples', index, 'file'], { missing: missing(example) });
  }
}

/** The persona in our own form, if the original's parts are added to it. */
function ownPersona(draft: Draft): Part[] {
  const persona = draft.get(['persona']);
  const whole = isJsonObject(persona) ? (persona['agent'] ?? fileOf(persona['file'])) : persona;
  const from = isJsonObject(persona) && persona['agent'] !== undefined ? ['persona', 'agent'] : ['persona'];
  return [whole ?? []].flat().map((value) => ({ from, value, tolerance: null }));
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
  for (const [index, { value, tolerance, from: place }] of different.entries()) {
    draft.set(['persona', 'agent', index], value, place);
    if (tolerance !== null) draft.tolerate(['persona', 'agent', index, 'file'], tolerance);
  }
}

function partOf(from: FieldPath, written: string): Part {
  if (!isPath(written) && /\s/.test(written)) return { from, value: written, tolerance: null };
  return { from, value: { file: written }, tolerance: { missing: missing(written) } };
}

function missing(path: string): string {
  return `there is no file ${quoted(path)}, so this part of the persona is empty`;
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
