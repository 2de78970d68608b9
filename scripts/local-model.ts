/** Finds a model server that runs on this machine already, for `npm start` without any configuration. */

export interface LocalModel {
  /** As people call the server. */
  readonly server: 'Ollama' | 'llama.cpp server';
  /** Settings of the Worker that lead to it. */
  readonly vars: Readonly<Record<string, string>>;
}

/** Where these servers listen unless told otherwise. */
const OLLAMA = 'http://127.0.0.1:11434';
const LLAMA_CPP = 'http://127.0.0.1:8080';
/** On one's own machine an answer takes a few milliseconds, or nobody is there. */
const PROBE_MS = 400;

/**
 * @param wanted the model's name, where it is set: then a server counts only when it has that model
 * @returns null when there is none, or when it has no model
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
  // Port 8080 is everybody's: only a server that names itself counts.
  const [loaded] = namesIn(models, 'data', 'id');
  if (loaded === undefined || namesIn(models, 'data', 'owned_by')[0] !== 'llamacpp') return null;
  const name = wanted ?? loaded.replace(/^.*[/\\]/, '');
  return {
    server: 'llama.cpp server',
    vars: { LLM_PROVIDER: 'llama.cpp', LLM_BASE_URL: `${llamaCpp}/v1`, LLM_MODEL: name },
  };
}

/** Ollama adds `:latest` to names without a tag. */
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

/** The texts under `field` in the list under `list`. */
function namesIn(answer: unknown, list: string, field: string): string[] {
  if (typeof answer !== 'object' || answer === null) return [];
  const items: unknown = Reflect.get(answer, list);
  if (!Array.isArray(items)) return [];
  return items.flatMap((item: unknown) => {
    const name: unknown = typeof item === 'object' && item !== null ? Reflect.get(item, field) : null;
    return typeof name === 'string' && name !== '' ? [name] : [];
  });
}
