/** Parses the operator's list of runners in `RUNNER_URLS` and `RUNNER_SECRET` (H8, R7). */
import { EngineError } from '../../domain/errors.ts';

export interface RunnerAddress {
  /** Without a trailing slash. */
  readonly url: string;
  readonly labels: readonly string[];
}

/** Key that signs requests; `id` identifies it if the runner has several keys. */
export interface SigningKey {
  readonly id: string | null;
  readonly secret: string;
}

const LABEL = /^[A-Za-z0-9][\w.-]{0,63}$/;
/** `id=secret`; a plain secret may end with the `=` of base64. */
const NAMED_KEY = /^([A-Za-z0-9][\w.-]{0,31})=(.{32,})$/;

/**
 * Parses `https://a.example#gpu,docker, https://b.example`: URLs, each with its labels after `#`.
 *
 * @throws EngineError `internal` for an invalid URL or label
 */
export function parseRunnerUrls(text: string | undefined): RunnerAddress[] {
  const runners: { readonly url: string; readonly labels: string[] }[] = [];
  for (const piece of (text ?? '').split(/[\s,]+/).filter(Boolean)) {
    const [url = '', ...fragments] = piece.split('#');
    const isUrl = /^https?:\/\//i.test(url) && URL.canParse(url);
    const last = runners.at(-1);
    if (!isUrl && (fragments.length > 0 || last === undefined)) {
      throw new EngineError('internal', `RUNNER_URLS: "${piece}" is not an HTTP(S) URL`);
    }
    const labels = isUrl ? fragments.filter(Boolean) : [piece];
    const wrong = labels.find((label) => !LABEL.test(label));
    if (wrong !== undefined) {
      throw new EngineError(
        'internal',
        `RUNNER_URLS: "${wrong}" is not a valid label (allowed: letters, digits and _.-)`,
      );
    }
    if (isUrl) runners.push({ url: url.replace(/\/+$/, ''), labels });
    else last?.labels.push(...labels);
  }
  return runners;
}

/**
 * Parses `RUNNER_SECRET`: a secret, or a list of `id=secret`. The first one signs; the others are for runners that do
 * not know it yet.
 */
export function parseSigningKeys(text: string | undefined): SigningKey[] {
  if (text === undefined || text === '') return [];
  const pieces = text.split(/[\s,]+/).filter(Boolean);
  if (!NAMED_KEY.test(pieces[0] ?? '')) return [{ id: null, secret: text }];
  return pieces.map((piece) => {
    const [, id = null, secret = piece] = NAMED_KEY.exec(piece) ?? [];
    return { id, secret };
  });
}
