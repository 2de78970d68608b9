/** Prints the events of a run: texts while they grow, and a line for each action. */
import pc from 'picocolors';
import type { SessionEvent, TextPatch } from '../../src/domain/event.ts';
import { harmless, visible } from '../terminal/visible.ts';

/** The block type of a closing event. */
export const CLOSES: Readonly<Partial<Record<SessionEvent['type'], TextPatch['type']>>> = {
  thought_completed: 'thought',
  text_completed: 'text',
  response_completed: 'response',
};

/** Prints blocks while they grow: writes only the part of a patch that is new. */
export class Screen {
  /** The block at the end of the output. */
  #segment = -1;
  /** Length of the printed text of each block. */
  readonly #printed = new Map<number, number>();

  show(event: SessionEvent): void {
    if (event.type === 'thought' || event.type === 'response' || event.type === 'text') {
      return this.#print(event.type, event.data);
    }
    const closed = CLOSES[event.type];
    // A block that was read from the journal has no patches: its text is in the closing event.
    if (closed !== undefined && 'segment' in event.data && 'content' in event.data) {
      return this.#print(closed, { segment: event.data.segment, offset: 0, delta: event.data.content });
    }
    const line = this.#line(event);
    if (line === null) return;
    this.#newLine();
    console.log(line);
  }

  end(): void {
    this.#newLine();
  }

  #print(type: TextPatch['type'], { segment, offset, delta }: TextPatch['data']): void {
    const printed = this.#printed.get(segment) ?? 0;
    const fresh = delta.slice(Math.max(0, printed - offset));
    if (fresh === '') return;
    if (segment !== this.#segment) this.#newLine();
    this.#segment = segment;
    this.#printed.set(segment, printed + fresh.length);
    process.stdout.write(type === 'thought' ? pc.dim(harmless(fresh)) : harmless(fresh));
  }

  #newLine(): void {
    if (this.#segment !== -1) process.stdout.write('\n');
    this.#segment = -1;
  }

  #line(event: SessionEvent): string | null {
    const { action_id: id, action_name: name } = event;
    const label = visible(name === undefined || name === id ? String(id) : `${id} (${name})`);
    switch (event.type) {
      case 'action_started':
        return pc.yellow(`  ▶ ${label}`);
      case 'action_completed':
        return `${pc.green(`  ✓ ${label}`)} ${pc.dim(`${event.data.ms} ms`)}`;
      case 'action_failed':
        return pc.red(`  ✗ ${label}: ${told(event.data.error)}`);
      case 'action_rejected':
        return pc.red(`  ✗ ${label}: ${told(event.data)}`);
      case 'action_skipped':
      case 'action_cancelled':
        return pc.dim(`  – ${label}: ${event.type.slice(7)} (${visible(event.data.reason)})`);
      case 'agent_failed':
        return pc.red(`The run failed: ${told(event.data.error)}`);
      default:
        return null;
    }
  }
}

function told({ code, message }: { readonly code: string; readonly message: string }): string {
  return visible(`${code}: ${message}`);
}

/** Unwraps `progress` events to the innermost event, of a sub-agent or workflow. */
export function innermost(event: SessionEvent): SessionEvent {
  const inner = event.type === 'progress' ? (event.data.event as SessionEvent | undefined) : undefined;
  return inner === undefined ? event : innermost(inner);
}
