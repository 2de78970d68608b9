/**
 * Prints a history, what it violates and what happened in it, for people. Members are printed by their names, so that a new
 * kind of action, request, fault or fact needs nothing here; usual values are left out.
 */
import type { SessionEvent } from '../../../src/domain/event.ts';
import type { GenerationScript, History } from '../history.ts';
import { INVARIANTS } from '../invariants/all.ts';
import type { Violation } from '../invariants/invariant.ts';
import type { Fact, Observation } from '../observation.ts';
import { actionsOf, textOf, tokenOf } from '../script.ts';
import { USUAL } from '../usual.ts';

const MOST_WHAT_CHARS = 2_000;
const MOST_VALUE_CHARS = 120;
/** Members of events that repeat what else is printed, or that say nothing. */
const OMITTED = new Set(
  'at segment ms sha256 bytes complete iteration iterations type mode line column excerpt'.split(' '),
);

/** The violations of one history: what should hold, and what was seen. */
export function violationsText(violations: readonly Violation[]): string {
  return [...Map.groupBy(violations, ({ invariant }) => invariant)]
    .map(([invariant, seen]) => {
      const holds = INVARIANTS.find(({ name }) => name === invariant)?.holds;
      const lines = seen.map(({ what }) => `  ${indented(what.slice(0, MOST_WHAT_CHARS), '  ')}`);
      return [`Violated: ${invariant}.${holds === undefined ? '' : ` ${holds}`}`, ...lines].join('\n');
    })
    .join('\n');
}

/** @param seen null if the history did not end */
export function historyText(history: History, seen: Observation | null): string {
  const { agent, seeded, messages, decisions, requests, faults } = history;
  return [
    'The history:',
    ...[agent].flatMap((settings) => (unusual(settings) === '' ? [] : [`  agent${unusual(settings)}`])),
    ...seeded.map((script) => `  seeded ${planText(script)}`),
    ...messages.flatMap(({ generations, ...script }, message) => [
      `  ${timeText(script)}${message}: ${planText(script)}`,
      ...generations.flatMap((written, generation) => generationLines(written, message, generation)),
    ]),
    ...decisions.map((decision, index) => `  approval ${index + 1}:${unusual(decision) || ' as usual'}`),
    ...[...requests, ...faults].map((planned) => `  ${timeText(planned)}${planText(planned)}`),
    '',
    seen === null
      ? 'The history did not end. A timeline is printed only for a history that ends.'
      : `What happened:\n${timelineText(seen)}`,
  ].join('\n');
}

function generationLines(script: GenerationScript, message: number, generation: number): string[] {
  const { items: _, ...how } = script;
  const text = textOf(message, generation, script);
  return [
    `    generation ${generation}:${unusual(how)}`,
    `      ${text === '' ? '(nothing)' : indented(text, '      ')}`,
    ...actionsOf(script).flatMap(({ attempts }, action) =>
      attempts.every((attempt) => unusual(attempt) === '')
        ? []
        : [`      ${tokenOf({ message, generation, action })}: ${JSON.stringify(attempts)}`],
    ),
  ];
}

/** `crash life: 2  keeps: 1` */
function planText({ type, ...rest }: { readonly type: string }): string {
  return `${type}${unusual(rest)}`;
}

const timeText = (planned: object): string => ('at' in planned ? `${String(planned.at)} ms  ` : '');

/** Members with another value than the usual one, and not the time. */
function unusual(script: object): string {
  return Object.entries(script)
    .filter(
      ([name, value]) => name !== 'at' && value !== USUAL.get(name) && !(Array.isArray(value) && value.length === 0),
    )
    .map(([name, value]) => ` ${name}: ${JSON.stringify(value)}`)
    .join(' ');
}

