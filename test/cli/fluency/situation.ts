/** What a scripted model knows: the task, and what the request contains. */
import type { Json } from '../../../src/domain/json.ts';
import { isJsonObject } from '../../../src/domain/json.ts';
import { scanText } from '../../../src/protocol/references/references.ts';
import type { Dataset, PlannedCall, Task } from '../../../cli/fluency/tasks/dataset.ts';
import type { FormName } from '../../../cli/fluency/tasks/forms.ts';
import { idealPlan } from '../../../cli/fluency/tasks/ideal-plan.ts';
import type { IdealPlan } from '../../../cli/fluency/tasks/ideal-plan.ts';
import { nominalMs } from '../../../cli/fluency/tasks/tools.ts';
import type { SeenRequest } from '../../../cli/scripted-llm/server.ts';

interface SentMessage {
  readonly role: string;
  readonly content: unknown;
  readonly tool_call_id?: string;
}

export interface Situation {
  readonly task: Task;
  readonly form: FormName;
  /** In the form that the prompt asks for. */
  readonly ideal: IdealPlan;
  /** As if every value had to be read before it is used. */
  readonly layered: IdealPlan;
  /** 1-based. */
  readonly generation: number;
  /** Everything since the model's last output. */
  readonly told: string;
  /** What completed actions have returned, by id, as text. */
  readonly results: ReadonlyMap<string, string>;
}

/** @returns null for a request that belongs to no task, such as a probe */
export function situationOf({ tasks, tools }: Dataset, { body }: SeenRequest): Situation | null {
  const messages = (body['messages'] ?? []) as readonly SentMessage[];
  const texts = messages.map(({ content }) => textOf(content));
  // The longest message: that of another task may be a part of it.
  const [task] = tasks
    .filter(({ message }) => texts.some((text) => text.includes(message)))
    .sort((a, b) => b.message.length - a.message.length);
  if (task === undefined) return null;
  const form = formOf(body, texts);
  const msOf = nominalMs(tools);
  const isOwn = ({ role, content }: SentMessage): boolean => role === 'assistant' && content !== 'Noted.';
  const spoke = messages.findLastIndex(isOwn);
  return {
    task,
    form,
    ideal: idealPlan(task, form, msOf),
    layered: idealPlan(task, 'tool_calls', msOf),
    generation: messages.filter(isOwn).length + 1,
    told: texts.slice(spoke + 1).join('\n'),
    results: resultsIn(messages),
  };
}

function formOf(body: SeenRequest['body'], texts: readonly string[]): FormName {
  if (body['grammar'] !== undefined) return 'grammar';
  const [system = ''] = texts;
  if (!system.includes('<action ')) return 'tool_calls';
  return system.includes('The body is the strict JSON object of the parameters') ? 'compact' : 'full';
}

function textOf(content: unknown): string {
  if (!Array.isArray(content)) return String(content ?? '');
  return content.map((part: { readonly text?: string }) => part.text ?? '').join('\n');
}

/** An id of a native call that every provider takes as it is: nine letters and digits. */
export function nativeId(id: string): string {
  return id.padEnd(9, '0');
}

function resultsIn(messages: readonly SentMessage[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const { role, content, tool_call_id: id } of messages) {
    const text = textOf(content);
    if (role === 'tool' && id !== undefined && !/^\[(?:failed|skipped|rejected|cancelled)\]/.test(text)) {
      found.set(id.replace(/0*$/, ''), text);
    }
    if (role !== 'user') continue;
    const blocks = text.matchAll(
      /<action_result id="([^"]*)"[^>]*status="completed"[^>]*>\n([^]*?)\n<\/action_result>/g,
    );
    for (const [, actionId = '', result = ''] of blocks) found.set(actionId, result);
  }
  return found;
}

/** A text or value with the results that it refers to in place of the references. `$$` stays: it is text of the protocol. */
export function withValues<T extends Json>(value: T, results: ReadonlyMap<string, string>): Json {
  if (Array.isArray(value)) return value.map((item) => withValues(item, results));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [name, withValues(member ?? null, results)]),
    );
  }
  if (typeof value !== 'string') return value;
  const parts = scanText(value);
  const [only] = parts;
  if (parts.length === 1 && typeof only === 'object') return escaped(valueOf(only, results));
  return parts
    .map((part) => {
      const found = escaped(typeof part === 'string' ? part : valueOf(part, results));
      return typeof found === 'string' ? found : JSON.stringify(found);
    })
    .join('');
}

function escaped(value: Json): Json {
  return typeof value === 'string' ? value.replaceAll('$', '$$$$') : value;
}

/** An answer in plain text, where `$` needs no escape. */
export function plainAnswer({ answer }: Task, results: ReadonlyMap<string, string>): string {
  const written = withValues(answer, results);
  return (typeof written === 'string' ? written : JSON.stringify(written)).replaceAll('$$', '$');
}

function valueOf(
  { name, path }: { readonly name: string; readonly path: readonly (string | number)[] },
  results: ReadonlyMap<string, string>,
): Json {
  const text = results.get(name);
  if (text === undefined) return null;
  let value: Json = path.length === 0 ? jsonOr(text) : (JSON.parse(text) as Json);
  for (const step of path) {
    if (Array.isArray(value) && typeof step === 'number') value = value[step] ?? null;
    else value = isJsonObject(value) ? (value[String(step)] ?? null) : null;
  }
  return value;
}

function jsonOr(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

/** The calls of a generation, and whether it is the last one, which answers. */
export function turnOf(
  plan: IdealPlan,
  generation: number,
): { readonly calls: readonly PlannedCall[]; readonly isLast: boolean } {
  return { calls: plan.generations[generation - 1] ?? [], isLast: generation >= plan.generations.length };
}
