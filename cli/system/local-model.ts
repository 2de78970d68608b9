/** Finds a local model server, for `npm start` without any configuration. */

export interface LocalModel {
  /** Name of the server, for messages. */
  readonly server: 'Ollama' | 'llama.cpp server';
  /** Settings of the Worker for this server. */
  readonly vars: Readonly<Record<string, string>>;
}

/** Default addresses of the servers. */
const OLLAMA = 'http://127.0.0.1:11434';
const LLAMA_CPP = 'http://127.0.0.1:8080';
/** A local server answers within a few milliseconds. */
const PROBE_MS = 400;

/**
 * @param wanted a configured model name; a server without this model is ignored
 * @returns null if there is no server, or if it has no model
 */
export async function findLocalModel(
  wanted: string | null,
  { ollama = OLLAMA, llamaCpp = LLAMA_CPP }: { readonly ollama?: string; readonly llamaCpp?: string } = {},
): Promise<LocalModel | null> {
  const [tags, models] = await Promise.all([probe(`${ollama}/api/tags`), probe(`${llamaCpp}/v1/models`)]);
  const installed = namesIn(tags, 'models', 'name').find((name) => fits(name, wanted));
  if (installed !== undefined) {
    return {
      server: 'Ollama',
      vars: { LLM_PROVIDER: 'ollama', LLM_BASE_URL: `${ollama}/v1`, LLM_MODEL: installed },
    };
  }
  // Many programs use port 8080, so the answer must identify llama.cpp.
  const [loaded] = namesIn(models, 'data', 'id');
  if (loaded === undefined || namesIn(models, 'data', 'owned_by')[0] !== 'llamacpp') return null;
  const name = wanted ?? loaded.replace(/^.*[/\\]/, '');
  return {
    server: 'llama.cpp server',
    vars: { LLM_PROVIDER: 'llama.cpp', LLM_BASE_URL: `${llamaCpp}/v1`, LLM_MODEL: name },
  };
}

/** Ollama appends `:latest` to names without a tag. */
function fits(name: string, wanted: string | null): boolean {
  return wanted === null || name === wanted || name === `${wanted}:latest`;
}

async function probe(url: string): Promise<unknown> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(PROBE_MS), redirect: 'error' });
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
}

/** The strings in `field` of the objects in the array `list`. */
function namesIn(answer: unknown, list: string, field: string): string[] {
  if (typeof answer !== 'object' || answer === null) return [];
  const items: unknown = Reflect.get(answer, list);
  if (!Array.isArray(items)) return [];
  return items.flatMap((item: unknown) => {
    const name: unknown = typeof item === 'object' && item !== null ? Reflect.get(item, field) : null;
    return typeof name === 'string' && name !== '' ? [name] : [];
  });
}
