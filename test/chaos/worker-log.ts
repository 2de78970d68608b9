/** The Worker's log: internal errors are reported, everything else that the histories cause is not printed. */
import { LogLines } from '../../cli/system/log-lines.ts';

export interface InternalError {
  readonly session: string | null;
  /** The message and the first frames of its stack. */
  readonly message: string;
}

const MOST_FRAMES = 6;

export class WorkerLog extends LogLines {
  readonly #onError: (error: InternalError) => void;

  constructor(onError: (error: InternalError) => void) {
    super();
    this.#onError = onError;
  }

  override read(line: string): string | null | undefined {
    const shown = super.read(line);
    if (shown === undefined || shown === null) return shown;
    const from = line.indexOf('{"level":"');
    const entry = JSON.parse(line.slice(from, line.lastIndexOf('}') + 1)) as Readonly<Record<string, unknown>>;
    if (entry['event'] === 'internal_error') {
      const { session_id: id, path, message, stack } = entry;
      const where = typeof path === 'string' ? `${String(entry['method'])} ${path}: ` : '';
      const frames = typeof stack === 'string' ? stack.split('\n').slice(1, 1 + MOST_FRAMES) : [];
      this.#onError({
        session: typeof id === 'string' ? id : (/ses_\w+/.exec(where)?.[0] ?? null),
        message: [`${where}${String(message)}`, ...frames.map((frame) => frame.trim())].join('; '),
      });
    }
    return null;
  }
}
