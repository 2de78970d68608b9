/** The address of a model endpoint on a command line. */
import { UsageError } from '../command.ts';
import { visible } from './visible.ts';

/**
 * @param option what the user wrote it in, for the error: `--base-url`, `LLM_BASE_URL`
 * @throws UsageError for what is not an HTTP(S) URL, and for a URL with a user or a password, which is not quoted
 */
export function endpointUrl(option: string, text: string): URL {
  // Text with an @ could hold a password even if it is not a URL, so it is not repeated.
  const shown = text.includes('@') ? 'the value' : `"${visible(text.slice(0, 100))}"`;
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === '') {
    throw new UsageError(`${option}: ${shown} is not an HTTP(S) URL`);
  }
  if (url.username === '' && url.password === '') return url;
  throw new UsageError(
    `${option} must not contain a user or a password: name the variable that holds the key, such as LLM_API_KEY`,
  );
}
