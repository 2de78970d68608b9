/** A session in which a test decides when actions end, and protocol text in both forms. */
import type { ActionOutcome, ActionType } from '../../../../src/domain/action.ts';
import type { Json, JsonObject } from '../../../../src/domain/json.ts';
import type { AgentDefinition } from '../../../../src/domain/manifests/agent.ts';
import type { ActionCall } from '../../../../src/executors/executor.ts';
import type { KitOptions, SessionKit } from '../../../support/session-kit.ts';
import { say, sessionKit, settle } from '../../../support/session-kit.ts';
import type { PromptForm } from './claims.ts';

export type TextForm = Exclude<PromptForm, 'tool_calls'>;

interface WrittenAction {
  readonly id?: string;
  readonly type?: ActionType;
  readonly name?: string;
  readonly mode?: 'async' | 'sync' | 'fire_and_forget';
  readonly parameters?: JsonObject;
  /** The other fields of P6, by their names in protocol text. */
  readonly fields?: Readonly<Record<string, string | number | readonly string[]>>;
}

/** One action as the prompt teaches it. */
export function act(form: TextForm, action: WrittenAction): string {
  const { id, type, mode, parameters = {}, fields = {} } = action;
  const name = action.name ?? (type === undefined ? 'echo' : undefined);
  const modeInTag = form === 'compact' && mode === 'sync' ? undefined : mode;
  const inTag = { type: type ?? (form === 'full' ? 'tool' : undefined), id, mode: modeInTag };
  const tag = form === 'compact' ? { ...inTag, name, ...fields } : inTag;
  const attributes = Object.entries(tag).flatMap(([key, value]) =>
    value === undefined ? [] : [` ${key}="${[value].flat().join(',').replaceAll('>', '&gt;')}"`],
  );
  const body = form === 'compact' ? parameters : { ...(name === undefined ? {} : { name }), parameters, ...fields };
  return `<action${attributes.join('')}>${JSON.stringify(body)}</action>`;
}

export const final = (text: string): string => `<response final="true">${text}</response>`;

/** A failure after which the same call may be made again. */
export class Retryable extends Error {}

interface Scene extends SessionKit {
  /** `start id` and `end id`, in order. */
  readonly log: readonly string[];
  /** What the executors were given, by id. */
  readonly calls: ReadonlyMap<string, ActionCall>;
  /** The most actions that ran at once. */
  readonly most: () => number;
}

/** @param results outputs by id; an `Error` fails; a promise ends when it is resolved */
export async function scene(
  form: PromptForm,
  results: Readonly<Record<string, Json | Error | Promise<Json>>>,
  options: Omit<KitOptions, 'executors'> = {},
): Promise<Scene> {
  const log: string[] = [];
  const calls = new Map<string, ActionCall>();
  let running = 0;
  let most = 0;
  const execute = async (call: ActionCall): Promise<ActionOutcome> => {
    const { id } = call.action;
    log.push(`start ${id}`);
    calls.set(id, call);
    running += 1;
    most = Math.max(most, running);
    const output = await (results[id] ?? null);
    running -= 1;
    log.push(`end ${id}`);
    return output instanceof Error
      ? { ok: false, error: { code: 'tool_failed', message: output.message, retryable: output instanceof Retryable } }
      : { ok: true, output };
  };
  const kit = await sessionKit({
    ...options,
    agent: (agent) => (options.agent ?? same)(speaking(agent, form)),
    executors: { tool: execute, python: execute, shell: execute, llm: execute },
  });
  return { ...kit, log, calls, most: () => most };
}

const same = (agent: AgentDefinition): AgentDefinition => agent;

export function speaking(agent: AgentDefinition, form: PromptForm): AgentDefinition {
  const protocol = form === 'tool_calls' ? { dialect: form } : { dialect: 'protocol' as const, form };
  return { ...agent, protocol: { ...agent.protocol, ...protocol } };
}

/** Runs one message of which the model's outputs are given. */
export async function runOf(
  form: PromptForm,
  script: readonly string[],
  results: Parameters<typeof scene>[1] = {},
  options: Omit<KitOptions, 'executors' | 'script'> = {},
): Promise<{ readonly kit: Scene; readonly result: Awaited<ReturnType<typeof say>> }> {
  const kit = await scene(form, results, { ...options, script });
  return { kit, result: await say(kit, 'go') };
}

/** A message whose run is not awaited; everything that needs no further result has happened. */
export async function begun(kit: SessionKit): Promise<{ readonly ended: ReturnType<typeof say> }> {
  const ended = say(kit, 'go');
  await settle();
  return { ended };
}

/** The text of the messages of a model call, from 0. */
export const sent = ({ requests }: SessionKit, call: number): string =>
  (requests[call]?.messages ?? [])
    .slice(1)
    .map(({ content }) => content)
    .join('\n');
