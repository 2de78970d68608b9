/**
 * The events of a run as frames for the Worker, which speaks the Model Context Protocol (E4): reports of progress if the
 * client wants them, then how the run is.
 *
 * The progress of a tool is what its code says, in percent. That of an agent and of a workflow is the number of steps that
 * began or ended.
 */
import type { EventOf, SessionEvent } from '../../domain/event.ts';
import type { RunStatus } from '../../domain/session.ts';
import { OUTPUTS } from '../../domain/workflow-actions.ts';
import { LOST } from '../surface.ts';
import type { DocumentFold, Fold, FoldedRun, StreamEnd, SurfaceDocument } from '../surface.ts';
import type { McpFrame, McpProgress } from './outcome.ts';
import { McpRunState } from './run-state.ts';

const encode = (frame: McpFrame): string => `data: ${JSON.stringify(frame)}\n\n`;

export class McpFold implements Fold {
  readonly #state: McpRunState;
  readonly #run: FoldedRun;
  #steps = 0;
  #percent = -1;

  constructor(run: FoldedRun) {
    this.#state = new McpRunState(run);
    this.#run = run;
  }

  add(event: SessionEvent): string {
    this.#state.add(event);
    const progress = this.#progressOf(event);
    const isNew = event.seq === null || event.seq > this.#run.after;
    return progress !== null && isNew && this.#run.options['progress'] === true ? encode({ progress }) : '';
  }

  end(how: StreamEnd): string {
    return encode({ end: this.#state.outcome(LOST[how]) });
  }

  detached(): string {
    return encode({ task: this.#state.outcome() });
  }

  #progressOf(event: SessionEvent): McpProgress | null {
    switch (event.type) {
      case 'progress': {
        const { percent, text = '' } = event.data;
        if (!this.#state.isTool || percent === undefined || percent <= this.#percent) return null;
        this.#percent = percent;
        return { progress: percent, total: 100, message: text };
      }
      case 'iteration_started':
        return this.#step(`iteration ${event.data.iteration}`);
      case 'action_started':
        return event.data.attempt === 1 ? this.#step(`${nameOf(event)} started`) : null;
      case 'action_completed':
      case 'action_failed':
        return this.#step(`${nameOf(event)} ${event.type.replace('action_', '')}`);
      default:
        return null;
    }
  }

  #step(message: string): McpProgress | null {
    if (this.#state.isTool) return null;
    this.#steps += 1;
    return { progress: this.#steps, message };
  }
}

/** The tool, or the id of an action that has no name. */
function nameOf({
  action_name: name,
  action_id: id,
}: EventOf<'action_started' | 'action_completed' | 'action_failed'>): string {
  return name ?? (id === OUTPUTS ? 'outputs' : id);
}

/** The run as it is now, for a task that is polled. */
export class McpDocument implements DocumentFold {
  readonly #state: McpRunState;

  constructor(run: FoldedRun) {
    this.#state = new McpRunState(run);
  }

  add(event: SessionEvent): void {
    this.#state.add(event);
  }

  end(status: RunStatus): SurfaceDocument {
    return { status: 200, body: { ...this.#state.outcomeAt(status) } as never };
  }
}

/** The events that the document of a run with this status needs: a run that goes on is polled, and may have large outputs. */
export function eventsAt(status: RunStatus): typeof McpRunState.EVENTS {
  if (status === 'queued' || status === 'running') return [];
  return status === 'waiting' ? McpRunState.WAITING_EVENTS : McpRunState.EVENTS;
}

export const LOST_FRAME = 'data: {"lost":true}\n\n';
