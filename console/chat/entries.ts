/** What the conversation shows, and in which order. Pure. */
import type { Action, Block, HistoryMessage, Message } from '../../src/client/index.ts';
import { canSendAgain } from '../session/branches.ts';
import type { Steered } from '../session/steered.ts';
import * as limits from '../parts/limits.ts';

export type Entry =
  | { readonly type: 'message'; readonly key: string; readonly message: HistoryMessage }
  /** The message is null while only the run itself is known. */
  | {
      readonly type: 'answer';
      readonly key: string;
      readonly runId: string;
      readonly message: HistoryMessage | null;
      readonly canRetry: boolean;
    };

/** Each run has one answer, after its message. */
export function entriesOf(messages: readonly HistoryMessage[]): readonly Entry[] {
  const answered = new Set(messages.flatMap(({ role, run_id: run }) => (role === 'assistant' && run ? [run] : [])));
  const sent = new Set(messages.filter(canSendAgain).map(({ run_id: run }) => run));
  // Earlier messages are added before these: seeded ones are counted from their end.
  const seeded = messages.findLastIndex(({ run_id: run }) => run === undefined) + 1;
  return messages.flatMap((message, index): Entry[] => {
    const { role, run_id: runId } = message;
    if (runId === undefined) return [{ type: 'message', key: `seeded ${seeded - index}`, message }];
    const answer: Entry = { type: 'answer', key: `${runId} answer`, runId, message: null, canRetry: sent.has(runId) };
    if (role === 'assistant') return [{ ...answer, message }];
    if (message.steered === true) return [{ type: 'message', key: `${runId} steered ${message.timestamp}`, message }];
    // All versions of a message have one place, so that the focus stays in it.
    const asked: Entry = { type: 'message', key: `${message.branches?.[0] ?? runId} ${role}`, message };
    return answered.has(runId) ? [asked] : [asked, answer];
  });
}

export type Part =
  | { readonly type: 'block'; readonly key: string; readonly block: Block }
  | { readonly type: 'message'; readonly key: string; readonly message: HistoryMessage }
  | { readonly type: 'actions'; readonly key: string; readonly actions: readonly Action[] };

export interface Parts {
  readonly parts: readonly Part[];
  readonly hiddenActions: number;
  readonly hiddenBlocks: number;
}

/**
 * The parts of a run in the order of its work: thoughts, then actions, then texts, then messages that were sent into it, for
 * each iteration.
 */
export function partsOf(
  { blocks, actions }: Pick<Message, 'blocks' | 'actions'>,
  steered: readonly Steered[] = [],
): Parts {
  const visible = blocks.filter(
    ({ is_replaced: isReplaced, is_open: isOpen, text }) => !isReplaced && (isOpen || text.trim() !== ''),
  );
  const shown = visible.slice(-limits.blocksInMessage);
  const shownActions = actions.slice(0, limits.actionsInMessage);
  const parts: Part[] = [];
  const iterations = new Set([...shown, ...shownActions, ...steered].map(({ iteration }) => iteration));
  for (const iteration of [...iterations].sort((a, b) => a - b)) {
    const own: Part[] = shown.filter((block) => block.iteration === iteration).map(blockPart);
    const chips = shownActions.filter((action) => action.iteration === iteration);
    const first = own.findIndex((part) => part.type === 'block' && part.block.type !== 'thought');
    if (chips.length > 0) {
      const actionsPart: Part = { type: 'actions', key: `actions ${iteration}`, actions: chips };
      own.splice(first === -1 ? own.length : first, 0, actionsPart);
    }
    const sent = steered.filter((each) => each.iteration === iteration);
    parts.push(
      ...own,
      ...sent.map(({ message }, at): Part => ({ type: 'message', key: `sent ${iteration} ${at}`, message })),
    );
  }
  return {
    parts,
    hiddenActions: actions.length - shownActions.length,
    hiddenBlocks: visible.length - shown.length,
  };
}

function blockPart(block: Block): Part {
  return { type: 'block', key: `block ${block.segment}`, block };
}
