/**
 * Histories for the real system: the same events, with times that take seconds, and without faults that real processes
 * cannot have on demand (failing writes, full disks, wrong clocks).
 */
import type { ActionScript, CutScript, GenerationScript, History, MessageScript } from '../simulation/history.ts';
import { textOf } from '../simulation/script.ts';

const MOST_MS = { moment: 3_000, attempt: 500, decision: 1_200, generation: 1_200 };
/** Timeout and attempts of an action that gets no answer. */
const SILENT = { seconds: 1, attempts: 2 };
/** In one of so many histories, the client executes the unsafe actions: its calls are rare otherwise. */
const BY_CLIENT = 3;
/** In one of so many histories, the Worker is killed while the model writes a tag of the first generation of each message. */
const CUT = 2;

export function shortened(history: History): History {
  const byClient = history.order % BY_CLIENT === 0;
  const soon = <T extends { readonly at: number }>(thing: T): T => ({ ...thing, at: shortMoment(thing.at) });
  return {
    ...history,
    // Messages with a place of their own, those for an active run, and moves of the head are left out.
    messages: cutOff(history)
      .filter(({ branch }) => branch === null)
      .map((message, at) => ({
        ...soon(message),
        ifBusy: message.ifBusy === 'steer' ? 'queue' : message.ifBusy,
        // Those are refused because of their size, which takes time to send.
        files: message.files.filter(({ form }) => form !== 'large'),
        generations: message.generations.map((generation, call) => shortGeneration(at, call, generation, byClient)),
      })),
    decisions: history.decisions.map((decision) => ({
      ...decision,
      afterMs: Math.min(decision.afterMs, MOST_MS.decision),
      // Without a decision, a request expires after days.
      times: Math.max(1, decision.times),
    })),
    requests: history.requests.filter(({ type }) => type !== 'head').map(soon),
    faults: history.faults.filter(({ type }) => type === 'crash' || type === 'eviction'),
  };
}

/** After a thought, nothing but the beginning of the tag is bare text. */
function cutOff({ messages, order }: History): readonly MessageScript[] {
  if (order % CUT !== 0) return messages;
  const cut: CutScript = { tag: 1 + (order % 3), chars: order % 23, pauseMs: 0, cause: 'host', keeps: 1 };
  return messages.map((message) => ({
    ...message,
    generations: message.generations.map((script, call) =>
      message.type === 'text' || call > 0
        ? script
        : { ...script, cut, items: [{ type: 'thought', words: 1 }, ...script.items] },
    ),
  }));
}

/** Late moments keep their order. */
const shortMoment = (at: number): number => Math.min(at, MOST_MS.moment) + Math.round(Math.min(at, 120_000) / 100);

function shortGeneration(message: number, call: number, script: GenerationScript, byClient: boolean): GenerationScript {
  const items = script.items.map((item) =>
    // The world finds the results of clients in the form of protocol text.
    item.type === 'action' ? { ...item, action: shortAction(item.action, byClient && script.calls === null) } : item,
  );
  const pieces = Math.ceil(textOf(message, call, script).length / script.pieceChars) + 1;
  return { ...script, items, gapMs: Math.min(script.gapMs, Math.floor(MOST_MS.generation / pieces)) };
}

function shortAction(action: ActionScript, byClient: boolean): ActionScript {
  // Code tools belong to a project, and here the manifests are uploaded.
  const written = action.target === 'code' ? 'unsafe' : action.target;
  const target = byClient && written === 'unsafe' ? 'client' : written;
  const attempts = action.attempts.map(({ ms, end }) => ({ ms: Math.min(ms, MOST_MS.attempt), end }));
  // The manifest has the timeout of the client.
  if (target === 'client' || !attempts.some(({ end }) => end === 'silent')) return { ...action, target, attempts };
  const retries = action.retries === null ? SILENT.attempts : Math.min(action.retries, SILENT.attempts);
  return { ...action, target, attempts, timeoutS: SILENT.seconds, retries };
}
