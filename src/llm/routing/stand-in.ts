/** Explains that a manifest names a provider for which the deployment has no setting (L1, L3). */
import { PRESETS } from '../providers/presets.ts';

type Named = keyof typeof PRESETS;

/** What to set, so that the provider answers. */
function remedyFor(provider: Named): string {
  const { baseUrl, example, keyHeader } = PRESETS[provider];
  const settings = [
    `LLM_PROVIDER=${provider}`,
    ...(baseUrl === null ? [`LLM_BASE_URL (such as ${example})`] : []),
    ...(keyHeader === null ? [] : ['LLM_API_KEY']),
  ];
  const own = keyHeader === null ? 'endpoint' : 'endpoint and api_key_secret';
  return `set ${settings.join(' and ')}, or ${own} in cognitive_engine`;
}

/** The load warning for one model of a manifest. */
export function standInIssue(provider: Named): string {
  return `names ${PRESETS[provider].title} (${provider}), but this deployment has no setting for it, so the demo model answers, which is not a language model: ${remedyFor(provider)}`;
}

/**
 * The warning of a run.
 *
 * @param answering the model that answers instead; null for the demo model
 */
export function standInNotice(providers: readonly Named[], answering: string | null): string {
  const [first] = providers;
  const names = [...new Set(providers)].join(', ');
  const instead = answering ?? 'the demo model, which is not a language model,';
  const remedy = first === undefined ? '' : `: ${remedyFor(first)}`;
  return `The manifest names the provider ${names}, but this deployment has no setting for it; ${instead} answers instead${remedy}`;
}
