/** `load_skill`: gives the model the text of a skill that its agent imports, and its programs the files (C8). */
import type { ActionOutcome } from '../domain/action.ts';
import type { Json } from '../domain/json.ts';
import { nearestNames } from '../domain/nearest.ts';
import { SKILLS_FOLDER } from '../domain/workspace.ts';
import type { ActionContext } from './executor.ts';
import { failure } from '../domain/failure.ts';
import { failureOf, quote, wrongParameter } from './failure.ts';

const encoder = new TextEncoder();

/**
 * Writes the files of the skill to `skills/<name>/` in the workspace; the same files again if it is loaded again. Without a
 * workspace, the skill is its text only. The definition is that of the run's pinned manifests: a file of the workspace
 * is never one.
 *
 * @returns `{name, text, files}`; `files` are paths in the workspace
 */
export async function loadSkill(
  name: Json | undefined,
  { skills, workspace, signal }: Pick<ActionContext, 'skills' | 'workspace' | 'signal'>,
): Promise<ActionOutcome> {
  if (typeof name !== 'string') return wrongParameter('name', 'the name of a skill', name);
  const known = [...(skills?.known.keys() ?? [])];
  const skill = skills?.known.get(name);
  if (skills == null || skill === undefined) {
    const near = nearestNames(name, known);
    const hint = near.length > 0 ? `did you mean ${near.map(quote).join(' or ')}?` : `known: ${known.join(', ')}`;
    return failure('unknown_name', `No skill is called ${quote(name)} (${hint})`, { beforeDispatch: true });
  }
  const files = workspace == null ? [] : skill.files.map(({ path }) => `${SKILLS_FOLDER}/${skill.name}/${path}`);
  try {
    if (workspace != null && skill.files.length > 0) {
      await workspace.write(
        skill.files.map(({ text }, index) => ({
          path: files[index] ?? '',
          bytes: encoder.encode(text),
          // A script is started by its first line.
          executable: text.startsWith('#!'),
        })),
      );
    }
    signal.throwIfAborted();
    skills.loaded(skill.name, files.length);
  } catch (fault) {
    return failureOf(fault, signal, 'internal');
  }
  return { ok: true, output: { name: skill.name, text: skill.text, files } };
}
