/** Skills after validation. */
import type { ManifestBase } from './base.ts';

/** A file beside a `SKILL.md`. */
export interface SkillFile {
  /** Relative to the folder of the skill; `pathIssue` accepts it. */
  readonly path: string;
  readonly text: string;
}

/** Instructions for a kind of task, which an agent loads when it needs them (C8). `summary` is its description in one line. */
export interface SkillDefinition extends ManifestBase {
  readonly kind: 'Skill';
  /** The Markdown text of its `SKILL.md`, at most `limits.skillTextChars`. */
  readonly text: string;
  /** In the order of their paths. */
  readonly files: readonly SkillFile[];
}
