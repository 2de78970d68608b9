/** Creates a model provider from configuration and manifest. Only this file knows all providers. */
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { AgentDefinition } from '../../domain/manifests/agent.ts';
import type { ModelChoice } from '../../domain/manifests/model.ts';
import type { Clock, Random } from '../../domain/ports/clock.ts';
import type { ModelDelta, ModelProvider, ModelRequest } from '../../domain/ports/model.ts';
import type { SecretRead } from '../../domain/secrets.ts';
import { isSameEndpoint, originOf, shownAddress } from '../providers/address.ts';
import { createDemoProvider } from '../demo/demo.ts';
import { Endpoints } from './endpoints.ts';
import { GENERIC, PRESET_NAMES, PRESETS, isPresetName, presetAt } from '../providers/presets.ts';
import type { Preset } from '../providers/presets.ts';
import { costOf } from './prices.ts';
import { createRouter } from './router.ts';
import { standInIssue, standInNotice } from './stand-in.ts';
import type { Candidate } from './router.ts';
import type { AiBinding } from '../providers/workers-ai.ts';

/** `LLM_PROVIDER`, `LLM_BASE_URL`, `LLM_API_KEY`, `LLM_MODEL`; null and empty count as unset (H8). */
export interface ModelConfig {
  readonly provider?: string | null | undefined;
  readonly baseUrl?: string | null | undefined;
  readonly apiKey?: string | null | undefined;
  readonly model?: string | null | undefined;
}

export interface ModelDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly fetch?: typeof globalThis.fetch;
  /** For endpoints that a manifest names (X2); default: `fetch`. */
  readonly fetchExternal?: typeof globalThis.fetch;
  /** Namespace of the calling session; endpoint state is kept separately for each one. */
  readonly owner?: string | null;
  /** The remembered endpoint state; pass the same object to several calls of `createModel` to keep it. */
  readonly endpoints?: Endpoints;
  /** The Workers AI binding, if the environment has one. */
  readonly ai?: AiBinding | null;
  /** The value of a secret that a manifest names, or why it is not available (X3). */
  readonly secret?: (name: string) => SecretRead;
  /** Why a manifest's endpoint must not be called, or null (X2). Not called for the deployment's endpoint. */
  readonly refuse?: (url: string) => string | null;
  /** Pause between deltas of the demo provider. */
  readonly demoDeltaMs?: number;
}

type Engine = Pick<
  AgentDefinition['engine'],
  'primary' | 'fallbacks' | 'routing' | 'firstTokenMs' | 'betweenTokensMs' | 'prices' | 'vision'
>;

/** A resolved endpoint. */
type Target =
  /** `standsFor`: the provider that a manifest names and the deployment has no setting for. */
  | { readonly type: 'demo'; readonly standsFor?: keyof typeof PRESETS }
  | { readonly type: 'binding'; readonly binding: AiBinding; readonly model: string }
  | {
      readonly type: 'http';
      readonly preset: Preset | null;
      readonly baseUrl: string;
      readonly apiKey: string | null;
      /** Name of the secret that contains `apiKey`; null means the deployment's key, or none. */
      readonly keySecret: string | null;
      readonly model: string | null;
      /** Configured by a manifest, not by the deployment. */
      readonly external: boolean;
    }
  | { readonly type: 'unusable'; readonly fault: EngineError };

/** Servers with a single model accept any name. */
const ANY_MODEL = 'default';
/** Default model of the binding. */
const BINDING_MODEL = '@cf/meta/llama-3.3-70b-instruct-fp8-fast';
const PLAIN: ModelChoice = { provider: null, model: null, endpoint: null, keySecret: null };

/**
 * The model of the deployment or, with `engine`, of an agent: its primary model with its fallbacks. Without any
 * configuration it is the demo provider. The description contains the model and host, never the key. An unusable
 * configuration does not stop the system: the description reports it, and every call fails with `model_rejected`.
 */
