import { describe, expect, it } from 'vitest';
import { loadManifests } from '../../src/catalog/load.ts';
import type { ManifestFile } from '../../src/domain/catalog.ts';
import { bundleOf, withEarlier, writtenNames } from '../../cli/project/bundle.ts';
import type { Bundle } from '../../cli/project/bundle.ts';

const tool = (name: string, code = 'echo'): string => `kind: Tool
version: "1.0"
name: ${name}
summary: Tool ${name}.
implementation: { type: builtin, entrypoint: ${code} }
`;

const before = bundleOf(loadManifests([file('a', tool('a')), file('b', tool('b')), file('c', tool('c'))]));

/** The names of the tools that are active after a load with errors. */
function toolsAfter(...files: readonly ManifestFile[]): Bundle & { readonly names: readonly string[] } {
  const loaded = loadManifests(files);
  expect(loaded.problems).not.toEqual([]);
  const bundle = withEarlier(bundleOf(loaded), before, writtenNames(loaded));
  return { ...bundle, names: bundle.data.tools.map(({ name }) => name).sort() };
}

describe('the bundle of npm start', () => {
  it('[M1] keeps the earlier version of a manifest with errors, and drops deleted manifests', () => {
    const { names, sources } = toolsAfter(file('a', tool('a')), file('b', tool('b', 'no_such_builtin')));
    expect(names).toEqual(['a', 'b']);
    expect(sources['tool/b']).toBe(before.sources['tool/b']);
    expect(Object.keys(sources).sort()).toEqual(['tool/a', 'tool/b']);
  });

  it('[M1] keeps the earlier version of a manifest that cannot be parsed', () => {
    const { names } = toolsAfter(file('a', tool('a')), file('b', `${tool('b')}broken: [`));
    expect(names).toEqual(['a', 'b']);
  });
});

function file(name: string, text: string): ManifestFile {
  return { path: `manifests/${name}.yaml`, text };
}
