/** The files of a script: named by the manifest, or imported by a Python script. */
import { describe, expect, test } from 'vitest';
import { loadManifests } from '../../../src/catalog/load.ts';
import type { ManifestFile } from '../../../src/domain/catalog.ts';
import type { ToolDefinition } from '../../../src/domain/manifests/tool.ts';

const HEAD = 'kind: Tool\nname: pulse\nversion: "1"\nsummary: Measures a pulse\n';
const SCRIPT = { path: 'm/pulse/run.py', text: 'print(1)\n' };

function load(body: string, files: readonly ManifestFile[] = [SCRIPT], head = HEAD) {
  const { catalog, problems, warnings } = loadManifests([
    { path: 'm/pulse/tool.yml', text: `${head}${body}` },
    ...files,
  ]);
  const tool = catalog.tool('pulse');
  return {
    tool,
    script: tool?.implementation.type === 'script' ? tool.implementation : null,
    problems: problems.map(({ line, field, message }) => `${line} ${field}: ${message}`),
    warnings: warnings.map(({ line, field, message }) => `${line} ${field}: ${message}`),
  };
}

describe('[M3] the modules that a Python script imports', () => {
  const files = {
    'm/pulse/src/main.py': 'import json\nfrom rates.zones import zone\nimport names as n, text.clean\n',
    'm/pulse/src/rates/__init__.py': 'from . import limits\n',
    'm/pulse/src/rates/zones.py': 'from .limits import TOP\nfrom ..names import first\n',
    'm/pulse/src/rates/limits.py': 'TOP = 200\n',
    'm/pulse/src/names.py': '',
    'm/pulse/src/text/clean.py': '',
    'm/pulse/src/unused.py': '',
    'm/other/json.py': '',
  };
  const given = Object.entries(files).map(([path, text]) => ({ path, text }));
  const body = 'implementation: { type: script, entrypoint: ./src/main.py }\n';

  test('are found beside it, also those of modules', () => {
    const { script, problems } = load(body, given);
    expect(problems).toEqual([]);
    expect(script?.launch?.path).toBe('src/main.py');
    expect(Object.keys(script?.launch?.files ?? {}).sort()).toEqual([
      'src/names.py',
      'src/rates/__init__.py',
      'src/rates/limits.py',
      'src/rates/zones.py',
      'src/text/clean.py',
    ]);
  });

  test('are read again when one appears or changes', () => {
    const manifest = { path: 'm/pulse/tool.yml', text: `${HEAD}${body}` };
    const before = loadManifests([manifest, ...given.filter(({ path }) => !path.endsWith('names.py'))]);
    const after = loadManifests([manifest, ...given], { read: before.read });
    const filesOf = (tool: ToolDefinition | null): object =>
      (tool?.implementation.type === 'script' ? tool.implementation.launch?.files : null) ?? {};
    expect(filesOf(before.catalog.tool('pulse'))).not.toHaveProperty(['src/names.py']);
    expect(filesOf(after.catalog.tool('pulse'))).toHaveProperty(['src/names.py']);
  });

  test('may be named instead, also outside the folder', () => {
    const shared = { path: 'm/shared/words.txt', text: 'one\n' };
    const { script } = load('implementation: { type: script, entrypoint: run.py, files: [../shared/words.txt] }\n', [
      SCRIPT,
      shared,
    ]);
    expect(script?.launch).toMatchObject({ path: 'folder/run.py', files: { 'shared/words.txt': 'one\n' } });
  });

  test('that are named but missing are an error', () => {
    expect(load('implementation: { type: script, entrypoint: run.py, files: [no.txt] }\n').problems).toEqual([
      '5 implementation.files[0]: names the file "no.txt", but there is no m/pulse/no.txt',
    ]);
  });
});
