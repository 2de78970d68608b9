/** What happened in a history, as one short line for each fact. */
import type { SessionEvent } from '../../../src/domain/event.ts';
import type { Fact, Observation } from '../observation.ts';
import { placeOf } from '../script.ts';
import { counted, plannedOf } from './planned.ts';

const MOST_VALUE_CHARS = 60;
/** Events whose data says nothing about the order of things. */
const WITHOUT_DATA: ReadonlySet<SessionEvent['type']> = new Set<SessionEvent['type']>([
  'agent_started',
  'iteration_started',
  'plan_generated',
  'usage',
]);
/** Members of events that repeat what else is printed, or that say nothing. */
const OMITTED = new Set(
  'segment ms sha256 bytes complete iteration iterations type mode line column excerpt'.split(' '),
);

interface Line {
  readonly at: number;
  readonly text: string;
}

export function timelineText(seen: Observation): string {
  const { history, runs, stuck } = seen;
  const sessions = [...seen.earlier, seen];
  const readers = sessions.flatMap((session) => session.readers);
  // Sorting is stable.
  const facts = sessions.flatMap((session) => session.facts).sort((a, b) => a.at - b.at);
  const planned = plannedOf(history).flatMap(({ at, text }) => (at === null ? [] : [{ at, text: `» ${text}` }]));
  const hasRuns = new Set(facts.flatMap((fact) => (fact.type === 'published' ? [fact.event.run_id] : []))).size > 1;
  const happened = withoutChecks(facts).map((fact) => ({ at: fact.at, text: factText(fact, hasRuns) }));
  // Sorting is stable: at the same time, plans come before what they cause.
  const lines = withoutRepeats([...planned, ...happened].sort((a, b) => a.at - b.at));
  const width = Math.max(...lines.map(({ at }) => String(at).length));
  return [
    ...lines.map(({ at, text }) => `  ${String(at).padStart(width)} ms  ${text}`),
    ...runs.map(({ run, status, isOpen }) => `  At the end, run ${run} is ${status}${isOpen ? ' and open' : ''}.`),
    ...(stuck === null ? [] : [`  The world did not come to rest: ${stuck}.`]),
    ...sessions
      .flatMap((session) => session.clients)
      .map(({ name, via, streams }) => {
        const ends = streams.map(({ asked, end, reading }) => `${asked} ${end} (${reading.outcome ?? 'no end'})`);
        return `  ${name} (${via.protocol}) had ${counted(streams.length, 'stream')}: ${ends.join(', ')}.`;
      }),
    ...readers.map(({ name, from, frames }) => {
      const connections = new Set(frames.map(({ connection }) => connection)).size;
      const seqs = frames.flatMap(({ event }) => event.seq ?? []);
      const live = counted(frames.length - seqs.length, 'live event');
      const start = from === 0 ? '' : `, which began after #${from},`;
      return `  ${name}${start} got ${rangesOf(seqs)} and ${live} over ${counted(connections, 'connection')}.`;
    }),
  ].join('\n');
}

