/** `import` of the original: compiled tools, variables, feeds, and kinds that do not exist here. */
import { isJsonObject } from '../../../src/domain/json.ts';
import type { Json } from '../../../src/domain/json.ts';
import { quoted } from '../../../src/catalog/check/problem.ts';
import type { FieldPath } from '../../../src/catalog/check/problem.ts';
import type { Draft } from '../draft.ts';
import { compiledTool } from '../tool/compiled-in.ts';
import { words } from '../values.ts';

/** Kinds of imports that have no counterpart. */
const IGNORED = ['metadata', 'amulets', 'monuments', 'harness', 'prompts'] as const;

export function understandImports(draft: Draft): void {
  restricted(draft);
  if (!isJsonObject(draft.get(['import']))) return;
  for (const name of ['agents', 'tools', 'relics', 'workflows', 'skills', 'feeds']) oneName(draft, ['import', name]);
  prefixes(draft);
  compiledTools(draft);
  folders(draft);
  variables(draft);
  const ignored = IGNORED.filter((name) => draft.has(['import', name]));
  const [first] = ignored;
  if (first === undefined) return;
  draft.lose(['import', first], `${words(ignored)} ${ignored.length === 1 ? 'has' : 'have'} no effect here`);
  for (const name of ignored) draft.remove(['import', name]);
}

/** A single name instead of a list. */
function oneName(draft: Draft, path: FieldPath): void {
  const written = draft.get(path);
  if (typeof written !== 'string') return;
  draft.note(path, 'text, understood as a list of one name');
  draft.set(path, [written]);
}

/** `builtin/exec` is the same as `exec`. */
function prefixes(draft: Draft): void {
  for (const name of ['tools', 'feeds']) {
    const found = entries(draft.get(['import', name])).filter(({ value }) => value.startsWith('builtin/'));
    const [first] = found;
    if (first === undefined) continue;
    draft.note(['import', name, first.index], 'builtin/ is not part of the name');
    for (const { index, value } of found) draft.set(['import', name, index], value.slice('builtin/'.length));
  }
}

/** A tool of agent-lib's program has a substitute, or is omitted, unless the folder has a tool with this name. */
function compiledTools(draft: Draft): void {
  const omitted = new Map<string, Entry[]>();
  for (const { index, value } of entries(draft.get(['import', 'tools']))) {
    const compiled = compiledTool(value);
    if (compiled === null || draft.around.find(value, 'tool') !== null) continue;
    const { tool, capability, advice } = compiled;
    const path = ['import', 'tools', index];
    const told = (how: string): void =>
      draft.lose(path, `the tool ${value} is compiled into agent-lib, and here ${how}: ${advice}`, 'value');
    if (tool !== undefined && draft.around.find(tool, 'tool') !== null) {
      told(`the tool ${tool} is used`);
      draft.set(path, tool);
      continue;
    }
    if (capability !== undefined) {
      told(`the agent may use ${capability}`);
      grant(draft, path, capability);
    }
    const same = capability === undefined ? advice : '';
    omitted.set(same, [...(omitted.get(same) ?? []), { index, value }]);
  }
  for (const [advice, tools] of omitted) {
    const names = words(tools.map(({ value }) => value));
    const are = tools.length === 1 ? ['tool', 'is', 'it is'] : ['tools', 'are', 'they are'];
    const message = `the ${are[0]} ${names} ${are[1]} compiled into agent-lib, and here ${are[2]} omitted: ${advice}`;
    if (advice !== '') draft.lose(['import', 'tools', tools[0]?.index ?? 0], message, 'value');
  }
  draft.removeItems(['import', 'tools'], new Set([...omitted.values()].flat().map(({ index }) => index)));
}

function grant(draft: Draft, from: FieldPath, capability: Json): void {
  const granted = draft.get(['capabilities']);
  if (granted === undefined) draft.set(['capabilities'], [capability], from);
  else if (Array.isArray(granted) && !granted.includes(capability)) {
    draft.set(['capabilities', granted.length], capability, from);
  }
}

