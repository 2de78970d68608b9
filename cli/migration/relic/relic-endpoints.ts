/** Endpoints of the original's relics: `interface.endpoints`, addresses as text, and parameters that are not declared. */
import { isJsonObject } from '../../../src/domain/json.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import type { Draft } from '../draft.ts';

const LISTS = [['interface', 'endpoints'], ['interface', 'operations'], ['operations']];

export function understandEndpoints(draft: Draft): void {
  const from = LISTS.find((path) => draft.has(path));
  if (from !== undefined && !draft.has(['endpoints'])) {
    draft.note(from, 'understood as endpoints');
    draft.move(from, ['endpoints']);
  }
  const written = draft.get(['endpoints']);
  if (Array.isArray(written)) for (const index of written.keys()) endpoint(draft, index);
  else if (isJsonObject(written)) for (const name of Object.keys(written)) endpoint(draft, name);
}

function endpoint(draft: Draft, key: string | number): void {
  const at = ['endpoints', key];
  const written = draft.get(at);
  if (typeof written === 'string' && typeof key === 'string') {
    draft.note(at, 'understood as {path: …, method: POST}');
    draft.set(at, { path: written });
  } else if (!isJsonObject(written)) return;
  const get = (name: string): Json | undefined => draft.get([...at, name]);
  if (get('path') === undefined)
    draft.move([...at, typeof get('endpoint') === 'string' ? 'endpoint' : 'url'], [...at, 'path']);
  const path = get('path');
  if (typeof path === 'string') draft.set([...at, 'path'], plainPath(path));
  const method = get('method');
  if (typeof method === 'string') draft.set([...at, 'method'], method.toUpperCase());
  if (get('parameters') === undefined && isJsonObject(get('request_body'))) {
    draft.note([...at, 'request_body'], 'understood as parameters');
    draft.move([...at, 'request_body'], [...at, 'parameters']);
  }
  if (isJsonObject(get('response')) && get('returns') === undefined)
    draft.move([...at, 'response'], [...at, 'returns']);
  if (get('parameters') === undefined && get('parameters_schema') === undefined) {
    draft.set([...at, 'parameters'], anyParameters(typeof path === 'string' ? path : ''), at);
  }
}

/** The path of an address: `http://localhost:8004/embed?x=1`, `${URL:-http://localhost}/embed`, `embed`. */
function plainPath(written: string): string {
  const path = written.trim().replace(/^(?:\$\{[^}]*\}|https?:\/\/[^/]*)/, '');
  return path.startsWith('/') ? path : `/${path}`;
}

/** An endpoint without declared parameters accepts any; those in its path are required. */
function anyParameters(path: string): JsonObject {
  const names = [...path.matchAll(/\{([A-Za-z_]\w*)\}/g)].map(([, name = '']) => name);
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
    ...(names.length === 0 ? {} : { required: names }),
    additionalProperties: true,
  };
}
