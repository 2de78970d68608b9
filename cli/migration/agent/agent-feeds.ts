/** Feeds of the original: `context_feeds` with other sources, and `import.feeds`. */
import { isJsonObject } from '../../../src/domain/json.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { quoted } from '../../../src/catalog/check/problem.ts';
import type { FieldPath } from '../../../src/catalog/check/problem.ts';
import type { Draft } from '../draft.ts';
import { INTERNAL_SOURCES } from '../../../src/catalog/schema/feed.ts';
import { compiledFeed } from '../tool/compiled-in.ts';
import { words } from '../values.ts';

/** Other names of internal sources. */
const SOURCES: Readonly<Record<string, (typeof INTERNAL_SOURCES)[number]>> = {
  get_system_time: 'system_clock',
  get_datetime: 'system_clock',
  get_current_time: 'system_clock',
  get_time: 'system_clock',
  get_date: 'system_clock',
  system_time: 'system_clock',
  current_time: 'system_clock',
  datetime: 'system_clock',
  clock: 'system_clock',
  get_agent_info: 'agent_metadata',
  get_iteration_count: 'iteration',
  get_token_usage: 'usage',
};
/** Internal sources that exist only on the machine of the original. */
const FOREIGN = /^(get|list|fetch|read|poll)_|^(system_stats|system_status|system_metrics|working_directory)$/;
const FORMATS: Readonly<Record<string, string>> = { timestamp: 'unix', epoch: 'unix', readable: 'human' };
const WHEN: Readonly<Record<string, string>> = {
  streaming: 'on_demand',
  event: 'on_demand',
  event_driven: 'on_demand',
  'on-demand': 'on_demand',
};
export function understandFeeds(draft: Draft): void {
  const written = draft.get(['context_feeds']);
  const omitted = new Set<number>();
  for (const [index, feed] of (Array.isArray(written) ? written : []).entries()) {
    const off = isJsonObject(feed) ? readFeed(draft, ['context_feeds', index], feed) : null;
    if (off === null) continue;
    omitted.add(index);
    draft.lose(['context_feeds', index], `switched off: ${off}`);
  }
  draft.removeItems(['context_feeds'], omitted);
  importedFeeds(draft);
}

/** @returns why the feed cannot have a value here, or null */
function readFeed(draft: Draft, path: FieldPath, feed: JsonObject): string | null {
  const understood: string[] = [];
  readTime(draft, path, feed, understood);
  readCache(draft, path, understood);
  readSource(draft, path, feed, understood);
  const off = readInternal(draft, path, understood);
  if (understood.length > 0 && off === null) draft.note(path, `understood: ${understood.join(', ')}`);
  return off;
}

function readTime(draft: Draft, path: FieldPath, feed: JsonObject, understood: string[]): void {
  const type = feed['type'];
  const when = typeof type === 'string' && Object.hasOwn(WHEN, type) ? WHEN[type] : undefined;
  if (when !== undefined) {
    const used = feed['interval'] === undefined ? when : 'periodic';
    understood.push(`type ${String(type)} as ${used}`);
    draft.set([...path, 'type'], used);
  }
  if (feed['interval'] === null) draft.remove([...path, 'interval']);
  const isPeriodic = draft.get([...path, 'type']) === 'periodic';
  if (!isPeriodic && draft.has([...path, 'interval']) && !draft.has([...path, 'cache_ttl'])) {
    understood.push('interval as cache_ttl, because the feed is not periodic');
    draft.move([...path, 'interval'], [...path, 'cache_ttl']);
  }
  const { enabled } = feed;
  if (enabled === 0 || enabled === 1) {
    understood.push(`enabled as ${enabled === 1}`);
    draft.set([...path, 'enabled'], enabled === 1);
  }
}

/** `cache: {ttl}`, `error_handling: {on_error, default_value}`, `transformation`. */
function readCache(draft: Draft, path: FieldPath, understood: string[]): void {
  const moves = [
    ['cache.ttl', 'cache_ttl'],
    ['error_handling.on_error', 'on_error'],
    ['error_handling.default_value', 'default'],
  ] as const;
  for (const [from, to] of moves) {
    if (!draft.has([...path, ...from.split('.')]) || draft.has([...path, to])) continue;
    if (from === 'cache.ttl' && draft.get([...path, 'cache', 'enabled']) === false) continue;
    understood.push(`${from} as ${to}`);
    draft.move([...path, ...from.split('.')], [...path, to]);
  }
  // what is not known there is an unknown field
  for (const [block, known] of [
    ['cache', ['enabled', 'ttl']],
    ['error_handling', ['on_error', 'default_value']],
  ] as const) {
    if (!isJsonObject(draft.get([...path, block]))) draft.remove([...path, block]);
    for (const name of known) draft.remove([...path, block, name]);
    if (Object.keys(draft.get([...path, block]) ?? {}).length === 0) draft.remove([...path, block]);
  }
  if (draft.has([...path, 'transformation'])) {
    understood.push('transformation without effect');
    draft.remove([...path, 'transformation']);
  }
}

