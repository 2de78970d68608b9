import { expect, test } from 'vitest';
import { unstable_readConfig as readConfig } from 'wrangler';

const own = readConfig({ config: 'wrangler.toml' }, { hideWarnings: true });
const withModels = readConfig({ config: 'wrangler.toml', env: 'workers-ai' }, { hideWarnings: true });

test('[L1] the environment with the Workers AI binding has all Durable Objects of the default environment', () => {
  expect(withModels.ai).toEqual({ binding: 'AI' });
  const bindings = (config: typeof own): unknown[] =>
    config.durable_objects.bindings
      .map(({ name, class_name: of }: { name: string; class_name: string }) => `${name}: ${of}`)
      .toSorted();
  expect(bindings(withModels)).toEqual(bindings(own));
  expect(withModels.migrations).toEqual(own.migrations);
  expect(own.ai).toBeUndefined();
});
