/**
 * Recognises manifests of Cortex-MK1 and agent-lib-cpp, which the loader does not read: `cortex migrate` converts them. The
 * signs are names and words that only those systems have, so a manifest in our own form has none of them.
 */
import type { ManifestKind } from '../../domain/catalog.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import type { Issue } from '../check/issues.ts';
import type { FieldPath } from '../check/problem.ts';

/** The message about a sign. */
export const FOREIGN =
  'is of Cortex-MK1 or agent-lib-cpp, which this system does not read: `cortex migrate <folder> --out <new folder>` converts manifests (docs/migration.md)';

/** Field names by the place of their map. `[]` is each item of a list, `*` each member of a map or list. */
export const FOREIGN_FIELDS: Readonly<Record<ManifestKind, Readonly<Record<string, string>>>> = {
  agent: {
    '': 'agency_level category compacting compaction config context extends grade iteration_cap metrics prompt_building retry runtime sandbox system_prompt trim',
    persona: 'knowledge system',
    import: 'amulets env feeds files harness monuments prompts',
    cognitive_engine: 'api_key_secret endpoint function_calling model provider thinking thinking_level',
    'cognitive_engine.primary': 'fallback function_calling parameters thinking thinking_level',
    'cognitive_engine.fallback': 'fallback function_calling parameters thinking thinking_level',
    'cognitive_engine.fallback.[]': 'fallback function_calling parameters thinking thinking_level',
    memory: 'conversation enabled persistence semantic type',
    environment: 'env_file resources workspace',
    'context_feeds.[]': 'agent cache error_handling relic tool transformation workflow',
  },
  tool: {
    '': 'allow_empty build category dependencies entrypoint environment execution executor health_check input_schema input_type on_error output_schema runtime script service text_param timeout_sec timeout_seconds timeout_secs',
    implementation: 'code health_check input_type language path text_param timeout timeout_sec timeout_secs',
    'parameters.[]': 'validation',
  },
  relic: {
    '': 'automation category compose_dir compose_file deployment environment execution executor health_check health_path interface mode operations persistence port project_name service service_type',
    implementation: 'compose_file health_check',
    'endpoints.*': 'endpoint request_body response url',
  },
  workflow: {
    '': 'auto_checkpoint category configuration error_handlers extends input_schema notifications output_schema triggers variables',
    trigger: 'event_source event_type parameters schedule',
    'steps.[]':
      'agent body default feed id if on on_error over parallel params relic response_var step then tool try_catch workflow',
  },
  skill: {},
  monument: {},
};

/** Words in a field, by its place. */
const WORDS: Readonly<Partial<Record<ManifestKind, Readonly<Record<string, RegExp>>>>> = {
  agent: {
    persona: /^\S*\.(?:md|markdown|txt|prompt)$/i,
    'persona.agent': /^\S*\.(?:md|markdown|txt|prompt)$/i,
    'persona.user': /^\S*\.(?:md|markdown|txt|prompt)$/i,
    'import.tools.[]': /^builtin\/[^/.]+$/,
    'cognitive_engine.primary.provider': /^(?:google|google-ai|googleai|x-ai|xai-auth|grok|claude|llamacpp)$/i,
  },
  tool: {
    kind: /^feed$/i,
    'implementation.type': /^(?:api|bash|binary|docker|function|image|javascript|native|node|python3?|rest|sh|shell)$/i,
  },
  relic: { 'implementation.type': /^(?:docker|docker[-_]?compose|compose|image|kv|log|sql)$/i },
  workflow: {
    'steps.[].type': /^(?:checkpoint|condition|decision|emit|human|map|parallel_join|parallel_race|try_catch)$/,
  },
};

/** The first sign of another system in a document, as the only issue of it; null for our own form. */
export function foreignForm(kind: ManifestKind, document: JsonObject): Issue | null {
  for (const [place, names] of Object.entries(FOREIGN_FIELDS[kind])) {
    for (const [path, owner] of placesOf(document, place)) {
      const name = isJsonObject(owner) ? names.split(' ').find((one) => Object.hasOwn(owner, one)) : undefined;
      if (name !== undefined) return { path: [...path, name], part: 'key', message: FOREIGN };
    }
  }
  for (const [place, words] of Object.entries(WORDS[kind] ?? {})) {
    for (const [path, value] of placesOf(document, place)) {
      if (typeof value === 'string' && words.test(value)) return { path, part: 'value', message: FOREIGN };
    }
  }
  return null;
}

/** All values at a place, with their paths. */
function placesOf(document: JsonObject, place: string): readonly (readonly [path: FieldPath, value: Json])[] {
  let found: (readonly [FieldPath, Json])[] = [[[], document]];
  for (const step of place === '' ? [] : place.split('.')) {
    found = found.flatMap(([path, value]): (readonly [FieldPath, Json])[] => {
      const items = Array.isArray(value) && (step === '[]' || step === '*');
      if (items) return [...value.entries()].map(([index, item]) => [[...path, index], item]);
      if (!isJsonObject(value)) return [];
      if (step === '*') return Object.entries(value).map(([name, member]) => [[...path, name], member]);
      const member = Object.hasOwn(value, step) ? value[step] : undefined;
      return member === undefined ? [] : [[[...path, step], member]];
    });
  }
  return found;
}
