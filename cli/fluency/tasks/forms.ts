/** The forms in which a model can be asked to act, and what each changes in an agent's manifest. */
import type { JsonObject } from '../../../src/domain/json.ts';
import type { ProtocolOptions } from '../../../src/domain/manifests/agent.ts';
import type { ModelProviderName } from '../../../src/domain/manifests/model.ts';

/** In the order of reports: the default form first, the one that needs most of the endpoint last. */
export const FORM_NAMES = ['full', 'compact', 'tool_calls', 'grammar'] as const;
export type FormName = (typeof FORM_NAMES)[number];

export const FORM_TITLES: Readonly<Record<FormName, string>> = {
  full: 'protocol text, full form',
  compact: 'protocol text, compact form',
  tool_calls: 'native tool calls',
  grammar: 'full form with the generated grammar',
};

/** Servers reject a grammar together with functions, which `auto` may send. */
export const FORM_PROTOCOLS: Readonly<Record<FormName, Pick<ProtocolOptions, 'form' | 'dialect'>>> = {
  full: { form: 'full', dialect: 'auto' },
  compact: { form: 'compact', dialect: 'auto' },
  tool_calls: { form: 'full', dialect: 'tool_calls' },
  grammar: { form: 'full', dialect: 'protocol' },
};

export function isForm(name: string): name is FormName {
  return (FORM_NAMES as readonly string[]).includes(name);
}

/** How a grammar reaches the endpoint. */
export interface GrammarOptions {
  /** A field of the request, with dots between the levels: `structured_outputs.grammar`. */
  readonly parameter: string;
  readonly format: 'gbnf' | 'lark';
}

/** The field of endpoints that accept a grammar. */
export const GRAMMAR_PARAMETERS: Readonly<Partial<Record<ModelProviderName, string>>> = {
  'llama.cpp': 'grammar',
  vllm: 'structured_outputs.grammar',
};

/** `a.b` and a text as `{a: {b: text}}`. */
export function grammarParameters({ parameter }: GrammarOptions, text: string): JsonObject {
  return parameter
    .split('.')
    .reduceRight<JsonObject | string>((inner, name) => ({ [name]: inner }), text) as JsonObject;
}