/** A source as text, beside the feed's own fields, or with `tool: name`. */
function readSource(draft: Draft, path: FieldPath, feed: JsonObject, understood: string[]): void {
  const source = [...path, 'source'];
  const written = feed['source'];
  if (typeof written === 'string') {
    const known = internalSource(written);
    understood.push(`source as the ${known === null ? 'tool' : 'internal source'} ${quoted(written)}`);
    draft.set(source, known === null ? { type: 'tool', name: written } : { type: 'internal', action: known });
    return;
  }
  if (written === undefined) {
    const names = ['name', 'action', 'params', 'parameters', 'tool', 'relic', 'agent', 'workflow'];
    const found = names.filter((name) => feed[name] !== undefined);
    if (found.length === 0) return;
    understood.push(`${words(found)} as part of source`);
    for (const name of found) draft.move([...path, name], [...source, name]);
  }
  for (const type of ['tool', 'relic', 'agent', 'workflow']) {
    const name = draft.get([...source, type]);
    if (typeof name !== 'string' || draft.has([...source, 'name'])) continue;
    understood.push(`source.${type} as source.name`);
    draft.move([...source, type], [...source, 'name']);
    if (!draft.has([...source, 'type']) && feed['type'] !== type)
      draft.set([...source, 'type'], type, [...source, 'name']);
  }
}

/** The names of internal sources and their parameters. */
function readInternal(draft: Draft, path: FieldPath, understood: string[]): string | null {
  const source = [...path, 'source'];
  const type = draft.get([...source, 'type']) ?? draft.get([...path, 'type']);
  if (type === 'external') return 'a source outside of the system has no protocol here; write a tool of type http';
  if (type !== 'internal') return null;
  const field = draft.has([...source, 'action']) ? 'action' : 'name';
  const name = draft.get([...source, field]);
  if (typeof name !== 'string' || isInternal(name)) return null;
  const known = internalSource(name);
  if (known === null) {
    if (!FOREIGN.test(name)) return null;
    return `${quoted(name)} is not an internal source here (known: ${INTERNAL_SOURCES.join(', ')}); write a tool`;
  }
  understood.push(`${name} as ${known}`);
  draft.set([...source, field], known);
  const format = draft.get([...source, 'params', 'format']);
  const other = typeof format === 'string' && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
  if (other !== undefined) draft.set([...source, 'params', 'format'], other);
  return null;
}

function internalSource(name: string): (typeof INTERNAL_SOURCES)[number] | null {
  if (isInternal(name)) return name;
  if (Object.hasOwn(SOURCES, name)) return SOURCES[name] ?? null;
  const plain = name.replace(/^get_/, '');
  return isInternal(plain) ? plain : null;
}

function isInternal(name: string): name is (typeof INTERNAL_SOURCES)[number] {
  return (INTERNAL_SOURCES as readonly string[]).includes(name);
}

/** Names and paths of feed manifests: each is a feed whose source is the tool of that manifest. */
function importedFeeds(draft: Draft): void {
  const path = ['import', 'feeds'];
  const written = draft.get(path);
  if (!Array.isArray(written)) return;
  const entries = written.flatMap((name, index) => (typeof name === 'string' ? [{ name, index }] : []));
  const used = new Set(ids(draft));
  for (const { name, index } of entries) {
    const id = idOf(name);
    if (used.has(id)) continue;
    used.add(id);
    addFeed(draft, [...path, index], name, id);
  }
  if (entries.length > 0) draft.note(path, 'understood as context_feeds');
  draft.remove(path);
}

/** The agent imports the tool of the feed. */
function addFeed(draft: Draft, from: FieldPath, name: string, id: string): void {
  const { internal, tool, advice } = compiledFeed(name) ?? {};
  const add = (source: JsonObject): void => {
    const list = draft.get(['context_feeds']);
    if (!Array.isArray(list)) draft.set(['context_feeds'], [], from);
    draft.set(['context_feeds', Array.isArray(list) ? list.length : 0], { id, source }, from);
  };
  if (internal !== undefined) return add({ type: 'internal', action: internal });
  const found = draft.around.find(name, 'tool');
  const other = found === null && tool !== undefined ? draft.around.find(tool, 'tool') : null;
  const used = found ?? other;
  if (used === null || 'faulty' in used || other !== null) {
    const instead = other === null ? 'it is omitted' : `the tool ${tool} is used`;
    const missing =
      advice === undefined
        ? `there is no feed ${quoted(name)}, so it is omitted`
        : `the feed ${name} is compiled into agent-lib, and here ${instead}: ${advice}`;
    draft.lose(from, used !== null && 'faulty' in used ? used.faulty : missing, 'value');
  } else if (used.note !== null) draft.note(from, used.note, 'value');
  if (used === null || 'faulty' in used) return;
  add({ type: 'tool', name: used.name });
  const tools = draft.get(['import', 'tools']);
  if (!Array.isArray(tools)) draft.set(['import', 'tools'], [used.written], from);
  else if (!tools.includes(used.written)) draft.set(['import', 'tools', tools.length], used.written, from);
}

/** The name of a feed, or of the folder of its file. */
function idOf(name: string): string {
  const steps = name.split('/').filter((step) => step !== '' && !/^(\.{1,2}|feed\.ya?ml)$/i.test(step));
  const last = (steps.at(-1) ?? name).replace(/\.ya?ml$/i, '');
  return last.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64);
}

function ids(draft: Draft): string[] {
  const list = draft.get(['context_feeds']);
  return (Array.isArray(list) ? list : []).flatMap((feed) =>
    isJsonObject(feed) && typeof feed['id'] === 'string' ? [feed['id']] : [],
  );
}
