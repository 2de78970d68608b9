/** Builds a skill: its text, and the files of its folder (C8). */
import { limits } from '../../domain/limits.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { SkillDefinition, SkillFile } from '../../domain/manifests/skill.ts';
import { textBytes } from '../../domain/tokens.ts';
import { SKILLS_FOLDER, pathIssue } from '../../domain/workspace.ts';
import { quoted } from '../check/problem.ts';
import type { SkillInput } from '../schema/schema-skill.ts';
import type { BuildContext } from './build-base.ts';

/** Skills of other agents have no version, or one under `metadata`. */
const NO_VERSION = '1';

export function toSkill(input: SkillInput, context: BuildContext): SkillDefinition {
  const { name, description: written, text, metadata, ...others } = input;
  const description = written.trim();
  if (description.length > limits.skillDescriptionChars) {
    const message = `has ${description.length} characters; what follows the first ${limits.skillDescriptionChars} is left out`;
    context.warn(['description'], message);
  }
  if (text.length > limits.skillTextChars) {
    const message = `the text has ${text.length} characters (allowed: ${limits.skillTextChars}); move parts of it to files beside it`;
    context.addIssue([], message);
  }
  const kept = description.slice(0, limits.skillDescriptionChars).toWellFormed();
  // The front matter was parsed from YAML to JSON.
  const further = others as JsonObject;
  const own: JsonObject = { ...metadata };
  return {
    kind: 'Skill',
    name,
    version: versionIn(further) ?? versionIn(own) ?? NO_VERSION,
    summary: kept.replace(/\s+/g, ' '),
    description: kept,
    tags: tagsIn(further),
    metadata: { ...own, ...further },
    text: text.replace(/\r\n?/g, '\n'),
    files: toFiles(name, context),
  };
}

/** The text files of the folder; a warning names each one that is left out. */
function toFiles(name: string, context: BuildContext): readonly SkillFile[] {
  const paths = context.listFiles('.').filter((path) => !/^SKILL\.md$/i.test(path));
  if (paths.length > limits.skillFiles) {
    context.addIssue([], `the folder has more than ${limits.skillFiles} files beside SKILL.md`);
    return [];
  }
  const files: SkillFile[] = [];
  let bytes = 0;
  for (const path of paths) {
    const issue = pathIssue(`${SKILLS_FOLDER}/${name}/${path}`);
    // "./": a name such as "a:b" is not an absolute path
    const text = issue === null ? context.readFile(`./${path}`, []) : null;
    if (text === null || text.includes('\0')) {
      context.warn([], `the file ${quoted(path)} is left out: ${issue ?? 'it is not text'}`);
      continue;
    }
    bytes += textBytes(text);
    files.push({ path, text });
    if (bytes <= limits.skillFilesBytes) continue;
    const largest = files.reduce((one, other) => (other.text.length > one.text.length ? other : one));
    const message = `the files beside SKILL.md have more than ${limits.skillFilesBytes} bytes; leave out what the skill does not need (large: ${quoted(largest.path)})`;
    context.addIssue([], message);
    return [];
  }
  return files;
}

function versionIn({ version }: JsonObject): string | null {
  const text = typeof version === 'number' ? String(version) : version;
  return typeof text === 'string' && text !== '' && text.length <= 64 ? text : null;
}

function tagsIn({ tags }: JsonObject): readonly string[] {
  return Array.isArray(tags) ? tags.filter((tag) => typeof tag === 'string') : [];
}
