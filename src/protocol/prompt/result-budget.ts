/** The results of actions in a prompt: which ones are shown, how much of each, and in which frame. */
import { isJsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { SKILLS_FOLDER } from '../../domain/workspace.ts';
import type { NativeCall } from '../native/tool-calls.ts';
import { resultMarker } from './attached-files.ts';
import type { ActionReport, ChatTurn, Generation } from './chat-turn.ts';
import { escapeReservedTags, sanitizeText } from './escape-reserved-tags.ts';
import { attribute, cut, textOf } from './external-text.ts';

/** A value cut shorter than this is useless; it is left out instead. */
const LEAST_SHOWN_CHARS = 64;

/** Newest first: when the budget is used up, the oldest results are left out. */
export function budgetFor(history: readonly ChatTurn[], current: ChatTurn): ResultBudget {
  const turns = [...history, current];
  const generations = turns.flatMap((turn) => turn.generations);
  const named = turns.filter(({ isSeeded = false }) => !isSeeded).flatMap((turn) => turn.generations);
  const latest = latestOf(named.map(({ results }) => results));
  const budget = new ResultBudget(limits.resultsPromptChars);
  for (const generation of generations.toReversed()) {
    budget.reserve(generation.results, latest, new Set(calledResults(generation).values()));
  }
  return budget;
}

/**
 * The reports that their ids still refer to: an action of a later generation takes over the name; an action rejected
 * next to an accepted one does not (P6).
 */
function latestOf(generations: readonly (readonly ActionReport[])[]): ReadonlySet<ActionReport> {
  const latest = new Map<string, ActionReport>();
  for (const reports of generations) {
    for (const report of reports) if (report.status === 'rejected') latest.set(report.id, report);
    for (const report of reports) if (report.status !== 'rejected') latest.set(report.id, report);
  }
  return new Set(latest.values());
}

/** Maps every native call to its report, if it has one. */
export function calledResults({ calls = [], results }: Generation): Map<NativeCall, ActionReport> {
  const found = new Map<NativeCall, ActionReport>();
  for (const call of calls) {
    // By position. Histories that clients have given have ids only.
    const report =
      results.find(({ ordinal }) => ordinal != null && ordinal === call.ordinal) ??
      results.find(({ id, ordinal }) => id === call.actionId && (ordinal === undefined || call.ordinal === undefined));
    if (report !== undefined) found.set(call, report);
  }
  return found;
}

/** Distributes the characters available for results, first come, first served. Loaded skills have characters of their own. */
export class ResultBudget {
  readonly #rendered = new Map<ActionReport, string>();
  readonly #skills = new LoadedSkills();
  #left: number;

  constructor(chars: number) {
    this.#left = chars;
  }

  /**
   * @param latest reports whose `$id` still refers to the whole value
   * @param called reports that answer native calls: their message is their frame
   */
  reserve(
    results: readonly ActionReport[],
    latest: ReadonlySet<ActionReport>,
    called: ReadonlySet<ActionReport>,
  ): void {
    for (const report of results.toReversed()) {
      const [open, close] = called.has(report) ? [statusLine(report), ''] : frameOf(report);
      const skill = this.#skills.body(report);
      if (skill !== null) {
        this.#rendered.set(report, open + skill + close);
        continue;
      }
      const room = Math.min(limits.resultPromptChars, this.#left - open.length - close.length);
      if (room < LEAST_SHOWN_CHARS) {
        // An older result must not be shown if a newer one did not fit.
        this.#left = 0;
        continue;
      }
      const text =
        open +
        cut(bodyOf(report), room, report.status === 'completed' && latest.has(report) ? report.id : null) +
        close;
      this.#left -= text.length;
      this.#rendered.set(report, text);
    }
  }

  /** The content of the message that answers a native call. */
  answer(report: ActionReport | undefined): string {
    if (report === undefined) return '[no result]';
    return this.#rendered.get(report) ?? '[the result is left out for length]';
  }

  /** One `<results>` block: an `<action_result id name status ms>` for each report, and how many are left out. */
  block(results: readonly ActionReport[]): string {
    const shown = results.flatMap((report) => this.#rendered.get(report) ?? []);
    const missing = results.length - shown.length;
    const note =
      missing === 0 ? [] : [`[${missing} earlier ${missing === 1 ? 'result is' : 'results are'} left out for length]`];
    return ['<results>', ...note, ...shown, '</results>'].join('\n');
  }
}

/** Texts of loaded skills (C8), newest first: each is shown once, and whole or not at all. */
class LoadedSkills {
  readonly #shown = new Set<string>();
  #left: number = limits.loadedSkillsPromptChars;

  /** What is shown of the result of a `load_skill`; null for other results, and if its text is no longer known. */
  body({ isSkill, status, output }: ActionReport): string | null {
    if (isSkill !== true || status !== 'completed' || output === undefined || !isJsonObject(output)) return null;
    const { name, text, files } = output;
    if (typeof name !== 'string' || typeof text !== 'string') return null;
    if (this.#shown.has(name)) return '[the text of this skill is in a later result]';
    // Skills of other agents write the paths of their files from their own folder.
    const note = `Files in the workspace (the text may leave out ${SKILLS_FOLDER}/${name}/)`;
    const paths = Array.isArray(files) && files.length > 0 ? [`${note}: ${files.join(', ')}`] : [];
    const body = escapeReservedTags(sanitizeText([...paths, text].join('\n')));
    if (body.length > this.#left) return '[the text of this skill is left out for length; load it again to read it]';
    this.#left -= body.length;
    this.#shown.add(name);
    return body;
  }
}

/** The status line of a bare message, in place of a result's frame. */
function statusLine({ status }: ActionReport): string {
  return status === 'completed' ? '' : `[${status}] `;
}

function frameOf({ id, name, status, ms }: ActionReport): [open: string, close: string] {
  const named = name === null ? '' : ` name="${attribute(name)}"`;
  const timed = ms === null ? '' : ` ms="${Math.round(ms)}"`;
  return [`<action_result id="${attribute(id)}"${named} status="${status}"${timed}>\n`, '\n</action_result>'];
}

/** The markers of files come first, so that they are shown even if the rest is cut. */
function bodyOf({ status, output = null, files = [], note }: ActionReport): string {
  return status === 'completed' ? [...files.map(resultMarker), textOf(output)].join('\n') : (note ?? status);
}
