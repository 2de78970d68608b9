/** Names that can become variables, and the ways in which a program gets its values (P14, R3). */
import { describe, expect, test } from 'vitest';

import { isVariable, programOf } from '../../jobs/job-data.ts';
import { parseJob } from '../../jobs/job.ts';
import { limits } from '../../limits.ts';

function launch(body: Record<string, unknown>): ReturnType<typeof programOf>['launch'] {
  return programOf(parseJob(JSON.stringify({ session: 's', code: '', ...body }))).launch;
}

describe('[P14] names that loaders, shells and interpreters read', () => {
  test.each(
    `PATH HOME IFS ENV BASH_ENV BASH_FUNC_x SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND CDPATH GLOBIGNORE LD_PRELOAD LD_LIBRARY_PATH
     DYLD_INSERT_LIBRARIES GCONV_PATH GLIBC_TUNABLES MALLOC_CHECK_ LOCPATH LC_ALL LANG TZ TMPDIR PYTHONPATH PYTHONSTARTUP PYTHONHOME
     PYTHONINSPECT NODE_OPTIONS NODE_PATH PERL5LIB PERL5OPT RUBYOPT GIT_SSH_COMMAND GIT_CONFIG_COUNT http_proxy HTTPS_PROXY
     all_proxy NO_PROXY EDITOR PAGER LESSOPEN CORTEX_INPUTS CORTEX_RUN CORTEX_RUNNER GOFLAGS
     OPENSSL_CONF SSL_CERT_FILE JAVA_TOOL_OPTIONS TAR_OPTIONS UID TRACEPARENT TRACESTATE
     OTEL_EXPORTER_OTLP_ENDPOINT`.split(/\s+/),
  )('%s is refused', (name) => {
    expect(isVariable(name)).toBe(false);
  });

  test.each(['', '1a', 'a-b', 'a.b', 'a b', 'a=b', 'é', 'x\n', 'BASH_FUNC_f%%'])('%j is not a valid name', (name) => {
    expect(isVariable(name)).toBe(false);
  });

  test.each([
    'x',
    'report',
    'fetch_1',
    '_private',
    'URL',
    'name',
    'path',
    'user',
    'my_path',
    'proxy',
    'environment',
    'GOAL_1',
    'goal',
  ])('%s is allowed', (name) => {
    expect(isVariable(name)).toBe(true);
  });
});

test('[P14] strings stay unchanged, other values become compact JSON', () => {
  const inputs = { text: ' a\n"$b" ', n: 1.5, yes: true, nothing: null, list: [1, { a: 'b' }] };
  expect(launch({ kind: 'shell', inputs }).env).toEqual({
    text: ' a\n"$b" ',
    n: '1.5',
    yes: 'true',
    nothing: 'null',
    list: '[1,{"a":"b"}]',
  });
});

test('[R3] variables that do not fit are omitted; the file contains all inputs', () => {
  const inputs = { big: 'é'.repeat(limits.argumentBytes / 2), small: 'x', also: 'y'.repeat(limits.argumentBytes - 20) };
  const { env, inputsJson } = launch({ kind: 'shell', inputs });
  expect(Object.keys(env)).toEqual(['small', 'also']);
  expect(JSON.parse(inputsJson)).toEqual(inputs);
});

test('[R3] the limit of argv counts bytes', () => {
  const text = (bytes: number): string => 'é'.repeat((bytes - '{"a":""}'.length) / 2);
  const tool = (a: string): readonly string[] => launch({ kind: 'tool', runtime: 'shell', inputs: { a } }).args;
  expect(tool(text(limits.argumentBytes)).length).toBe(1);
  expect(tool(text(limits.argumentBytes + 2)).length).toBe(0);
});

test('[P14] python and tools get no variables', () => {
  expect(launch({ kind: 'python', inputs: { x: 1 } }).env).toEqual({});
  expect(launch({ kind: 'tool', runtime: 'shell', inputs: { x: 1 } }).env).toEqual({});
});

