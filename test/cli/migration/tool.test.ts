import { describe, expect, test } from 'vitest';
import { migrated } from '../../support/migrated.ts';
import type { ManifestFile } from '../../../src/domain/catalog.ts';
import { buildSystemPrompt } from '../../../src/protocol/prompt/prompt.ts';

const HEAD = 'kind: Tool\nname: pulse\nversion: "1"\nsummary: Measures a pulse\n';
const SCRIPT = { path: 'm/pulse/run.py', text: 'print(1)\n' };
const IN_PYTHON = 'implementation: { type: script, runtime: python3, entrypoint: ./run.py }\n';

function load(body: string, files: readonly ManifestFile[] = [SCRIPT], head = HEAD) {
  const { catalog, problems, warnings } = migrated([{ path: 'm/pulse/tool.yml', text: `${head}${body}` }, ...files]);
  const tool = catalog.tool('pulse');
  return {
    tool,
    script: tool?.implementation.type === 'script' ? tool.implementation : null,
    problems: problems.map(({ line, field, message }) => `${line} ${field}: ${message}`),
    warnings: warnings.map(({ line, field, message }) => `${line} ${field}: ${message}`),
  };
}

describe('[M1] the program of a tool of the original system', () => {
  test('is written at the top level, and gets a file with its input', () => {
    const { script, problems, warnings } = load('runtime: python3\nentrypoint: run.py\n');
    expect(problems).toEqual([]);
    expect(script).toMatchObject({ runtime: 'python3', source: SCRIPT.text, launch: { argument: 'file' } });
    expect(warnings).toEqual(['5 runtime: understood as implementation: {runtime, entrypoint}']);
  });

  test('keeps JSON as its first argument if it has a type and a list of parameters', () => {
    expect(load(IN_PYTHON).script).not.toHaveProperty('launch');
  });

  test.each([
    ['import json, sys\nprint(json.loads(sys.argv[1]))\n', 'runtime: python3\nentrypoint: run.py\n', 'json'],
    ['import json, sys\nwith open(sys.argv[1]) as f:\n  print(f.read())\n', IN_PYTHON, 'file'],
    ['import sys\nprint(sys.argv)\n', 'runtime: python3\nentrypoint: run.py\ninput_type: json\n', 'file'],
  ])('gets the argument that the script reads: %j', (text, body, argument) => {
    const { script } = load(body, [{ ...SCRIPT, text }]);
    expect(script?.launch?.argument ?? 'json').toBe(argument);
  });

  test.each([
    ['import json, sys\nprint(json.loads(sys.argv[1]))\n', 'file'],
    ['import json, sys\nwith open(sys.argv[1]) as f:\n  print(f.read())\n', 'json'],
  ])('gets the argument that the manifest names, whatever the script contains: %j', (text, argument) => {
    const own = `implementation: { type: script, runtime: python3, entrypoint: run.py, argument: ${argument} }\n`;
    const byName = `runtime: python3\nimplementation: { entrypoint: run.py, argument: ${argument} }\n`;
    for (const body of [own, byName]) {
      const { script, problems } = load(body, [{ ...SCRIPT, text }]);
      expect(problems).toEqual([]);
      expect(script?.launch?.argument ?? 'json').toBe(argument);
    }
  });

  test('may get one parameter as text', () => {
    const { script, warnings, problems } = load(
      'implementation:\n  runtime: python3\n  entrypoint: run.py\n  input_type: text\n  text_param: city\n',
    );
    expect(problems).toEqual([]);
    expect(script?.launch?.argument).toEqual({ parameter: 'city' });
    expect(warnings).toEqual([
      '8 implementation.input_type: text, understood as implementation.argument: {parameter: city}',
    ]);
  });

  test.each([
    ['timeout_secs: 7\n', 7_000],
    ['timeout_sec: 7\n', 7_000],
    ['implementation: { type: script, entrypoint: run.py, timeout: 9 }\n', 9_000],
    ['timeout: 5\nimplementation: { type: script, entrypoint: run.py, timeout: 9 }\n', 5_000],
  ])('has a timeout: %j', (body, ms) => {
    expect(load(body.includes('implementation') ? body : `${IN_PYTHON}${body}`).tool?.timeoutMs).toBe(ms);
  });

  test('is written for bash if the manifest or its first line says so', () => {
    const bash = { path: 'm/pulse/run.sh', text: '#!/usr/bin/env bash\necho "${x[0]}"\n' };
    const plain = { path: 'm/pulse/run.sh', text: 'echo 1\n' };
    const inShell = 'implementation: { type: script, entrypoint: run.sh, runtime: RUNTIME }\n';
    expect(load(inShell.replace('RUNTIME', 'shell'), [bash]).script?.launch?.bash).toBe(true);
    expect(load(inShell.replace('RUNTIME', 'bash'), [plain]).script?.launch?.bash).toBe(true);
    expect(load(inShell.replace('RUNTIME', 'shell'), [plain]).script).not.toHaveProperty('launch');
  });

  test('has environment variables; other parts of the environment are named in a warning', () => {
    const { script, warnings } = load(
      `${IN_PYTHON}environment:\n  variables: { LEVEL: 3, ON: true }\n  env_file: [.env]\n`,
    );
    expect(script?.launch?.environment).toEqual({ LEVEL: '3', ON: 'true' });
    expect(warnings).toEqual([
      expect.stringMatching(/^6 environment: ignored: env_file; /),
      '7 environment.variables: understood as implementation.environment',
    ]);
  });

  test('is neither built nor checked; one warning for each block says so', () => {
    const { tool, warnings } = load(
      'implementation:\n  type: script\n  entrypoint: run.py\n  build: { engine: pip, requirements_file: req.txt }\n  health_check: { command: x }\ndependencies: [other]\n',
    );
    expect(tool).not.toBeNull();
    expect(warnings).toEqual([
      expect.stringMatching(
        /^8 implementation\.build: ignored: scripts are not built, so the packages of req\.txt are not/,
      ),
      '9 implementation.health_check: ignored: a tool starts anew for each call',
      '10 dependencies: ignored: nothing is installed or imported for a tool',
    ]);
  });

  test.each(['implementation: { runtime: process, entrypoint: ./build/pulse }\n', 'runtime: cpp\nentrypoint: pulse\n'])(
    'that is compiled gives an error, and a warning that says what to do: %j',
    (body) => {
      const { tool, problems, warnings } = load(body);
      expect(tool).toBeNull();
      expect(problems).toEqual([expect.stringMatching(/runtime: "(process|cpp)" is not allowed/)]);
      expect(warnings.join()).toMatch(
        /a compiled program runs only from an image: use implementation: \{type: container/,
      );
    },
  );

  test('that is compiled by a command is a script that builds and starts it, with the files beside the manifest', () => {
    const body =
      'implementation: { runtime: process, entrypoint: pulse, build: { command: make pulse, cwd: "it\'s" } }\n';
    const { tool, problems, warnings } = load(body, [
      { path: "m/pulse/it's/main.c", text: 'int main;' },
      { path: 'm/pulse/Makefile', text: 'pulse:' },
    ]);
    expect(problems).toEqual([]);
    expect(warnings.join()).toMatch(/understood as a script that builds and starts the program at each call/);
    const implementation = tool?.implementation;
    if (implementation?.type !== 'script') throw new Error('no script');
    expect(implementation).toMatchObject({ runtime: 'shell', launch: { argument: 'file', path: 'tool.sh' } });
    expect(implementation.launch?.files).toMatchObject({ Makefile: 'pulse:', "it's/main.c": 'int main;' });
    expect(implementation.source).toBe(
      `cd "\${0%/*}" || exit 1\n( cd 'it'\\''s' && make pulse\n) >&2 || exit 1\nexec './pulse' "$@"\n`,
    );
  });

  test('at a URL is an http tool', () => {
    const { tool, problems } = load('implementation: { type: api, entrypoint: "https://example.org/pulse" }\n');
    expect(problems).toEqual([]);
    expect(tool?.implementation).toMatchObject({ type: 'http', method: 'POST', url: 'https://example.org/pulse' });
  });
});

describe('[M1] what the model reads about a tool of the original system', () => {
  test.each([
    ['returns: The pulse\n', { description: 'The pulse' }],
    [
      'returns:\n  - { name: rate, type: integer }\n  - zone\n',
      { type: 'object', properties: { rate: { type: 'integer' }, zone: {} } },
    ],
    ['output_schema: { type: object }\n', { type: 'object' }],
  ])('%j is its result', (body, returns) => {
    expect(load(`${IN_PYTHON}${body}`).tool?.returns).toEqual(returns);
  });

  test.each([
    ['[{ description: d, input: { a: 1 }, output: { b: 2 } }]', [{ a: 1 }]],
    ['[{ description: d, params: { a: 1 } }, { name: n, parameters: { a: 2 } }]', [{ a: 1 }, { a: 2 }]],
    ['[{ description: nothing to send, output: { b: 2 } }]', []],
    ['[{ input: { a: 1 }, expected_output: 4 }, { a: 3 }]', [{ a: 1 }, { a: 3 }]],
  ])('examples %s are the parameters %j', (written, examples) => {
    const { tool, warnings, problems } = load(`${IN_PYTHON}parameters: { a: integer }\nexamples: ${written}\n`);
    expect(problems).toEqual([]);
    expect(tool?.examples).toEqual(examples);
    expect(warnings).toEqual(['7 examples: understood as examples of the parameters alone']);
  });

  test.each([
    ['{ input: object }', '[{ input: { a: 1 } }]'],
    ['[{ name: params, type: object }]', '[{ params: { a: 1 } }]'],
    ['{ type: object, properties: { input: {}, output: {} } }', '[{ input: { a: 1 }, output: 2 }]'],
    ['{ a: integer }', '[{ a: 1 }, {}]'],
  ])('with parameters %s, examples %s stay as they are', (parameters, written) => {
    const { tool, warnings } = load(`${IN_PYTHON}parameters: ${parameters}\nexamples: ${written}\n`);
    expect(warnings).toEqual([]);
    expect(tool?.examples).toEqual(JSON.parse(written.replaceAll(/(\w+):/g, '"$1":')));
  });

  test('rules of a parameter are JSON Schema', () => {
    const { tool, warnings } = load(
      `${IN_PYTHON}parameters:\n  - { name: rate, type: integer, validation: { min: 20, max: 250 } }\n  - { name: who, type: string, validation: { min_length: 1, pattern: "^[a-z]+$" } }\n`,
    );
    expect(tool?.parameters['properties']).toEqual({
      rate: { type: 'integer', minimum: 20, maximum: 250 },
      who: { type: 'string', minLength: 1, pattern: '^[a-z]+$' },
    });
    expect(warnings).toEqual([
      '7 parameters[0].validation: understood as JSON Schema: minimum, maximum, minLength, maxLength, pattern',
    ]);
  });

  test('its description has its summary', () => {
    const { tool, warnings } = load(
      `${IN_PYTHON}description: |\n  Measures the\n  pulse. Takes a minute.\n`,
      [SCRIPT],
      'kind: Tool\nname: pulse\nversion: "1"\n',
    );
    expect(tool?.summary).toBe('Measures the pulse.');
    expect(warnings).toEqual(['5 description: its first sentence is understood as summary']);
  });
});

test('[L4] the prompt shows the parameters of an example as the call', () => {
  const agent = 'kind: Agent\nname: nurse\nversion: "1"\nsummary: s\npersona: p\nimport: { tools: [pulse] }\n';
  const { catalog } = migrated([
    SCRIPT,
    { path: 'm/nurse.yml', text: agent },
    {
      path: 'm/pulse/tool.yml',
      text: `${HEAD}${IN_PYTHON}parameters: [{ name: who, type: string }]\nexamples: [{ description: Of Ann, input: { who: Ann } }]\n`,
    },
  ]);
  const found = catalog.agent('nurse');
  const prompt = found === null ? '' : buildSystemPrompt(found);
  expect(prompt).toContain('{"who":"Ann"}');
  expect(prompt).not.toContain('Of Ann');
});
