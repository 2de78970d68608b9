/** What clients, people and faults do in a history, as sentences. */
import type { DecisionScript, Fault, History, MessageScript, Request } from '../history.ts';

/** Something that the history plans. */
export interface Planned {
  /** Milliseconds; null if it depends on what a host does. */
  readonly at: number | null;
  readonly text: string;
}

export function plannedOf({ messages, requests, faults }: History): Planned[] {
  return [
    ...messages.map((script, index) => ({ at: script.at, text: `a client ${sendingText(script, index)}` })),
    ...requests.map((request, index) => ({ at: request.at, text: requestText(request, index) })),
    ...faults.flatMap(faultTexts),
  ];
}

/** What a client does to send a message. */
export function sendingText({ type, branch }: MessageScript, index: number): string {
  if (type === 'text') return `posts the text of message ${index}`;
  if (branch === null) return `sends message ${index}`;
  const { how, back, nth } = branch;
  const of = `the accepted run ${fromNewest(back)}`;
  switch (how) {
    case 'follows':
      return `sends message ${index}, which follows ${of}`;
    case 'root':
      return `sends message ${index}, which begins the conversation anew`;
    case 'retry':
      return `sends the message of ${of} again, as message ${index}`;
    case 'edit':
      return `sends message ${index} in place of that of ${of}`;
    case 'rerun':
      return `runs action ${nth} of ${of} again, as message ${index}`;
  }
}

function requestText(request: Request, index: number): string {
  switch (request.type) {
    case 'cancel':
      return 'a client cancels the open runs';
    case 'delete':
      return deletionText(request);
    case 'head':
      return `a client continues after the accepted run ${fromNewest(request.back)}`;
    case 'fork':
      return `a client forks the session at the accepted run ${fromNewest(request.back)}`;
    case 'reader': {
      const { fromEnd, pauseMs, reads } = request;
      const pause = pauseMs === 0 ? '' : `, pauses ${pauseMs} ms after each read`;
      const end = reads === null ? '' : `, and reconnects after ${counted(reads, 'read')}`;
      return `reader ${index} connects ${fromEnd ? 'at the newest event' : 'at the first event'}${pause}${end}`;
    }
  }
}

/** `2 before the newest` */
function fromNewest(back: number): string {
  return back === 0 ? 'that is the newest' : `${back} before the newest`;
}

function deletionText({ exportMs, againMs }: Extract<Request, { type: 'delete' }>): string {
  const read = exportMs === null ? '' : `, reads its export for ${exportMs} ms`;
  const again = againMs === null ? '' : `, and makes it again ${againMs} ms later`;
  return `a client deletes the session${read}${again}`;
}

function faultTexts(fault: Fault): Planned[] {
  switch (fault.type) {
    case 'crash':
      return [
        { at: null, text: `host ${fault.life} crashes at its call ${fault.call} of a port; ${kept(fault.keeps)}` },
      ];
    case 'eviction':
      return [{ at: fault.at, text: `the host is evicted; ${kept(fault.keeps)}` }];
    case 'write':
      return [{ at: null, text: `the write ${fault.statement} of host ${fault.life} fails` }];
    case 'statement':
      return [{ at: null, text: `${statementText(fault)} fails` }];
    case 'sync':
      return [
        { at: null, text: `the sync ${fault.sync} of host ${fault.life} fails, and resets it; ${kept(fault.keeps)}` },
      ];
    case 'slow_disk':
      return [{ at: fault.at, text: `syncs take ${fault.ms} ms from now on` }];
    case 'full_disk':
      return [
        { at: fault.at, text: 'the disk is full' },
        { at: fault.at + fault.forMs, text: 'the disk has space again' },
      ];
    case 'clock':
      return [
        {
          at: fault.at,
          text: `the clock of the hosts jumps ${fault.byMs < 0 ? 'back' : 'forward'} ${Math.abs(fault.byMs)} ms`,
        },
      ];
    case 'index':
      if (fault.forMs === 0) return [{ at: 0, text: 'the index of all sessions answers' }];
      return [
        { at: fault.at, text: `the index of all sessions ${fault.works ? 'loses its answers' : 'is away'}` },
        { at: fault.at + fault.forMs, text: 'the index of all sessions answers again' },
      ];
    case 'runner':
      return [
        { at: fault.at, text: `runner ${fault.runner} is lost with its jobs` },
        { at: fault.at + fault.forMs, text: `runner ${fault.runner} is back` },
      ];
    case 'collector':
      if (fault.forMs === 0) return [{ at: 0, text: 'the collector answers' }];
      return [
        { at: fault.at, text: `the collector ${fault.works ? 'loses its answers' : 'is away'}` },
        { at: fault.at + fault.forMs, text: 'the collector answers again' },
      ];
  }
}

const OWNERS = { session: 'the session', fork: 'its forks', index: 'the index of all sessions' } as const;

/** `the write 3 of the session that names events` */
function statementText({ in: where, does, names, statement }: Extract<Fault, { type: 'statement' }>): string {
  return `the ${does} ${statement} of ${OWNERS[where]}${names === null ? '' : ` that names ${names}`}`;
}

export function decisionText({ afterMs, approved, times }: DecisionScript): string {
  if (times === 0) return 'no decision';
  const what = approved ? 'approved' : 'denied';
  return `${what} ${afterMs} ms after it was seen${times === 1 ? '' : `, ${times} times`}`;
}

export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function kept(keeps: number): string {
  if (keeps === 0) return 'all unsynced writes are lost';
  return keeps === 1 ? 'no unsynced write is lost' : `the last ${100 - keeps * 100} % of the unsynced writes are lost`;
}