export function createModel(
  config: ModelConfig,
  deps: ModelDeps,
  engine?: Engine,
): { readonly provider: ModelProvider; readonly description: string } {
  const selection = new Selection(config, deps, engine ?? null);
  const choices = engine === undefined ? [PLAIN] : [engine.primary, ...engine.fallbacks];
  const made = choices.map((choice) => ({ choice, ...selection.candidate(choice) }));
  const standIns = made.flatMap(({ standsFor }) => standsFor ?? []);
  // The demo model does not stand in for a model if another one of the manifest can answer.
  const callable = made.filter(({ standsFor, isCallable }) => standsFor === undefined && isCallable);
  const used = standIns.length > 0 && callable.length > 0 ? callable : made;
  const candidates = used.map(({ candidate }) => candidate);
  const router = createRouter(candidates, engine?.routing ?? 'failover');
  const answering = callable[0]?.candidate.label ?? null;
  return {
    provider: standIns.length === 0 ? router : { ...router, notice: standInNotice(standIns, answering) },
    description: candidates[0]?.label ?? '',
  };
}

/** Why a manifest's choice is answered by the demo model in this deployment, or null. */
export function choiceIssue(config: ModelConfig, ai: AiBinding | null, choice: ModelChoice): string | null {
  const provider = standsForProvider(ownTarget(config, ai), choice);
  return provider === null ? null : standInIssue(provider);
}

/** The provider that a choice names, if the deployment's demo model would answer for it. */
function standsForProvider(own: Target, { provider, endpoint, keySecret }: ModelChoice): keyof typeof PRESETS | null {
  const isDemo = own.type === 'demo' && endpoint === null && keySecret === null;
  return isDemo && provider !== null && provider !== 'demo' ? provider : null;
}

/** Why the deployment's own model cannot be used, or null. The message names the setting. */
export function modelIssue(config: ModelConfig, ai: AiBinding | null): string | null {
  const target = ownTarget(config, ai);
  return target.type === 'unusable' ? target.fault.message : null;
}

class Selection {
  readonly #deps: ModelDeps;
  readonly #engine: Engine | null;
  readonly #endpoints: Endpoints;
  readonly #own: Target;

  constructor(config: ModelConfig, deps: ModelDeps, engine: Engine | null) {
    this.#deps = deps;
    this.#engine = engine;
    this.#endpoints = deps.endpoints ?? new Endpoints(deps.clock);
    this.#own = ownTarget(config, deps.ai ?? null);
  }

  candidate(choice: ModelChoice): {
    readonly candidate: Candidate;
    readonly isCallable: boolean;
    readonly standsFor: keyof typeof PRESETS | undefined;
  } {
    const target = this.#target(choice);
    const isCallable = target.type === 'http' || target.type === 'binding';
    const standsFor = target.type === 'demo' ? target.standsFor : undefined;
    return { candidate: this.#candidateOf(target, choice), isCallable, standsFor };
  }

  #candidateOf(target: Target, choice: ModelChoice): Candidate {
    const label = labelOf(target);
    switch (target.type) {
      case 'demo':
      case 'unusable': {
        const { clock, demoDeltaMs } = this.#deps;
        const provider =
          target.type === 'demo'
            ? createDemoProvider({ clock, ...(demoDeltaMs === undefined ? {} : { deltaMs: demoDeltaMs }) })
            : unusable(choice.model ?? ANY_MODEL, target.fault);
        return { provider, model: null, label, available: () => true, latencyMs: () => null, cost: () => null };
      }
      case 'binding':
      case 'http':
        return this.#callable(target, label, choice.vision ?? this.#engine?.vision ?? null);
    }
  }

