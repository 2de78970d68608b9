/** Other names of fields and types in tools and relics of the original, and short forms of their implementation (M3, R5). */
import type { ManifestKind } from '../../src/domain/catalog.ts';
import { isJsonObject } from '../../src/domain/json.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { Draft } from './draft.ts';

/** Other names of `implementation`, in order of precedence. */
const IMPLEMENTATION = ['implementation', 'executor', 'execution', 'service'] as const;
const AT = ['implementation'] as const;
const FIELDS = { timeout_seconds: 'timeout', input_schema: 'parameters', output_schema: 'returns' } as const;
const IMPLEMENTATION_FIELDS = { code: 'script', path: 'entrypoint', language: 'runtime' } as const;
const RUNTIMES: ReadonlySet<string> = new Set(['python', 'python3', 'node', 'javascript', 'shell', 'bash', 'sh']);
const RUNTIME_NAMES: Readonly<Record<string, string>> = { javascript: 'node', sh: 'shell' };
const TYPES: Readonly<Record<string, string>> = {
  docker: 'container',
  image: 'container',
  rest: 'http',
  api: 'http',
  function: 'builtin',
  native: 'builtin',
};
const BUILTINS: ReadonlySet<string> = new Set(['echo', 'calculator', 'web_fetch', 'web_extract', 'json_query']);
const STORES: ReadonlySet<string> = new Set(['kv', 'log', 'sql']);

/** The names and types of this system. If both names of a field are present, the other one stays, and is an error. */
export function understandAliases(kind: ManifestKind, draft: Draft): void {
  if (kind !== 'tool' && kind !== 'relic') return;
  if (kind === 'tool') for (const [from, to] of Object.entries(FIELDS)) rename(draft, [], from, to);
  const chosen = IMPLEMENTATION.find((name) => draft.has([name]));
  if (chosen === undefined) return;
  if (chosen !== 'implementation') rename(draft, [], chosen, 'implementation');
  fromWord(draft, kind);
  if (!isJsonObject(draft.get(AT))) return;
  if (kind === 'tool') for (const [from, to] of Object.entries(IMPLEMENTATION_FIELDS)) rename(draft, AT, from, to);
  typeOf(draft, kind);
}

function rename(draft: Draft, owner: readonly string[], from: string, to: string): void {
  if (!draft.has([...owner, from]) || draft.has([...owner, to])) return;
  draft.note([...owner, from], `understood as ${to}`);
  draft.move([...owner, from], [...owner, to]);
}

/** `executor: calculator`, `executor: kv`. */
function fromWord(draft: Draft, kind: 'tool' | 'relic'): void {
  const word = draft.get(AT);
  if (typeof word !== 'string') return;
  if (kind === 'tool' && BUILTINS.has(word)) draft.set(AT, { type: 'builtin', entrypoint: word });
  else if (kind === 'relic' && STORES.has(word)) draft.set(AT, { type: 'edge', store: word });
}

function typeOf(draft: Draft, kind: 'tool' | 'relic'): void {
  const { type, runtime } = draft.get(AT) as JsonObject;
  const set = (name: string, value: string): void => draft.set([...AT, name], value);
  if (typeof runtime === 'string') set('runtime', RUNTIME_NAMES[runtime] ?? runtime);
  if (type === undefined) {
    const value = draft.get(AT) as JsonObject;
    const known = kind === 'tool' ? toolType(value) : relicType(value);
    if (known !== null) draft.set([...AT, 'type'], known, AT);
    return;
  }
  if (typeof type !== 'string') return;
  const word = type.toLowerCase();
  const used =
    kind === 'tool' && RUNTIMES.has(word) ? 'script' : kind === 'relic' && STORES.has(word) ? 'edge' : TYPES[word];
  if (used === undefined) return;
  draft.note([...AT, 'type'], `understood as ${used}`);
  if (used === 'script' && !draft.has([...AT, 'runtime'])) {
    draft.set([...AT, 'runtime'], RUNTIME_NAMES[word] ?? word, [...AT, 'type']);
  }
  if (used === 'edge' && !draft.has([...AT, 'store'])) draft.set([...AT, 'store'], word, [...AT, 'type']);
  set('type', used);
}

function toolType({ entrypoint, script, runtime, image, build, url }: JsonObject): string | null {
  if (typeof entrypoint === 'string' && BUILTINS.has(entrypoint) && runtime === undefined) return 'builtin';
  if (image !== undefined || build !== undefined) return 'container';
  if (url !== undefined) return 'http';
  return entrypoint !== undefined || script !== undefined ? 'script' : null;
}

function relicType({ store, image, build }: JsonObject): string | null {
  if (store !== undefined) return 'edge';
  return image !== undefined || build !== undefined ? 'container' : null;
}
