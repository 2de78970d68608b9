/** One small request per form, before the tasks: whether the endpoint can do it at all. */
import type { JsonObject } from '../../../src/domain/json.ts';
import type { ModelProvider, ToolSummary } from '../../../src/domain/ports/model.ts';
import { EngineError } from '../../../src/domain/errors.ts';
import { grammarParameters } from '../tasks/forms.ts';
import type { FormName, GrammarOptions } from '../tasks/forms.ts';

/** `blocked`: why the tasks are not run in this form. `note`: what looks wrong although they are. */
export interface Probe {
  readonly blocked: string | null;
  readonly note: string | null;
}

const OK: Probe = { blocked: null, note: null };
/** No model says this by itself. */
const LITERAL = 'fluency-probe-7f3';
/** Models may write thoughts before they answer. */
const PROBE_TOKENS = 2_000;

const FUNCTION: ToolSummary = {
  name: 'fluency_probe',
  summary: 'Does nothing. Call it once.',
  parameters: { type: 'object', properties: {} },
};

/**
 * Asks the endpoint for a word.
 *
 * @throws EngineError `model_unavailable` or `model_rejected` if it cannot be used
 */
export async function probeEndpoint(model: ModelProvider, signal: AbortSignal): Promise<void> {
  await ask(model, { text: 'Say hello.', extra: {}, signal });
}

/** @param grammar null if it is not known how a grammar is sent */
export async function probeForm(
  form: FormName,
  model: ModelProvider,
  { grammar, signal }: { readonly grammar: GrammarOptions | null; readonly signal: AbortSignal },
): Promise<Probe> {
  if (form === 'tool_calls') return await probeCalls(model, signal);
  if (form !== 'grammar') return OK;
  if (grammar === null) {
    return blocked('it is not known how this endpoint takes a grammar: name the field with --grammar-parameter');
  }
  return await probeGrammar(model, grammar, signal);
}

async function probeCalls(model: ModelProvider, signal: AbortSignal): Promise<Probe> {
  try {
    const text = `Call the function ${FUNCTION.name}.`;
    const { calls } = await ask(model, { text, extra: {}, tools: [FUNCTION], signal });
    return calls > 0 ? OK : { blocked: null, note: 'the model did not call the function that it was asked to call' };
  } catch (fault) {
    return refusal(fault, 'the endpoint does not accept functions');
  }
}

async function probeGrammar(model: ModelProvider, grammar: GrammarOptions, signal: AbortSignal): Promise<Probe> {
  const rule = grammar.format === 'gbnf' ? `root ::= "${LITERAL}"\n` : `start: "${LITERAL}"\n`;
  try {
    const { text } = await ask(model, { text: 'Say hello.', extra: grammarParameters(grammar, rule), signal });
    if (text.trim() === LITERAL) return OK;
    return blocked(`the endpoint ignores the grammar in "${grammar.parameter}"`);
  } catch (fault) {
    return refusal(fault, `the endpoint refuses the grammar in "${grammar.parameter}"`);
  }
}

function blocked(reason: string): Probe {
  return { blocked: reason, note: null };
}

/** @throws errors other than a refusal: the endpoint may support the form */
function refusal(fault: unknown, what: string): Probe {
  if (fault instanceof EngineError && fault.code === 'model_rejected') return blocked(`${what}: ${fault.message}`);
  throw fault;
}

async function ask(
  model: ModelProvider,
  given: {
    readonly text: string;
    readonly extra: JsonObject;
    readonly tools?: readonly ToolSummary[];
    readonly signal: AbortSignal;
  },
): Promise<{ readonly text: string; readonly calls: number }> {
  const { text: question, extra, tools, signal } = given;
  let text = '';
  let calls = 0;
  const stream = model.stream({
    messages: [{ role: 'user', content: question }],
    model: null,
    temperature: null,
    maxTokens: PROBE_TOKENS,
    extra,
    agent: null,
    ...(tools === undefined ? {} : { tools }),
    signal,
  });
  for await (const delta of stream) {
    if (delta.type === 'text') text += delta.text;
    if (delta.type === 'tool_call') calls += 1;
  }
  return { text, calls };
}
