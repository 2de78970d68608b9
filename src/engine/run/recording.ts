/** Converts an input to its record, and a record back to the input (J9). */
import type { ActionOutcome, Question } from '../../domain/action.ts';
import type { GenerationRunner } from '../generation/generation-runner.ts';
import type { Replay } from '../replay/replay.ts';
import type { RunContext } from './run-context.ts';
import type { RecordedInput, RunInput, StreamPiece } from './run-input.ts';
import type { RunLog } from './run-log.ts';

/** Records an input that has arrived now. Inputs for display only, such as progress, are not recorded. */
export function recordInput(
  log: RunLog,
  source: RunContext['source'],
  input: RunInput,
  at: number,
  random: number,
): void {
  // The posted text is already in the journal, so its length is enough.
  const posted = source.type === 'text' && source.text !== null;
  const recordPieces = (pieces: readonly StreamPiece[]): void => {
    for (const piece of pieces) {
      if ('delta' in piece) log.record({ type: 'tool_call', at, delta: piece.delta });
      else if ('declared' in piece) log.record({ type: 'declared', at, ...piece });
      else if (posted) log.record({ type: 'posted_text', at, chars: piece.text.length });
      else log.record({ type: 'text', at, text: piece.text });
    }
  };
  switch (input.type) {
    case 'protocol':
      return recordPieces(input.pieces);
    case 'generation_ended': {
      const { type, pieces, finish, error } = input;
      recordPieces(pieces);
      return log.record({ type, at, finish, error });
    }
    case 'attempt_ended': {
      const { type, key, attempt, outcome } = input;
      const spent = outcome.spent === undefined ? {} : { spent: outcome.spent };
      const asks = outcome.ok || outcome.question === undefined ? {} : { question: true as const };
      return log.record({
        type,
        at,
        key,
        attempt,
        error: outcome.ok ? null : outcome.error,
        random,
        ...spent,
        ...asks,
      });
    }
    case 'recalled': {
      const { type, key, found } = input;
      return log.record({ type, at, key, found: found.type === 'refused' ? { error: found.error } : found.type });
    }
    case 'approval_resolved': {
      const { type, key, approved, note, more } = input;
      return log.record({ type, at, key, approved, note, ...(more === undefined ? {} : { more }) });
    }
    case 'timer_fired':
      return log.record({ ...input, at, random });
    case 'message_received':
      return log.record({ type: input.type, at });
    case 'reasoning':
    case 'usage':
    case 'cancel_requested':
    case 'generation_idle':
      return log.record({ ...input, at });
    // Recorded if the action is still being judged (policies.ts), or if the call is open (client-calls.ts).
    case 'policy_judged':
    case 'client_called':
    case 'client_answered':
    case 'token':
    case 'prompt':
    case 'progress':
    case 'feed':
    case 'save':
      return;
  }
}

/** In place of a recorded question: its text and state are in the event of its request. */
const RECORDED: Question = { from: '', message: '', schema: null, state: {} };

/** The recorded input, with the events of its text and the output of its action. */
export function inputOf(
  recorded: Exclude<RecordedInput, { type: 'run_started' | 'condition_evaluated' | 'approval_asked' }>,
  replay: Replay,
  generations: GenerationRunner,
): RunInput {
  switch (recorded.type) {
    case 'text':
      return reread({ text: recorded.text }, generations);
    case 'posted_text':
      return reread(generations.rereadPosted(recorded.chars), generations);
    case 'declared': {
      const { type: _type, at: _at, ...piece } = recorded;
      return reread(piece, generations);
    }
    case 'tool_call':
      return reread({ delta: recorded.delta }, generations);
    case 'generation_ended':
      return { ...recorded, ...generations.rereadEnd(recorded.finish) };
    case 'attempt_ended': {
      const { type, key, attempt, error } = recorded;
      const spent = recorded.spent === undefined ? {} : { spent: recorded.spent };
      const asks = recorded.question === true ? { question: RECORDED } : {};
      const outcome: ActionOutcome =
        error === null ? { ok: true, output: replay.outputOf(key), ...spent } : { ok: false, error, ...spent, ...asks };
      return { type, key, attempt, outcome };
    }
    case 'recalled': {
      const { type, key, found } = recorded;
      if (found === 'nothing') return { type, key, found: { type: found } };
      if (found === 'outcome') return { type, key, found: { type: found, output: replay.outputOf(key) } };
      return { type, key, found: { type: 'refused', error: found.error } };
    }
    case 'client_called':
      return { ...recorded, parameters: {} };
    case 'client_answered': {
      const { type, key, error, more } = recorded;
      const outcome: ActionOutcome = error === null ? { ok: true, output: replay.outputOf(key) } : { ok: false, error };
      return { type, key, outcome, sha256: '', ...(more === undefined ? {} : { more }) };
    }
    case 'reasoning':
    case 'usage':
    case 'timer_fired':
    case 'policy_judged':
    case 'approval_resolved':
    case 'message_received':
    case 'cancel_requested':
    case 'generation_idle':
      return recorded;
  }
}

function reread(piece: StreamPiece, generations: GenerationRunner): RunInput {
  return { type: 'protocol', pieces: [piece], events: generations.reread(piece) };
}

/** The random number that was drawn at the time. */
export function randomOf(recorded: RecordedInput): number {
  return 'random' in recorded ? recorded.random : 0;
}