  #callable(target: Extract<Target, { type: 'binding' | 'http' }>, label: string, vision: boolean | null): Candidate {
    const { clock, random } = this.#deps;
    const { firstTokenMs = null, betweenTokensMs = null } = this.#engine ?? {};
    const model = target.model ?? ANY_MODEL;
    const { owner = null } = this.#deps;
    const endpoint = this.#endpoints.of(
      target.type === 'binding'
        ? { owner, address: 'binding', key: null, name: 'Workers AI' }
        : { owner, address: target.baseUrl, key: target.keySecret, name: originOf(target.baseUrl) },
    );
    const shared = { defaultModel: model, clock, random, endpoint, firstTokenMs, betweenTokensMs, vision };
    const provider = loadedOnFirstUse(model, async () => {
      if (target.type === 'binding') {
        const { createWorkersAiProvider } = await import('../providers/workers-ai.ts');
        return createWorkersAiProvider({ ...shared, binding: target.binding });
      }
      const { createOpenAiProvider } = await import('../providers/openai.ts');
      const { baseUrl, apiKey, preset } = target;
      const fetch = (target.external ? this.#deps.fetchExternal : undefined) ?? this.#deps.fetch;
      return createOpenAiProvider({
        ...shared,
        baseUrl,
        apiKey,
        keyAdvice: keyAdviceFor(target),
        keyHeader: preset === null ? 'authorization' : preset.keyHeader,
        quirks: preset?.quirks ?? GENERIC,
        ...(fetch === undefined ? {} : { fetch }),
      });
    });
    return {
      provider,
      model: target.model,
      label,
      available: () => endpoint.breakerOf(model).state !== 'open',
      latencyMs: () => endpoint.latencyOf(model),
      cost: (promptTokens, completionTokens) => {
        const used = { promptTokens, completionTokens, cachedTokens: 0, estimated: true, model };
        const known = costOf(used, this.#engine?.prices ?? {});
        return known ?? (target.type === 'http' && target.preset?.local === true ? 0 : null);
      },
    };
  }

  /** Resolves a manifest's choice: the deployment's endpoint unless the choice names another one (L1, L7). */
  #target(choice: ModelChoice): Target {
    const own = this.#own;
    if (choice.provider === 'demo') return { type: 'demo' };
    const standsFor = standsForProvider(own, choice);
    if (standsFor !== null) return { type: 'demo', standsFor };
    const ownPreset = own.type === 'http' ? own.preset : null;
    const named = choice.provider === null ? null : PRESETS[choice.provider];
    const sameProvider =
      named === null || named === ownPreset || (own.type === 'binding' && choice.provider === 'workers-ai');
    // `openai` is also used for any compatible endpoint.
    const usesOwn = sameProvider || choice.provider === 'openai';
    if (choice.endpoint === null && choice.keySecret === null && (usesOwn || own.type === 'demo')) {
      return withModel(own, choice.model);
    }
    if (choice.endpoint === null && choice.provider === 'workers-ai' && this.#deps.ai != null) {
      return { type: 'binding', binding: this.#deps.ai, model: choice.model ?? BINDING_MODEL };
    }
    // A provider's key is never sent to another provider's address.
    const baseUrl = choice.endpoint ?? (named === null ? ownUrl(own) : named.baseUrl);
    if (baseUrl === null) {
      return refused(`${named?.title ?? 'The model'} needs an endpoint, such as ${named?.example ?? 'https://…/v1'}`);
    }
    return this.#externalTarget(choice, baseUrl);
  }

  #externalTarget(choice: ModelChoice, baseUrl: string): Target {
    const origin = tried(() => originOf(baseUrl));
    if (typeof origin !== 'string') return { type: 'unusable', fault: origin };
    const preset = presetFor(choice.provider, baseUrl);
    const own = this.#own;
    const isOwn = own.type === 'http' && isSameEndpoint(own.baseUrl, baseUrl);
    const reason = isOwn ? null : (this.#deps.refuse?.(baseUrl) ?? null);
    if (reason !== null) return refused(`The model endpoint ${origin} ${reason}`);
    let apiKey = isOwn ? own.apiKey : null;
    if (choice.keySecret !== null) {
      const read = this.#deps.secret?.(choice.keySecret) ?? { ok: false, reason: `${choice.keySecret} is not set` };
      if (!read.ok) return refused(`The key for the model endpoint ${origin}: ${read.reason}`);
      apiKey = read.value;
    }
    if (apiKey === null && preset !== null && preset.keyHeader !== null && !preset.local) {
      return refused(
        `${preset.title} requires a key: name its secret in api_key_secret (LLM_API_KEY is sent only to the origin and path of LLM_BASE_URL)`,
      );
    }
    return {
      type: 'http',
      preset,
      baseUrl: isOwn ? own.baseUrl : baseUrl,
      apiKey,
      keySecret: choice.keySecret,
      model: choice.model,
      external: !isOwn,
    };
  }
}

