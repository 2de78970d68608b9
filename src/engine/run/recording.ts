/** A run's inputs to their record and back (J9). What only people see, such as progress, is not recorded. */
import type { ActionOutcome } from '../../domain/action.ts';
import type { GenerationRunner } from '../generation/generation-runner.ts';
import type { RunInput, StreamPiece } from './inbox.ts';
import type { RecordedInput } from './recorded-input.ts';
import type { Replay } from '../replay/replay.ts';
import type { RunContext } from './run-context.ts';
import type { RunLog } from './run-log.ts';

/** Keeps an input that has arrived now. */
export function recordInput(
  log: RunLog,
  source: RunContext['source'],
  input: RunInput,
  at: number,
  random: number,
): void {
  // The posted text is in the journal already: its length is enough.
  const whole = source.type === 'text' && source.text !== null;
  const say = (pieces: readonly StreamPiece[]): void => {
    for (const piece of pieces) {
      if ('delta' in piece) log.record({ is: 'call', at, delta: piece.delta });
      else if (whole) log.record({ is: 'posted', at, chars: piece.text.length });
      else log.record({ is: 'text', at, text: piece.text });
    }
  };
  switch (input.type) {
    case 'protocol':
      return say(input.said);
    case 'reasoning':
      return log.record({ is: 'reasoning', at, text: input.text });
    case 'usage':
      return log.record({ is: 'usage', at, usage: input.usage });
    case 'generation_ended':
      say(input.said);
      return log.record({ is: 'ended', at, finish: input.finish, error: input.error });
    case 'outcome': {
      const { key, attempt, outcome } = input;
      const spent = outcome.spent === undefined ? {} : { spent: outcome.spent };
      return log.record({
        is: 'outcome',
        at,
        key,
        attempt,
        error: outcome.ok ? null : outcome.error,
        random,
        ...spent,
      });
    }
    case 'recalled': {
      const { key, found } = input;
      return log.record({ is: 'recalled', at, key, found: found.type === 'refused' ? found.error : found.type });
    }
    case 'timer':
      return log.record({ is: 'timer', at, timer: input.timer, random });
    case 'approval':
      return log.record({ is: 'approval', at, key: input.key, approved: input.approved, note: input.note });
    case 'cancel':
      return log.record({ is: 'cancel', at, reason: input.reason });
    case 'idle':
      return log.record({ is: 'idle', at });
    case 'token':
    case 'progress':
    case 'feed':
    case 'save':
      return;
  }
}

/** The input that was recorded, with what its piece of text meant and what its action gave. */
export function inputOf(
  recorded: Exclude<RecordedInput, { is: 'start' | 'condition' | 'unasked' }>,
  replay: Replay,
  generations: GenerationRunner,
): RunInput {
  switch (recorded.is) {
    case 'text':
    case 'posted':
    case 'call': {
      const said = saidOf(recorded, generations);
      return { type: 'protocol', said: [said], events: generations.reread(said) };
    }
    case 'reasoning':
      return { type: 'reasoning', text: recorded.text };
    case 'usage':
      return { type: 'usage', usage: recorded.usage };
    case 'ended': {
      const { finish, error } = recorded;
      return { type: 'generation_ended', finish, error, ...generations.rereadEnd(finish) };
    }
    case 'outcome': {
      const { key, attempt, error } = recorded;
      const outcome: ActionOutcome = error === null ? { ok: true, output: replay.outputOf(key) } : { ok: false, error };
      return { type: 'outcome', key, attempt, outcome };
    }
    case 'recalled': {
      const { key, found } = recorded;
      if (found === 'outcome')
        return { type: 'recalled', key, found: { type: 'outcome', output: replay.outputOf(key) } };
      if (found === 'nothing') return { type: 'recalled', key, found: { type: 'nothing' } };
      return { type: 'recalled', key, found: { type: 'refused', error: found } };
    }
    case 'timer':
      return { type: 'timer', timer: recorded.timer };
    case 'approval':
      return { type: 'approval', key: recorded.key, approved: recorded.approved, note: recorded.note };
    case 'cancel':
      return { type: 'cancel', reason: recorded.reason };
    case 'idle':
      return { type: 'idle' };
  }
}

/** What chance gave at the time. */
export function randomOf(recorded: RecordedInput): number {
  return 'random' in recorded ? recorded.random : 0;
}

function saidOf(
  recorded: Extract<RecordedInput, { is: 'text' | 'posted' | 'call' }>,
  generations: GenerationRunner,
): StreamPiece {
  if (recorded.is === 'call') return { delta: recorded.delta };
  return recorded.is === 'text' ? { text: recorded.text } : generations.rereadPosted(recorded.chars);
}
