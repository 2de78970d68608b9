/** Runs `cortex fluency` in this process, against scripted models over HTTP. */
import { dispatch } from '../../../cli/dispatch.ts';
import { startModel } from './endpoint.ts';
import type { EndpointOptions } from './endpoint.ts';
import { dataset } from './kit.ts';
import type { Model } from './models.ts';

interface Said {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export async function cortex(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Said> {
  const said = { out: '', err: '' };
  const code = await dispatch(['fluency', ...args], environment, {
    out: (text) => void (said.out += text),
    err: (text) => void (said.err += text),
  });
  return { code, ...said };
}

export async function against(
  model: Model,
  args: readonly string[] = [],
  options: EndpointOptions & { readonly environment?: Readonly<Record<string, string>> } = {},
): Promise<Said & { readonly keys: readonly unknown[]; readonly calls: number }> {
  const { environment = {}, ...endpoint } = options;
  await using server = await startModel(dataset, model, endpoint);
  const said = await cortex(['--base-url', server.baseUrl, '--model', 'scripted', ...args], environment);
  return { ...said, keys: server.requests.map(({ headers }) => headers.authorization), calls: server.requests.length };
}
