/** The setting `REDACT`: patterns of text that leaves no session of the deployment (C9). */
import { redactIssues } from '../../bounded/redaction.ts';
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import { WorkExceeded, WorkMeter } from '../../domain/work.ts';
import { readYaml } from './yaml-file.ts';

/** The setting is read with every request. */
let known: { readonly text: string; readonly patterns: readonly string[] } | null = null;

/**
 * @param text a list of patterns as JSON or YAML; unset or empty means none
 * @throws EngineError `internal`, so that nothing leaves unredacted because of a mistake
 */
export function parseRedact(text: string | undefined): readonly string[] {
  const written = text?.trim() ?? '';
  if (written === '') return [];
  if (known?.text === written) return known.patterns;
  const patterns = patternsIn(written);
  try {
    const [issue] = redactIssues(patterns, new WorkMeter(limits.redactCompileSteps));
    if (issue !== undefined) throw invalid(`pattern ${issue.at + 1}, "${patterns[issue.at]}", ${issue.reason}`);
  } catch (fault) {
    if (fault instanceof WorkExceeded) throw invalid('the patterns are too large in total');
    throw fault;
  }
  known = { text: written, patterns };
  return patterns;
}

function patternsIn(text: string): readonly string[] {
  // YAML files are maps.
  const { documents, errors } = readYaml(`patterns:\n${text.replaceAll(/^/gm, ' ')}`);
  const [error] = errors;
  if (error !== undefined) throw invalid(error.message);
  const list = documents.length === 1 ? documents[0]?.value['patterns'] : undefined;
  if (!Array.isArray(list)) throw invalid('it is not a list');
  if (list.length > limits.redactPatterns) {
    throw invalid(`it has ${list.length} patterns (allowed: ${limits.redactPatterns})`);
  }
  return list.map((item, at) => {
    if (typeof item === 'string' && item !== '') return item;
    throw invalid(`pattern ${at + 1} is not a text`);
  });
}

function invalid(why: string): EngineError {
  const message = `REDACT must be a list of patterns, as JSON or YAML: ${why} (example: REDACT=["\\\\bsk-[A-Za-z0-9]{20,64}"])`;
  return new EngineError('internal', message);
}
