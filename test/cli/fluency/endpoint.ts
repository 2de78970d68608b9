/** A scripted model behind HTTP, with the probes of `cortex fluency` answered as it would. */
import { isJsonObject } from '../../../src/domain/json.ts';
import type { Dataset } from '../../../cli/fluency/tasks/dataset.ts';
import { startScriptedLlm } from '../../../cli/scripted-llm/server.ts';
import type { ScriptedLlm, ScriptedReply, SeenRequest } from '../../../cli/scripted-llm/server.ts';
import { shapeOf } from '../../../cli/scripted-llm/shapes.ts';
import type { Model, ScriptedOutput } from './models.ts';
import { situationOf } from './situation.ts';

export interface EndpointOptions {
  /** Without: requests with functions are rejected. */
  readonly calls?: boolean;
  /** What it does with `grammar`. Default: obeys. */
  readonly grammar?: 'obeys' | 'ignores' | 'refuses';
  /** A task whose requests are rejected; `*`: all tasks. */
  readonly refuses?: string;
  /** The status of that answer; default 400. */
  readonly refusesWith?: number;
}

const OPENAI = shapeOf('openai');

export async function startModel(dataset: Dataset, model: Model, options: EndpointOptions = {}): Promise<ScriptedLlm> {
  const { calls = true, grammar = 'obeys', refuses, refusesWith = 400 } = options;
  const refused = (message: string, status = 400): ScriptedReply => ({ status, body: OPENAI.error(status, message) });
  return await startScriptedLlm((request) => {
    const { body } = request;
    if (!calls && body['tools'] !== undefined) return refused('this model does not support tools');
    if (grammar === 'refuses' && body['grammar'] !== undefined) return refused('unknown field: grammar');
    const situation = situationOf(dataset, request);
    if (situation !== null && (refuses === '*' || situation.task.name === refuses))
      return refused('this is not allowed', refusesWith);
    const output = situation === null ? probed(request, grammar) : model(situation);
    return streamed(output);
  });
}

function probed({ body }: SeenRequest, grammar: EndpointOptions['grammar']): ScriptedOutput {
  const [tool] = Array.isArray(body['tools']) ? (body['tools'] as unknown[]) : [];
  const described = tool !== undefined && isJsonObject(tool as never) ? (tool as { function?: { name?: string } }) : {};
  const name = described.function?.name;
  if (name !== undefined) return { calls: [{ id: 'probe0000', name, arguments: '{}' }] };
  const literal = /"([^"]+)"/.exec(String(body['grammar'] ?? ''))?.[1];
  return { text: literal !== undefined && grammar === 'obeys' ? literal : 'Hello!' };
}

function streamed({ text = '', calls = [], finish }: ScriptedOutput): ScriptedReply {
  const chunks = [
    ...OPENAI.opening,
    ...(text.match(/[^]{1,200}/g) ?? []).map((piece) => OPENAI.text(piece)),
    ...calls.flatMap((call, index) => OPENAI.call(call, index)),
    // Without usage: the provider estimates it, so longer outputs cost more.
    ...OPENAI.closing(finish ?? (calls.length > 0 ? 'tool_calls' : 'stop'), null),
  ];
  return { stream: chunks.map((chunk) => ({ chunk })) };
}