test('[R1] omitted fields have defaults', () => {
  expect(launch({ kind: 'python' })).toMatchObject({
    interpreter: 'python3',
    entry: 'code',
    inputsJson: '{}',
    stdin: '',
    args: [],
    memoryMb: limits.memoryMb,
    timeoutMs: limits.timeoutMs,
  });
});

test("[R3] a script's own arguments replace the JSON in its arguments, and only there", () => {
  const job = { kind: 'tool', runtime: 'shell', inputs: { city: 'Ulm' } };
  const json = '{"city":"Ulm"}';
  expect(launch(job)).toMatchObject({ args: [json], stdin: json, inputsJson: json });
  expect(launch({ ...job, args: ['Ulm', ''] })).toMatchObject({ args: ['Ulm', ''], stdin: json, inputsJson: json });
  expect(launch({ ...job, args: ['x'.repeat(limits.argumentBytes + 1)] })).toMatchObject({ args: [] });
  expect(() => launch({ ...job, args: ['\0'] })).toThrow(/args: must not contain a NUL/);
});

describe('[R1] a job is refused with', () => {
  type Body = Record<string, unknown>;
  const hello: Body = { kind: 'python', code: 'print(1)' };
  const image: Body = { kind: 'docker', code: undefined, image: 'busybox', command: 'id' };
  const build = (files: Record<string, string>, requirements: string[] = []): Body => ({
    kind: 'tool',
    code: undefined,
    build: { files, entrypoint: 'main.py', requirements },
  });
  const cases: readonly (readonly [string, string, Body])[] = [
    ['an unknown kind', 'kind', { ...hello, kind: 'vm' }],
    ['an image by a path', 'image', { ...image, image: '../../etc' }],
    ['a privileged docker job', 'privileged', { ...image, privileged: true }],
    ["a docker job in the host's network", 'network', { ...image, network: 'host' }],
    ['NUL in an argument', 'NUL', { ...image, args: ['a\0b'] }],
    ['arguments past the limit of the system', 'args', { ...image, args: ['x'.repeat(limits.argumentBytes)] }],
    ['a tool with both code and an image', 'runtime', { ...hello, kind: 'tool', runtime: 'shell', image: 'busybox' }],
    ...['../x', '/etc/x', 'a/../../x', './x', 'a//b', 'a\0b', ''].map(
      (name) => [`the build file ${JSON.stringify(name)}`, 'files', build({ 'main.py': '', [name]: '' })] as const,
    ),
    ['a build without its entry point', 'entrypoint', build({ 'other.py': '' })],
    ['a requirement that is an option', 'requirements', build({ 'main.py': '' }, ['--index-url=http://x'])],
    ['a requirement that is a URL', 'requirements', build({ 'main.py': '' }, ['a @ http://x/a.whl'])],
    ['a tool without a runtime', 'runtime', { ...hello, kind: 'tool' }],
    ['a tool with an unknown runtime', 'runtime', { ...hello, kind: 'tool', runtime: 'perl' }],
    ['code that is not a string', 'code', { ...hello, code: 1 }],
    ['an unknown field', 'privileged', { ...hello, privileged: true }],
    ['mounts', 'mounts', { ...hello, mounts: ['/:/host'] }],
    ['unknown limits', 'network', { ...hello, limits: { network: 'host' } }],
    ['a timeout of zero', 'timeout_ms', { ...hello, limits: { timeout_ms: 0 } }],
    ['too much output', 'output_bytes', { ...hello, limits: { output_bytes: 1e12 } }],
    ['a session that is a path', 'session', { ...hello, session: '../../etc' }],
    ['NUL in code', 'NUL', { ...hello, code: 'a\0b' }],
    ['NUL in a variable', 'NUL', { ...hello, kind: 'shell', inputs: { x: 'a\0b' } }],
    ['an unknown level', 'sandbox', { ...hello, sandbox: 'none' }],
    ['inputs that are a list', 'inputs', { ...hello, inputs: [1] }],
  ];

  test.each(cases)('%s, and the error names %s', (_name, named, body) => {
    expect(() => launch(body)).toThrow(
      expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining(named) }),
    );
  });
});
