/** What an endpoint sends of a generation, as the chunks of an OpenAI-compatible stream (N1, N4). */
import type { CallsScript, GenerationScript } from './history.ts';
import { actionsOf, functionCallOf, SIMULATED, textOf, tokenOf } from './script.ts';
import type { Forms } from './script.ts';

interface WrittenCall {
  readonly index: number;
  readonly id: string;
  readonly name: string;
  readonly json: string;
}

/** Whether a generation is more than the deltas of a model: its chunks are read as those of an endpoint. */
export const isOfEndpoint = ({ calls, reason }: GenerationScript): boolean => calls !== null || reason !== null;

/** Text first, then the calls; the last chunk has the reason. */
export function chunksOf(
  message: number,
  generation: number,
  script: GenerationScript,
  forms: Forms = SIMULATED,
): object[] {
  const { items, calls, pieceChars } = script;
  const shown =
    calls === null ? script : { ...script, items: items.filter(({ type }) => type !== 'action' && type !== 'broken') };
  const texts = pieces(textOf(message, generation, shown, forms), pieceChars);
  const written =
    calls === null
      ? []
      : actionsOf(script).map(({ target }, index): WrittenCall => {
          const id = tokenOf({ message, generation, action: index });
          const { name, parameters } = functionCallOf(target, id, forms);
          return { index, id, name, json: JSON.stringify(parameters) };
        });
  return [
    ...texts.map((content) => chunk({ delta: { content } })),
    ...written.flatMap((call) => callChunks(call, calls?.written ?? 'whole', pieceChars)),
    last(script, written),
  ];
}

function callChunks(
  { index, id, name, json }: WrittenCall,
  form: CallsScript['written'],
  pieceChars: number,
): object[] {
  const first = (text: string): object =>
    chunk({ delta: { tool_calls: [{ index, id, function: { name, arguments: text } }] } });
  const more = (text: string): object => chunk({ delta: { tool_calls: [{ index, function: { arguments: text } }] } });
  switch (form) {
    case 'whole':
      return [first(json)];
    case 'pieces':
      return [first(''), ...pieces(json, pieceChars).map(more)];
    case 'empty_first':
      return [first('{}'), more(json)];
    case 'snapshots':
      return ends(json, pieceChars).map((end) => first(json.slice(0, end)));
    case 'encoded_twice':
      return [first(JSON.stringify(json))];
  }
}

/** The chunk with the finish reason may have the calls once more. */
function last({ calls, finish, reason }: GenerationScript, written: readonly WrittenCall[]): object {
  const finish_reason = reason ?? (finish === 'stop' && written.length > 0 ? 'tool_calls' : finish);
  const all = (change: (call: WrittenCall) => Partial<WrittenCall>): object[] =>
    written.map((call) => {
      const { index, id, name, json } = { ...call, ...change(call) };
      return { index, id, function: { name, arguments: json } };
    });
  switch (calls?.repeats ?? 'nothing') {
    case 'nothing':
      return chunk({ delta: {}, finish_reason });
    case 'same':
      return chunk({ delta: { tool_calls: all(() => ({})) }, finish_reason });
    case 'spaced':
      return chunk({
        delta: { tool_calls: all(({ json }) => ({ json: JSON.stringify(JSON.parse(json), null, 1) })) },
        finish_reason,
      });
    case 'other_index':
      return chunk({ delta: { tool_calls: all(({ index }) => ({ index: index + written.length })) }, finish_reason });
    case 'new_id':
      return chunk({ delta: { tool_calls: all(({ id }) => ({ id: `call_${id}` })) }, finish_reason });
    case 'message':
      return chunk({ delta: {}, message: { role: 'assistant', tool_calls: all(() => ({})) }, finish_reason });
    case 'encoded_twice':
      return chunk({ delta: { tool_calls: all(({ json }) => ({ json: JSON.stringify(json) })) }, finish_reason });
  }
}

function chunk(choice: object): object {
  return { choices: [{ index: 0, finish_reason: null, ...choice }] };
}

function ends(text: string, chars: number): number[] {
  return Array.from({ length: Math.ceil(text.length / chars) }, (_, at) => Math.min(text.length, (at + 1) * chars));
}

function pieces(text: string, chars: number): string[] {
  return ends(text, chars).map((end, at) => text.slice(at * chars, end));
}