function factText(fact: Fact, hasRuns: boolean): string {
  switch (fact.type) {
    case 'host_started':
      return `host ${fact.life} starts`;
    case 'host_ended':
      return `host ${fact.life} ends: ${fact.why}`;
    case 'disk_failed':
      return `a ${fact.what} fails`;
    case 'message_answered':
      return `message ${fact.message} is answered: ${fact.run === null ? fact.code : `run ${fact.run}`}`;
    case 'branch_sent': {
      const what = fact.action === null ? '' : ` and its action ${fact.action}`;
      return `message ${fact.message} names ${fact.of === null ? 'the beginning' : `run ${fact.of}`}${what}`;
    }
    case 'head_sent':
      return `a client moves the head to run ${fact.run}`;
    case 'head_answered':
      return `the move of the head to run ${fact.run} is answered: ${fact.code}`;
    case 'forked':
      return `a fork at run ${fact.run} is complete, with ${counted(fact.events.length, 'event')}`;
    case 'fork_lost':
      return 'a fork is not completed';
    case 'cancel_answered':
      return `the cancel is answered; open were ${fact.runs.length === 0 ? 'no runs' : `runs ${fact.runs.join(', ')}`}`;
    case 'deleted':
      return 'the session is deleted';
    case 'late_answer':
      return `the request for ${fact.what} ${fact.id} of an earlier session is answered: ${fact.code}`;
    case 'approval_seen':
      return `a person sees approval ${approvalNumber(fact.approval)}`;
    case 'decision_answered': {
      const what = fact.approved ? 'to approve' : 'to deny';
      return `the decision ${what} approval ${approvalNumber(fact.approval)} is answered: ${fact.code}`;
    }
    case 'call_answered':
      return `the result ${fact.result} is answered: ${fact.code}`;
    case 'wrong_call':
      return `a result for the call ${fact.call} is answered: ${fact.code}`;
    case 'published':
      return `  ${eventText(fact.event, hasRuns)}${fact.isDurable ? '' : '  (not durable)'}`;
    case 'model_called':
      return `the model is called for message ${fact.message}, generation ${fact.call}`;
    case 'message_sent':
      return `message ${fact.message} is sent with ${counted(fact.files.length, 'file')}`;
    case 'files_stored':
      return `${counted(fact.files.length, 'file')} on disk, for ${counted(fact.references.length, 'reference')}`;
    case 'files_shown':
      return `the model sees ${counted(fact.attached.length, 'image')} and ${counted(fact.texts.length, 'text')} for ${counted(fact.markers.length, 'marker')}`;
    case 'stored':
      return `${fact.exists ? 'the session' : 'no session'} is on disk, with ${counted(fact.messages, 'message')} of its history`;
    case 'generation_delivered':
      return `message ${fact.message}, generation ${fact.call} was delivered: ${fact.finish}`;
    case 'effect': {
      // The action of a feed is not journaled.
      const start = fact.isRecorded || placeOf(fact.token) === null ? '' : '  (its start is not durable)';
      return `${fact.token} takes effect (${fact.target}), attempt ${fact.attempt}${start}`;
    }
    case 'tool_called': {
      const answer = fact.answer === null ? '' : `, with ${fact.answer.content} for "${fact.answer.question}"`;
      return `${fact.id} is called, attempt ${fact.attempt}${answer}`;
    }
    case 'tool_reported':
      return `the tool ${fact.name} is reported: its host has ended`;
    case 'attempt_answered':
      return `${fact.token} answers ${fact.end}, attempt ${fact.attempt}`;
    case 'earlier_answer':
      return `the answer for ${fact.key} of the earlier session with this id is given`;
    case 'parked':
      return `the session waits for people only; ${counted(fact.timers, 'timer')}, ${counted(fact.holds, 'hold')}`;
    case 'work_failed':
      return `the engine failed: ${fact.message.split('\n')[0] ?? ''}`;
  }
}

function eventText(event: SessionEvent, hasRuns: boolean): string {
  const run = hasRuns ? [`run ${event.run_id.slice(event.run_id.lastIndexOf('_') + 1)}`] : [];
  const action = event.action_id === undefined ? [] : [event.action_id];
  const data = WITHOUT_DATA.has(event.type)
    ? []
    : Object.entries(event.data).flatMap(([name, value]) => member(name, value));
  return [`#${event.seq ?? 'live'} ${event.type}`, ...run, ...action, ...data].join('  ');
}

/** A member of an event's data, if it is short. */
function member(name: string, value: unknown): string[] {
  if (OMITTED.has(name) || value === null) return [];
  if (name === 'error' && typeof value === 'object' && 'code' in value) return [`error: ${String(value.code)}`];
  if (name === 'approval_id') return [`approval ${approvalNumber(String(value))}`];
  if (value === true) return [name];
  if (value === false) return [`not ${name}`];
  if (typeof value === 'number') return [`${name}: ${value}`];
  if (Array.isArray(value)) return value.length === 0 ? [] : [`${name}: ${value.join(', ')}`];
  return typeof value === 'string' ? [`${name}: ${cut(value)}`] : [];
}

function cut(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length > MOST_VALUE_CHARS ? `${line.slice(0, MOST_VALUE_CHARS)}…` : line;
}

/** `apr_00…01` is 1. */
function approvalNumber(approval: string): number {
  return Number(approval.slice(approval.indexOf('_') + 1));
}

/** Without the hosts that the world starts at the end, to compare what they show. */
function withoutChecks(facts: readonly Fact[]): readonly Fact[] {
  const first = facts.findIndex((fact) => fact.type === 'host_ended' && fact.why === 'replaced');
  const checks = first < 0 ? [] : facts.slice(first);
  const isQuiet = checks.every(({ type }) => type === 'host_started' || type === 'host_ended');
  return isQuiet ? facts.slice(0, facts.length - checks.length) : facts;
}

/** Neighbours that say the same become one line. */
function withoutRepeats(lines: readonly Line[]): Line[] {
  const kept: (Line & { count: number })[] = [];
  for (const line of lines) {
    const last = kept.at(-1);
    if (last?.text === line.text) last.count += 1;
    else kept.push({ ...line, count: 1 });
  }
  return kept.map(({ at, text, count }) => ({ at, text: count === 1 ? text : `${text}  (${count} times)` }));
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
