/** Which tasks and forms a command line means. */
import { nearestNames } from '../../../src/domain/nearest.ts';
import { UsageError } from '../../command.ts';
import { visible } from '../../terminal/visible.ts';
import { KINDS } from './dataset.ts';
import type { Task } from './dataset.ts';
import { FORM_NAMES, isForm } from './forms.ts';
import type { FormName } from './forms.ts';

/** @param text names of forms, separated by commas @throws UsageError */
export function selectForms(text: string): FormName[] {
  const names = words('forms', text);
  const unknown = names.find((name) => !isForm(name));
  if (unknown !== undefined) throw unknownWord('forms', unknown, FORM_NAMES);
  return FORM_NAMES.filter((name) => names.includes(name));
}

/** @param text names of tasks or of kinds, separated by commas @throws UsageError */
export function selectTasks(tasks: readonly Task[], text: string): Task[] {
  const names = words('tasks', text);
  const known = [...KINDS, ...tasks.map(({ name }) => name)];
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw unknownWord('tasks', unknown, known);
  return tasks.filter(({ name, kind }) => names.includes(name) || names.includes(kind));
}

function words(option: string, text: string): string[] {
  const found = text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
  if (found.length === 0) throw new UsageError(`--${option} needs at least one name`);
  return found;
}

/** Names of an option that are listed in an error. */
const LISTED = 8;

function unknownWord(option: string, word: string, known: readonly string[]): UsageError {
  const near = nearestNames(word, known);
  const hint = near.length === 0 ? '' : `did you mean ${near.join(' or ')}? `;
  const more = known.length > LISTED ? ', …' : '';
  return new UsageError(
    `--${option} "${visible(word.slice(0, 100))}" is unknown (${hint}known: ${known.slice(0, LISTED).join(', ')}${more})`,
  );
}
