/** Events as lines for people. */
import pc from 'picocolors';
import type { SessionEvent } from '../../src/domain/event.ts';
import { innermost } from '../chat/screen.ts';
import { actionLabel } from './action-label.ts';
import { harmless, visible } from './visible.ts';

/** Characters of a text in one line. */
const TEXT_CHARS = 2_000;

/** One journaled event; null for a live one, whose text a journaled one repeats. */
export function eventLine(event: SessionEvent): string | null {
  if (event.seq === null) return null;
  const time = new Date(event.timestamp).toISOString().slice(11, 23);
  const shown = innermost(event);
  const action = shown.action_id === undefined ? '' : ` ${visible(actionLabel(shown.action_id, shown.action_name))}`;
  const detail = detailOf(shown);
  const from = shown === event ? '' : ` ${pc.dim('in a sub-agent')}`;
  return `${pc.dim(`${String(event.seq).padStart(5)} ${time}`)} ${colored(shown.type)}${action}${from}${detail === '' ? '' : `  ${detail}`}`;
}

function colored(type: SessionEvent['type']): string {
  if (/_(failed|rejected)$/.test(type)) return pc.red(type);
  if (/^(approval_requested|client_tool_called|agent_waiting|warning)$/.test(type)) return pc.yellow(type);
  return /^(agent|action)_completed$/.test(type) ? pc.green(type) : type;
}

function detailOf({ type, data }: SessionEvent): string {
  switch (type) {
    case 'thought_completed':
    case 'text_completed':
    case 'response_completed':
      return harmless(cut(data.content)).replaceAll('\n', `\n${' '.repeat(20)}`);
    case 'agent_failed':
    case 'action_failed':
      return visible(`${data.error.code}: ${data.error.message}`);
    case 'action_rejected':
    case 'warning':
      return visible(`${data.code}: ${data.message}`);
    case 'action_completed':
      return pc.dim(`${data.ms} ms`);
    case 'approval_requested':
      if (data.question === undefined) return visible(data.approval_id);
      return visible(`${data.approval_id}  ${data.question.from} asks: ${cut(data.question.message)}`);
    case 'client_tool_called':
      return visible(`${data.name} ${data.call_id}`);
    default:
      return '';
  }
}

function cut(text: string): string {
  return text.length <= TEXT_CHARS ? text : `${text.slice(0, TEXT_CHARS)} … (${text.length} characters)`;
}
