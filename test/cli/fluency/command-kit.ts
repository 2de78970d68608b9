/** Runs `cortex fluency` in this process, against scripted models over HTTP. */
import { dispatched } from '../dispatched.ts';
import type { Dispatched } from '../dispatched.ts';
import { startModel } from './endpoint.ts';
import type { EndpointOptions } from './endpoint.ts';
import { dataset } from './kit.ts';
import type { Model } from './models.ts';

export async function cortex(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Dispatched> {
  return await dispatched(['fluency', ...args], environment);
}

export async function against(
  model: Model,
  args: readonly string[] = [],
  options: EndpointOptions & { readonly environment?: Readonly<Record<string, string>> } = {},
): Promise<Dispatched & { readonly keys: readonly unknown[]; readonly calls: number }> {
  const { environment = {}, ...endpoint } = options;
  await using server = await startModel(dataset, model, endpoint);
  const said = await cortex(['--base-url', server.baseUrl, '--model', 'scripted', ...args], environment);
  return { ...said, keys: server.requests.map(({ headers }) => headers.authorization), calls: server.requests.length };
}
