/** Runs `cortex` in this process. */
import { dispatch } from '../../cli/dispatch.ts';

export interface Dispatched {
  readonly out: string;
  readonly err: string;
  readonly code: number;
}

export async function dispatched(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>> = {},
): Promise<Dispatched> {
  const said = { out: '', err: '' };
  const code = await dispatch(args, environment, {
    out: (text) => void (said.out += text),
    err: (text) => void (said.err += text),
  });
  return { ...said, code };
}
