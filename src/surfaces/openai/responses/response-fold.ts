/** A response as a stream of frames, and as one document (E2). */
import type { SessionEvent } from '../../../domain/event.ts';
import type { RunStatus } from '../../../domain/session.ts';
import type { DocumentFold, Fold, FoldedRun, StreamEnd, SurfaceDocument } from '../../surface.ts';
import { DONE, lostFrame } from '../error.ts';
import { ResponseState } from './response-state.ts';
import type { Frame } from './response-state.ts';

const frameText = (frame: Frame): string => `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`;

export class ResponseFold implements Fold {
  readonly #state: ResponseState;
  /** The client has the frames up to this number. */
  readonly #startingAfter: number;
  #last = 0;

  constructor(run: FoldedRun) {
    this.#state = new ResponseState(run, true);
    this.#startingAfter = Number(run.options['startingAfter'] ?? 0);
  }

  add(event: SessionEvent): string {
    const wasOver = this.#state.isOver;
    const frames = this.#state.add(event);
    this.#last = frames.at(-1)?.sequence_number ?? this.#last;
    const text = frames.filter(({ sequence_number: number }) => number > this.#startingAfter).map(frameText);
    // Nothing more follows, although the run may continue.
    return text.join('') + (this.#state.isOver && !wasOver ? DONE : '');
  }

  end(how: StreamEnd): string {
    return this.#state.isOver ? '' : lostFrame(how, this.#last) + DONE;
  }
}

export class ResponseDocument implements DocumentFold {
  readonly #state: ResponseState;

  constructor(run: FoldedRun) {
    this.#state = new ResponseState(run, false);
  }

  add(event: SessionEvent): void {
    this.#state.add(event);
  }

  /** A failed response is no failure of the request: clients would repeat it, and a second run would begin. */
  end(status: RunStatus): SurfaceDocument {
    return { status: 200, body: this.#state.response(status) };
  }
}