function timelineText(seen: Observation): string {
  const sessions = [...seen.earlier, seen];
  // Sorting is stable: at the same time, plans come before what they cause.
  const planned = [...seen.history.messages, ...seen.history.requests, ...seen.history.faults].flatMap((script) => {
    const { generations: _, ...plan } = { generations: null, ...script };
    return 'at' in plan ? [{ at: plan.at, text: `» ${planText(plan)}` }] : [];
  });
  const facts = withoutChecks(sessions.flatMap((session) => session.facts).toSorted((a, b) => a.at - b.at));
  const happened = facts.map((fact) => ({ at: fact.at, text: factText(fact) }));
  const lines = [...planned, ...happened].toSorted((a, b) => a.at - b.at);
  const width = Math.max(...lines.map(({ at }) => String(at).length));
  return [
    ...withoutRepeats(lines.map(({ at, text }) => [`  ${String(at).padStart(width)} ms  `, text])),
    ...seen.runs.map(({ run, status, isOpen }) => `  At the end, run ${run} is ${status}${isOpen ? ' and open' : ''}.`),
    ...(seen.stuck === null ? [] : [`  The world did not come to rest: ${seen.stuck}.`]),
    ...sessions.flatMap(({ clients }) =>
      clients.map(({ name, via, streams }) => {
        const ends = streams.map(({ asked, end, reading }) => `${asked} ${end} (${reading.outcome ?? 'no end'})`);
        return `  ${name} (${via.protocol}) had these streams: ${ends.join(', ')}.`;
      }),
    ),
    ...sessions.flatMap(({ readers }) =>
      readers.map(({ name, from, frames }) => {
        const seqs = frames.flatMap(({ event }) => event.seq ?? []);
        const connections = 1 + (frames.at(-1)?.connection ?? -1);
        return `  ${name}, after #${from}: ${rangesOf(seqs)}, live events: ${frames.length - seqs.length}, connections: ${connections}.`;
      }),
    ),
  ].join('\n');
}

function factText(fact: Fact): string {
  if (fact.type !== 'published') return [fact.type, ...members(fact)].join('  ');
  return `  ${eventText(fact.event)}${fact.isDurable ? '' : '  (not durable)'}`;
}

function eventText({ seq, type, run_id: run, action_id: action, data }: SessionEvent): string {
  const about = [`run ${run.slice(run.lastIndexOf('_') + 1)}`, ...(action === undefined ? [] : [action])];
  return [`#${seq ?? 'live'} ${type}`, ...about, ...members(data)].join('  ');
}

/** The short members of an event or a fact. */
function members(data: object): string[] {
  return Object.entries(data).flatMap(([name, value]: [string, unknown]) => {
    if (OMITTED.has(name) || value === null) return [];
    if (name === 'error' && typeof value === 'object' && 'code' in value) return [`error: ${String(value.code)}`];
    if (value === true) return [name];
    if (value === false) return [`not ${name}`];
    if (Array.isArray(value)) return value.length === 0 ? [] : [`${name}: ${cut(JSON.stringify(value))}`];
    return typeof value === 'object' ? [] : [`${name}: ${cut(String(value))}`];
  });
}

function cut(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length > MOST_VALUE_CHARS ? `${line.slice(0, MOST_VALUE_CHARS)}…` : line;
}

/** Without the hosts that the world starts at the end, to compare what they show. */
function withoutChecks(facts: readonly Fact[]): readonly Fact[] {
  const first = facts.findIndex((fact) => fact.type === 'host_ended' && fact.why === 'replaced');
  const checks = first < 0 ? [] : facts.slice(first);
  const isQuiet = checks.every(({ type }) => type === 'host_started' || type === 'host_ended');
  return isQuiet ? facts.slice(0, facts.length - checks.length) : facts;
}

/** Neighbours that say the same become one line. */
function withoutRepeats(lines: readonly (readonly [time: string, text: string])[]): string[] {
  const isNew = lines.map(([, text], at) => text !== lines[at - 1]?.[1]);
  return lines.flatMap(([time, text], at) => {
    if (isNew[at] !== true) return [];
    const next = isNew.indexOf(true, at + 1);
    const count = (next < 0 ? lines.length : next) - at;
    return [`${time}${text}${count === 1 ? '' : `  (${count} times)`}`];
  });
}

/** Numbers in the order of arrival: `#1-#9, #4`. */
function rangesOf(seqs: readonly number[]): string {
  const ranges: { from: number; to: number }[] = [];
  for (const seq of seqs) {
    const last = ranges.at(-1);
    if (last?.to === seq - 1) last.to = seq;
    else ranges.push({ from: seq, to: seq });
  }
  if (ranges.length === 0) return 'no journaled event';
  return ranges.map(({ from, to }) => (from === to ? `#${from}` : `#${from}-#${to}`)).join(', ');
}

function indented(text: string, indent: string): string {
  return text.replaceAll('\n', `\n${indent}`);
}