/** The target configured by the deployment's variables. */
function ownTarget(config: ModelConfig, ai: AiBinding | null): Target {
  const provider = config.provider?.trim().toLowerCase() || null;
  const apiKey = config.apiKey?.trim() || null;
  const model = config.model?.trim() || null;
  const written = config.baseUrl?.trim() || null;
  if (provider === 'demo') return { type: 'demo' };
  if (provider !== null && !isPresetName(provider)) {
    return refused(
      `LLM_PROVIDER "${provider.slice(0, limits.excerptChars)}" is unknown (known: ${PRESET_NAMES.join(', ')}, demo)`,
    );
  }
  const wantsBinding = provider === null ? apiKey === null : provider === 'workers-ai';
  if (written === null && wantsBinding && ai !== null) {
    return { type: 'binding', binding: ai, model: model ?? BINDING_MODEL };
  }
  if (provider === null && written === null && apiKey === null) return { type: 'demo' };
  const named = PRESETS[provider ?? 'openai'];
  const baseUrl = written ?? named.baseUrl;
  if (baseUrl === null) return refused(`${named.title} needs LLM_BASE_URL, such as ${named.example}`);
  if (typeof tried(() => originOf(baseUrl)) !== 'string') {
    return refused(
      `LLM_BASE_URL "${shownAddress(baseUrl)}" is not an HTTP(S) URL (example: LLM_BASE_URL=http://127.0.0.1:11434/v1)`,
    );
  }
  return {
    type: 'http',
    preset: presetFor(provider, baseUrl),
    baseUrl,
    apiKey,
    keySecret: null,
    model,
    external: false,
  };
}

/** `openai` at another address means any compatible endpoint; its preset is detected by the address. */
function presetFor(provider: ModelChoice['provider'], baseUrl: string): Preset | null {
  const there = presetAt(baseUrl);
  const name =
    provider === null || provider === 'demo' || (provider === 'openai' && there !== provider) ? there : provider;
  return name === null ? null : PRESETS[name];
}

function ownUrl(own: Target): string | null {
  return own.type === 'http' ? own.baseUrl : null;
}

function withModel(target: Target, model: string | null): Target {
  if (model === null || target.type === 'demo' || target.type === 'unusable') return target;
  return { ...target, model };
}

function labelOf(target: Target): string {
  switch (target.type) {
    case 'demo':
      return 'demo (no language model; set LLM_BASE_URL and LLM_MODEL for one)';
    case 'unusable':
      return `not usable: ${target.fault.message}`;
    case 'binding':
      return `${target.model} through the Workers AI binding`;
    case 'http':
      return `${target.model ?? 'default model (LLM_MODEL is not set)'} at ${new URL(target.baseUrl).host}`;
  }
}

/** Where the key of this endpoint comes from. */
function keyAdviceFor({ apiKey, keySecret, external }: Extract<Target, { type: 'http' }>): string {
  if (keySecret !== null) return `check the secret ${keySecret}, which api_key_secret names`;
  const setting = external ? 'api_key_secret' : 'LLM_API_KEY';
  return apiKey === null ? `set ${setting}, because no key was sent` : `check ${setting}`;
}

function refused(message: string): Target {
  return { type: 'unusable', fault: new EngineError('model_rejected', message) };
}

function tried(work: () => string): string | EngineError {
  try {
    return work();
  } catch (fault) {
    if (fault instanceof EngineError) return fault;
    throw fault;
  }
}

/** Loads the provider on first use: the client library is the largest part of the Worker and would delay start-up. */
function loadedOnFirstUse(model: string, load: () => Promise<ModelProvider>): ModelProvider {
  let loading: Promise<ModelProvider> | null = null;
  let loaded: ModelProvider | null = null;
  const first = async function* (request: ModelRequest): AsyncGenerator<ModelDelta> {
    loading ??= load();
    loaded = await loading;
    yield* loaded.stream(request);
  };
  // Once it is loaded, its stream is passed on as it is.
  return { name: model, stream: (request) => (loaded === null ? first(request) : loaded.stream(request)) };
}

function unusable(model: string, fault: EngineError): ModelProvider {
  return {
    name: model,
    // oxlint-disable-next-line require-yield -- it always throws
    async *stream(): AsyncGenerator<ModelDelta> {
      throw fault;
    },
  };
}