/** A sandbox of the original that allows only some commands or hosts: its tools must not get more here. */
function restricted(draft: Draft): void {
  const sandbox = draft.get(['sandbox']);
  if (!isJsonObject(sandbox)) return;
  const allowsAll = (name: string): boolean => entries(sandbox[name]).some(({ value }) => value === '*');
  const forbidden = Object.keys(sandbox).find((name) => /^(?:den(?:y|ied)|block(?:ed)?|forbidden)(?:_|$)/.test(name));
  const refused = new Map<string, string>();
  if (forbidden !== undefined) for (const name of ['exec', 'web_fetch']) refused.set(name, `sandbox.${forbidden}`);
  if (!allowsAll('allowed_commands')) refused.set('exec', 'sandbox.allowed_commands');
  if (!allowsAll('allowed_hosts') || sandbox['network'] === 'none') refused.set('web_fetch', 'sandbox.allowed_hosts');
  const list = draft.get(['import', 'tools']);
  for (const { index, value } of refused.has('exec') ? entries(draft.get(['capabilities'])) : []) {
    const why = `${refused.get('exec')} does not allow everything and has no counterpart here`;
    draft.refuse(['capabilities', index], `${value} is not possible, because ${why}; remove one of them`);
  }
  const found = entries(list).filter(({ value }) => refused.has(value));
  if (found.length === 0) return;
  for (const { index, value } of found) {
    const why = `omitted, because ${refused.get(value)} does not allow everything and has no counterpart here`;
    const more = value === 'exec' ? '; capabilities: [shell] allows all commands in the sandbox of the runner' : '';
    draft.lose(['import', 'tools', index], `${value} is ${why}${more}`);
  }
  draft.removeItems(['import', 'tools'], new Set(found.map(({ index }) => index)));
}

/** agent-lib imports a relic by its folder. */
function folders(draft: Draft): void {
  for (const { index, value } of entries(draft.get(['import', 'relics']))) {
    if (!/^\.{0,2}\//.test(value) || /\.(ya?ml|md|markdown)$/i.test(value)) continue;
    draft.note(['import', 'relics', index], 'understood as the file relic.yml in this folder');
    draft.set(['import', 'relics', index], `${value.replace(/\/+$/, '')}/relic.yml`);
  }
}

/** `env: ["KEY=value"]`. */
function variables(draft: Draft): void {
  const path = ['import', 'env'];
  const written = draft.get(path);
  if (written === undefined) return;
  const pairs: [string, Json, FieldPath][] = [];
  const unset: string[] = [];
  if (isJsonObject(written))
    for (const [name, value] of Object.entries(written)) pairs.push([name, value, [...path, name]]);
  for (const { index, value } of entries(written)) {
    const at = value.indexOf('=');
    if (at > 0) pairs.push([value.slice(0, at).trim(), value.slice(at + 1), [...path, index]]);
    else unset.push(value);
  }
  const understood = pairs.length > 0 ? ['understood as environment.variables'] : [];
  const ignored = unset.length > 0 ? [`${quoted(unset.join(', '))} has no value: the environment is never read`] : [];
  if (pairs.length + unset.length > 0)
    draft[unset.length > 0 ? 'lose' : 'note'](path, [...understood, ...ignored].join('; '));
  for (const [name, value, from] of pairs) {
    const target = ['environment', 'variables', name];
    if (!draft.has(target)) draft.set(target, value, from);
  }
  draft.remove(path);
}

interface Entry {
  readonly index: number;
  readonly value: string;
}

/** The texts of a list, with their positions. */
function entries(list: Json | undefined): Entry[] {
  if (!Array.isArray(list)) return [];
  return list.flatMap((value, index) => (typeof value === 'string' ? [{ index, value }] : []));
}
