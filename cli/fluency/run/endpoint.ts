/** The endpoint and the model that a command line means, with the key from the environment. */
import type { ModelProviderName } from '../../../src/domain/manifests/model.ts';
import { isSameEndpoint, originOf } from '../../../src/llm/providers/address.ts';
import { isPresetName, presetAt, PRESET_NAMES, PRESETS } from '../../../src/llm/providers/presets.ts';
import { modelIssue } from '../../../src/llm/routing/select.ts';
import type { ModelConfig } from '../../../src/llm/routing/select.ts';
import { nearestNames } from '../../../src/domain/nearest.ts';
import { UsageError } from '../../command.ts';
import type { CommandCall } from '../../command.ts';
import { textOption } from '../../option-values.ts';
import { warnIfUnencrypted } from '../../terminal/connection.ts';
import { endpointUrl } from '../../terminal/endpoint-url.ts';
import { visible } from '../../terminal/visible.ts';

export interface Endpoint {
  readonly config: ModelConfig;
  readonly model: string;
  /** Scheme and host. */
  readonly origin: string;
  /** The preset, named or recognised by the address; null for any other endpoint. */
  readonly provider: ModelProviderName | null;
}

/** The variable with the key; the same as for a deployment. */
const KEY = 'LLM_API_KEY';

/**
 * `--base-url`, `--model` and `--provider`; by default `LLM_BASE_URL`, `LLM_MODEL` and `LLM_PROVIDER`.
 *
 * The key of `LLM_API_KEY` belongs to `LLM_BASE_URL`, else to the address of the preset in `LLM_PROVIDER`: it is not sent to
 * another endpoint. `--key-env` names another variable.
 *
 * @throws UsageError
 */
export function endpointOf(call: Pick<CommandCall, 'values' | 'environment' | 'tell'>): Endpoint {
  const { environment } = call;
  const given = (option: string, variable: string): string | null =>
    (textOption(call, option) ?? environment[variable])?.trim() || null;
  const provider = given('provider', 'LLM_PROVIDER')?.toLowerCase() ?? null;
  if (provider !== null && !isPresetName(provider)) throw unknownProvider(provider);
  const preset = provider === null ? null : PRESETS[provider];
  const baseUrl = given('base-url', 'LLM_BASE_URL') ?? preset?.baseUrl ?? null;
  const model = given('model', 'LLM_MODEL');
  if (baseUrl === null) throw new UsageError('name the endpoint: --base-url, or --provider with a known address');
  if (model === null) throw new UsageError('name the model: --model');
  endpointUrl(textOption(call, 'base-url') === undefined ? 'LLM_BASE_URL' : '--base-url', baseUrl);
  const config = { provider, baseUrl, model, apiKey: keyOf(call, baseUrl) };
  const issue = modelIssue(config, null);
  if (issue !== null) throw new UsageError(issue);
  if (config.apiKey !== null) warnIfUnencrypted(baseUrl, call.tell);
  const known = provider ?? presetAt(baseUrl);
  return { config, model, origin: originOf(baseUrl), provider: known };
}

function keyOf(call: Pick<CommandCall, 'values' | 'environment' | 'tell'>, baseUrl: string): string | null {
  const { environment } = call;
  const name = textOption(call, 'key-env');
  if (name !== undefined) {
    const key = environment[name] ?? '';
    if (key === '') throw new UsageError(`--key-env: the variable ${visible(name.slice(0, 100))} is not set`);
    return key;
  }
  const key = environment[KEY]?.trim() || null;
  const owner = keyOwner(environment);
  if (key === null || owner === null || (owner.url !== null && isSameEndpoint(owner.url, baseUrl))) return key;
  call.tell(
    `${KEY} is not sent, because it belongs to ${owner.variable}; name the variable of another key with --key-env`,
  );
  return null;
}

/** The endpoint that the key of the environment is for. Null: no variable names one, so it is for this one. */
function keyOwner(environment: CommandCall['environment']): {
  readonly variable: string;
  /** Null: the provider has no address that is known, so no other one is its endpoint. */
  readonly url: string | null;
} | null {
  const own = environment['LLM_BASE_URL']?.trim() ?? '';
  if (own !== '') return { variable: 'LLM_BASE_URL', url: own };
  const provider = environment['LLM_PROVIDER']?.trim().toLowerCase() ?? '';
  if (provider === '') return null;
  return { variable: 'LLM_PROVIDER', url: isPresetName(provider) ? PRESETS[provider].baseUrl : null };
}

function unknownProvider(name: string): UsageError {
  const [near] = nearestNames(name, PRESET_NAMES);
  const hint = near === undefined ? '' : `did you mean ${near}? `;
  return new UsageError(
    `--provider "${visible(name.slice(0, 100))}" is unknown (${hint}known: ${PRESET_NAMES.join(', ')})`,
  );
}
