/** The actions of a generation: name and status of each, and a way to it in the run view. */
import type { Action, Message } from '../../src/client/index.ts';
import { href } from '../app/router.ts';
import { cut } from '../parts/format.ts';
import { showInvisible } from '../parts/safe-text.ts';
import { Status } from '../parts/status.tsx';

const NAME_CHARS = 40;

interface ChipsProps {
  readonly actions: readonly Action[];
  readonly approvals: Message['approvals'];
  readonly calls: Message['calls'];
  /** Of the run. */
  readonly place: readonly string[];
}

export function Chips({ actions, approvals, calls, place }: ChipsProps) {
  return (
    <ul class="row chips" aria-label="Actions">
      {actions.map(({ id, iteration, name, type, status }) => {
        const isAsked =
          approvals.some(({ action_id: asked }) => asked === id) || calls.some(({ name: called }) => called === name);
        const isOver = status !== 'queued' && status !== 'running';
        const shown = name === null || name === type ? nameOf(id, type) : name;
        return (
          <li key={`${iteration} ${id} ${status === 'rejected'}`}>
            <a class="button" href={href(place, { action: `${iteration}.${id}` })}>
              <bdi>{showInvisible(cut(shown, NAME_CHARS))}</bdi>
              <Status status={isAsked && !isOver ? 'waiting' : status} />
            </a>
          </li>
        );
      })}
    </ul>
  );
}

/** Code has no name of its own: `python_1`, `python fib`. */
function nameOf(id: string, type: string | null): string {
  return type === null || id.startsWith(type) ? id : `${type} ${id}`;
}
