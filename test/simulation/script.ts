/** The protocol text of a generation, and the ids in it. */
import type { ActionScript, CutScript, GenerationScript, Item, MessageScript } from './history.ts';

/** Which action of the history: of the nth message, its nth generation, and its nth action, all from 0. */
export interface ActionPlace {
  readonly message: number;
  readonly generation: number;
  readonly action: number;
}

/** The id of an action, which is also the token that its target sees. Unique in its history. */
export function tokenOf({ message, generation, action }: ActionPlace): string {
  return `m${message}g${generation}a${action}`;
}

export function placeOf(token: string): ActionPlace | null {
  const found = /^m(\d+)g(\d+)a(\d+)$/.exec(token);
  if (found === null) return null;
  return { message: Number(found[1]), generation: Number(found[2]), action: Number(found[3]) };
}

export function actionsOf({ items }: GenerationScript): ActionScript[] {
  return items.flatMap((item) => (item.type === 'action' ? [item.action] : []));
}

export function scriptOf(messages: readonly MessageScript[], token: string): ActionScript | null {
  const place = placeOf(token);
  if (place === null) return null;
  const generation = messages[place.message]?.generations[place.generation];
  return generation === undefined ? null : (actionsOf(generation)[place.action] ?? null);
}

/** What depends on the world: the code of a python action, and the name of the agent of a child. */
export interface Forms {
  readonly code: (token: string) => string;
  readonly helper: string;
}

export const SIMULATED: Forms = { code: (token) => `print("${token}")`, helper: 'helper' };

/** The text that the model, or the client, writes. */
export function textOf(
  message: number,
  generation: number,
  script: GenerationScript,
  forms: Forms = SIMULATED,
): string {
  const count = actionsOf(script).length;
  let action = 0;
  const idAt = (place: number): string | null =>
    place >= 0 && place < count ? tokenOf({ message, generation, action: place }) : null;
  return script.items
    .map((item) => (item.type === 'action' ? actionText(item.action, action++, idAt, forms) : textOfItem(item, idAt)))
    .join('\n');
}

/** Where the text of a generation is cut off. */
function cutPlace(text: string, { tag, chars }: CutScript): number {
  const tags = tag === null ? [] : Array.from(text.matchAll(/</g), ({ index }) => index);
  if (tag === null || tags.length === 0) return chars % (text.length + 1);
  const from = tags[tag % tags.length] ?? 0;
  const end = text.indexOf('>', from);
  return from + 1 + (chars % ((end === -1 ? text.length : end) - from));
}

/** What of the text is written. */
export function writtenOf(text: string, cut: CutScript | null): string {
  return cut === null ? text : text.slice(0, cutPlace(text, cut));
}

type IdAt = (place: number) => string | null;

function textOfItem(item: Exclude<Item, { type: 'action' }>, idAt: IdAt): string {
  switch (item.type) {
    case 'thought':
      return `<thought>${words(item.words)}</thought>`;
    case 'bare':
      return words(item.words);
    case 'response': {
      const final = item.final === null ? '' : ` final="${item.final}"`;
      const values = item.refers.flatMap((place) => idAt(place) ?? []).map((id) => ` and $${id}`);
      return `<response${final}>The values${values.join('')} are here.</response>`;
    }
    case 'recall':
      return `<response final="false">The values and $${tokenOf({ message: item.of, generation: 0, action: 0 })} are here.</response>`;
    case 'broken':
      return '<action type="tool" mode="async" id="broken">{"name": </action>';
  }
}

/** Actions with this idempotency key also have the same parameters, so that a result can be used again. */
export const SHARED = 1;

/** What their target sees instead of the id. */
export const sharedToken = (target: ActionScript['target']): string => `shared_${target}`;

function actionText(script: ActionScript, place: number, idAt: IdAt, forms: Forms): string {
  const { target, mode, dependsOn, refers, when, onError, retries, timeoutS, priority, key } = script;
  const id = idAt(place) ?? '';
  const near = (distances: readonly number[]): string[] =>
    [...new Set(distances)].flatMap((distance) => (distance === 0 ? [] : (idAt(place + distance) ?? [])));
  const fields = {
    ...(dependsOn === null ? {} : { depends_on: near(dependsOn) }),
    ...(when === null ? {} : { when: String(when) }),
    ...(onError === null ? {} : { on_error: onError }),
    ...(retries === null ? {} : { retry: { max_attempts: retries, delay: 0.05 } }),
    ...(timeoutS === null ? {} : { timeout: timeoutS }),
    ...(priority === 0 ? {} : { priority }),
    ...(key === null ? {} : { idempotency_key: `key-${key}-${target}` }),
  };
  const values = near(refers).map((other) => `$${other}`);
  const body = JSON.stringify({
    ...callOf(target, key === SHARED ? sharedToken(target) : id, values, forms),
    ...fields,
  });
  return `<action type="${typeOf(target)}" mode="${mode}" id="${id}">${body}</action>`;
}

interface Called {
  readonly name?: string;
  readonly parameters: object;
}

function typeOf(target: ActionScript['target']): string {
  if (target === 'python') return 'python';
  if (target === 'child') return 'agent';
  return target === 'variable' ? 'internal' : 'tool';
}

/** What a function call of this target has. */
export function functionCallOf(
  target: ActionScript['target'],
  token: string,
  forms: Forms,
): { readonly name: string; readonly parameters: object } {
  const { name = typeOf(target), parameters } = callOf(target, token, [], forms);
  return { name, parameters };
}

function callOf(target: ActionScript['target'], token: string, values: readonly string[], forms: Forms): Called {
  switch (target) {
    case 'python':
      return { parameters: { code: forms.code(token), ...(values.length === 0 ? {} : { inputs: { values } }) } };
    case 'child':
      return {
        name: forms.helper,
        parameters: { message: token, ...(values.length === 0 ? {} : { context: { values } }) },
      };
    case 'variable':
      return { name: 'set_variable', parameters: { key: token, value: values } };
    default:
      return { name: target, parameters: { token, values } };
  }
}

/** The text of a thought. */
export function words(count: number): string {
  return Array.from({ length: count }, (_, at) => `word${at}`).join(' ');
}

/** The file that every job writes, and the one that only jobs of one action write. */
export const SHARED_FILE = 'shared.txt';
export function ownFile(token: string): string {
  return `own/${token}.txt`;
}
