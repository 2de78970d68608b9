/** A status as a word, with a colour and a shape: the colour alone never carries the meaning. */

const SHAPES: Readonly<Record<string, string>> = {
  queued: '○',
  running: '◐',
  waiting: '◔',
  completed: '●',
  failed: '✕',
  rejected: '✕',
  cancelled: '⊘',
  skipped: '⊘',
  idle: '○',
  healthy: '●',
  available: '●',
  starting: '◐',
  degraded: '✕',
  unreachable: '✕',
  unavailable: '✕',
  draining: '◔',
};

export function Status({ status }: { readonly status: string }) {
  return (
    <span class={`status status-${status}`}>
      <span aria-hidden="true">{SHAPES[status] ?? '○'}</span> {status}
    </span>
  );
}
