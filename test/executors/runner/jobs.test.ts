import { describe, expect, test } from 'vitest';
import { EngineError } from '../../../src/domain/errors.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { Json } from '../../../src/domain/json.ts';
import type { ToolImplementation } from '../../../src/domain/manifests/tool.ts';
import type { JobResult, RunnerClient } from '../../../src/domain/ports/runner.ts';
import { dockerExecutor } from '../../../src/executors/docker.ts';
import { pythonExecutor } from '../../../src/executors/python.ts';
import { executorList } from '../../../src/executors/registry.ts';
import { shellExecutor } from '../../../src/executors/shell.ts';
import { toolExecutor } from '../../../src/executors/tool.ts';
import { callOf, contextOf, errorOf, fakeRunner } from '../support.ts';
import { toolOf } from '../../support/definitions.ts';

const script = toolOf(
  { type: 'script', runtime: 'node', source: 'console.log(1)', memoryMb: 64, cpus: null },
  { name: 'stats', effects: 'pure' },
);

test('[P14] python and shell get their code unchanged and their values as inputs', async () => {
  const runner = fakeRunner({ stdout: '42' });
  const context = contextOf({ runner });
  const inputs = { data: { a: '$(id)' } };
  await pythonExecutor.execute(callOf({ code: 'print("$data")' }, { inputs, action: { type: 'python' } }), context);
  await shellExecutor.execute(callOf({ command: 'echo "$data"' }, { inputs, action: { type: 'shell' } }), context);
  expect(runner.jobs).toMatchObject([
    { kind: 'python', code: 'print("$data")', runtime: 'python3', inputs },
    { kind: 'shell', code: 'echo "$data"', runtime: 'shell', inputs },
  ]);
});

test('[R2] the sandbox level and the labels of a manifest are sent with the job', async () => {
  const runner = fakeRunner({});
  const asked = { sandbox: 'docker', labels: ['gpu'] } as const;
  const picky = toolOf(
    { type: 'script', runtime: 'shell', source: 'id', memoryMb: null, cpus: null, ...asked },
    { name: 'picky' },
  );
  await toolExecutor.execute(callOf({}, { tool: picky }), contextOf({ runner, runnerNeeds: { sandbox: 'wasm' } }));
  await pythonExecutor.execute(callOf({ code: 'x' }), contextOf({ runner, runnerNeeds: asked }));
  await shellExecutor.execute(callOf({ command: 'x' }), contextOf({ runner, runnerNeeds: asked }));
  await shellExecutor.execute(callOf({ command: 'x' }), contextOf({ runner }));
  expect(runner.jobs.slice(0, 3)).toMatchObject([asked, asked, asked]);
  expect(runner.jobs[3]).not.toHaveProperty('sandbox');
});

test('[R1] a job id is the runtime key and the attempt, never the model’s id', async () => {
  const runner = fakeRunner({});
  await pythonExecutor.execute(
    callOf({ code: 'x' }, { runtimeKey: 'ses_9/2/1/3', attempt: 4, timeoutMs: 1_500, action: { id: '../../x' } }),
    contextOf({ runner }),
  );
  expect(runner.jobs[0]).toMatchObject({
    id: 'ses_9/2/1/3/4',
    session: 'ses_1',
    limits: { timeoutMs: 1_500, memoryMb: null },
  });
});

test('[R3] a script tool gets its parameters as inputs, and its output is parsed if it is JSON', async () => {
  const runner = fakeRunner({ stdout: '{"words": 3}\n' });
  const outcome = await toolExecutor.execute(callOf({ text: 'a b c' }, { tool: script }), contextOf({ runner }));
  expect(runner.jobs[0]).toMatchObject({
    kind: 'tool',
    code: 'console.log(1)',
    runtime: 'node',
    inputs: { text: 'a b c' },
    limits: { memoryMb: 64 },
  });
  expect(outcome).toEqual({ ok: true, output: { words: 3 } });
});

test('[R3] the output of a running job streams as progress', async () => {
  const context = contextOf({ runner: fakeRunner({ stdout: 'out', stderr: 'err' }) });
  await pythonExecutor.execute(callOf({ code: 'x' }), context);
  expect(context.seen).toEqual([
    { stream: 'stdout', text: 'out' },
    { stream: 'stderr', text: 'err' },
  ]);
});

test.each<[string, Partial<JobResult>, string, boolean]>([
  [
    'nonzero_exit',
    { exitCode: 3, stderr: 'Traceback\nValueError: no\n' },
    'python ended with exit code 3: Traceback\nValueError: no',
    false,
  ],
  ['nonzero_exit', { exitCode: null }, 'python ended with exit code unknown', false],
  ['timeout', { end: 'timeout', exitCode: null }, 'python ran longer than 60 s', true],
  ['oom', { end: 'oom', exitCode: 0 }, 'python used more memory than allowed', false],
  ['killed', { end: 'killed', exitCode: null }, 'python was killed', true],
  [
    'output_limit',
    { end: 'output_limit', exitCode: null },
    `python printed more than ${limits.jobOutputBytes} bytes`,
    false,
  ],
  [
    'outcome_unknown',
    { end: 'lost', exitCode: null },
    'python was lost: its runner became unavailable while it was running, and it is unknown whether it finished',
    false,
  ],
])('[R4] %s gives its own message: %j', async (code, result, message, retryable) => {
  const call = callOf({ code: 'x' }, { action: { type: 'python' } });
  expect(errorOf(await pythonExecutor.execute(call, contextOf({ runner: fakeRunner(result) })))).toEqual({
    code,
    message,
    retryable,
  });
});

test('[R4] the end of a long stderr is reported', async () => {
  const stderr = Array.from({ length: 10_000 }, (_, index) => `line ${index}`).join('\n');
  const { message } = errorOf(
    await pythonExecutor.execute(callOf({ code: 'x' }), contextOf({ runner: fakeRunner({ exitCode: 1, stderr }) })),
  );
  expect(message).toContain('line 9999');
  expect(message).not.toContain('line 9989\n');
  expect(message.length).toBeLessThan(2_100);
});

test('[S7] a non-zero exit is retryable only for an idempotent tool', async () => {
  for (const [effects, retryable] of [
    ['pure', false],
    ['idempotent', true],
    ['unsafe', false],
  ] as const) {
    const context = contextOf({ runner: fakeRunner({ exitCode: 1 }) });
    const call = callOf({}, { tool: { ...script, effects } });
    expect(errorOf(await toolExecutor.execute(call, context)).retryable).toBe(retryable);
  }
});

test.each([
  ['{"success": false, "error": "no such city"}', 'The tool "stats" failed: no such city', false],
  ['{"status": "error", "message": "busy", "retryable": true}', 'The tool "stats" failed: busy', true],
  ['{"success": false, "error": {"code": 7}}', 'The tool "stats" failed: {"code":7}', false],
  ['{"success": false}', 'The tool "stats" failed: no reason given', false],
  [
    '{"success": false, "exit_code": 2, "output": "make failed"}',
    'The tool "stats" failed: {"success":false,"exit_code":2,"output":"make failed"}',
    false,
  ],
])('[R3] a script that prints %s has failed', async (stdout, message, retryable) => {
  const call = callOf({}, { tool: script, action: { name: 'stats' } });
  expect(errorOf(await toolExecutor.execute(call, contextOf({ runner: fakeRunner({ stdout }) })))).toEqual({
    code: 'tool_failed',
    message,
    retryable,
  });
});

describe('[R3] a program that ends with a non-zero exit code', () => {
  const report = '{"success": false, "error": "division by zero"}';
  test.each<[string, Partial<JobResult>, string]>([
    ['prints a report', { stdout: `${report}\n` }, 'division by zero'],
    ['prints a report over several lines', { stdout: '{\n  "success": false,\n  "error": "no"\n}\n' }, 'no'],
    ['prints a report after other lines', { stdout: `starting\nstep 1\n${report}\n` }, 'division by zero'],
    ['prints a report and a traceback', { stdout: report, stderr: 'Traceback\nboom' }, 'division by zero'],
    ['prints a status', { stdout: '{"status": "error", "message": "busy"}' }, 'busy'],
    ['prints only an error', { stdout: '{"error": {"code": 7}}' }, '{"code":7}'],
    ['prints an empty error', { stdout: '{"error": " ", "error_message": "no host"}' }, 'no host'],
    ['prints a report without a reason', { stdout: '{"success": false}', stderr: 'boom' }, 'boom'],
    ['prints success', { stdout: '{"success": true, "message": "done"}', stderr: 'boom' }, 'boom'],
    ['prints a report first', { stdout: `${report}\nlater`, stderr: 'boom' }, 'boom'],
    ['prints only text', { stdout: 'FAIL: 2 tests\n', stderr: ' \n' }, 'FAIL: 2 tests'],
  ])('and %s: the model reads it', async (_what, result, reason) => {
    const runner = fakeRunner({ exitCode: 2, ...result });
    const context = contextOf({ runner });
    const errors = [
      await toolExecutor.execute(callOf({}, { tool: script, action: { name: 'stats' } }), context),
      await pythonExecutor.execute(callOf({ code: 'x' }, { action: { type: 'python' } }), context),
      await shellExecutor.execute(callOf({ command: 'x' }, { action: { type: 'shell' } }), context),
    ].map(errorOf);
    expect(errors.map(({ code }) => code)).toEqual(['nonzero_exit', 'nonzero_exit', 'nonzero_exit']);
    expect(errors.map(({ message }) => message)).toEqual([
      `The tool "stats" ended with exit code 2: ${reason}`,
      `python ended with exit code 2: ${reason}`,
      `shell ended with exit code 2: ${reason}`,
    ]);
  });

  test.each([
    ['pure', ', "retryable": true', true],
    ['pure', '', false],
    ['idempotent', '', true],
    ['idempotent', ', "retryable": false', false],
  ] as const)('a report of a tool that is %s%s: retryable %s', async (effects, more, retryable) => {
    const runner = fakeRunner({ exitCode: 1, stdout: `{"success": false, "error": "no"${more}}` });
    const call = callOf({}, { tool: { ...script, effects } });
    expect(errorOf(await toolExecutor.execute(call, contextOf({ runner }))).retryable).toBe(retryable);
  });

  test('a recovered job reports the same', async () => {
    const runner = { ...fakeRunner({}), lookup: () => Promise.resolve(ended) };
    const ended: JobResult = { end: 'exited', exitCode: 1, stdout: report, stderr: '', truncated: false };
    const outcome = await toolExecutor.recover?.(
      callOf({}, { tool: script, action: { name: 'stats' } }),
      contextOf({ runner }),
    );
    expect(outcome).toMatchObject({ error: { message: 'The tool "stats" ended with exit code 1: division by zero' } });
  });

  test('a long report is cut', async () => {
    const runner = fakeRunner({ exitCode: 1, stdout: JSON.stringify({ error: 'x'.repeat(900_000) }) });
    const { message } = errorOf(await pythonExecutor.execute(callOf({ code: 'x' }), contextOf({ runner })));
    expect(message.length).toBeLessThan(8_100);
  });
});

test.each(['{"success": true, "error": null}', '{"status": "ok"}', '[{"success": false}]', 'success: false'])(
  '[R3] a script that prints %s has succeeded',
  async (stdout) => {
    expect(
      await toolExecutor.execute(callOf({}, { tool: script }), contextOf({ runner: fakeRunner({ stdout }) })),
    ).toMatchObject({ ok: true });
  },
);

test('[R3] for python, a printed {"success": false} is a value', async () => {
  const context = contextOf({ runner: fakeRunner({ stdout: '{"success": false}' }) });
  expect(await pythonExecutor.execute(callOf({ code: 'x' }), context)).toEqual({
    ok: true,
    output: { success: false },
  });
});

test('[X4] without a runner, code fails with a clear message before dispatch', async () => {
  for (const [executor, call] of [
    [pythonExecutor, callOf({ code: 'x' }, { action: { type: 'python' } })],
    [shellExecutor, callOf({ command: 'x' }, { action: { type: 'shell' } })],
    [toolExecutor, callOf({}, { tool: script })],
  ] as const) {
    expect(errorOf(await executor.execute(call, contextOf()))).toMatchObject({
      code: 'runner_unavailable',
      beforeDispatch: true,
      retryable: false,
    });
  }
});

const throwing = (fault: unknown): RunnerClient => ({ ...fakeRunner({}), run: () => Promise.reject(fault) });

test('[R8] an error of the runner client keeps its code, its delay and whether anything was sent', async () => {
  const fault = new EngineError('runner_unavailable', 'queue full', { beforeDispatch: true, retryAfterMs: 2_000 });
  expect(errorOf(await pythonExecutor.execute(callOf({ code: 'x' }), contextOf({ runner: throwing(fault) })))).toEqual({
    code: 'runner_unavailable',
    message: 'queue full',
    retryable: true,
    beforeDispatch: true,
    retryAfterMs: 2_000,
  });
});

test('[S8] a stopped job is aborted, whatever the client throws', async () => {
  const context = contextOf({ runner: throwing(new Error('socket hang up')) });
  context.abort.abort(new Error('cancelled'));
  expect(errorOf(await pythonExecutor.execute(callOf({ code: 'x' }), context))).toMatchObject({ code: 'aborted' });
});

test('[P16] inputs past the limit are refused before dispatch', async () => {
  const runner = fakeRunner({});
  const call = callOf({ code: 'x' }, { inputs: { big: 'ä'.repeat(limits.jobInputBytes / 2) } });
  expect(errorOf(await pythonExecutor.execute(call, contextOf({ runner })))).toMatchObject({
    code: 'input_too_large',
    beforeDispatch: true,
  });
  expect(runner.jobs).toEqual([]);
});

test.each([
  [pythonExecutor, {}, 'parameters.code: expected Python source, got nothing'],
  [pythonExecutor, { code: 5 }, 'parameters.code: expected Python source, got 5'],
  [shellExecutor, { command: ['ls'] }, 'parameters.command: expected a command line, got ["ls"]'],
])('[P6] code that is not a string is an error of the model', async (executor, parameters, message) => {
  const error = errorOf(await executor.execute(callOf(parameters), contextOf({ runner: fakeRunner({}) })));
  expect(error).toMatchObject({ code: 'invalid_parameters', message });
});

test('[M3] a built-in runs by its entrypoint, whatever the name of the tool', async () => {
  const tool = toolOf({ type: 'builtin', entrypoint: 'calculator' }, { name: 'sums' });
  expect(await toolExecutor.execute(callOf({ expression: '6*7' }, { tool }), contextOf())).toEqual({
    ok: true,
    output: 42,
  });
});

describe('containers', () => {
  const docker = (parameters: Record<string, Json>, inputs = {}) =>
    callOf(parameters, { action: { type: 'docker' }, inputs });

  test('[P14] the runner receives the command, its arguments and the values separately', async () => {
    const runner = fakeRunner({ stdout: '{"rows": 3}\n' });
    const parameters = { image: 'library/python:3.13', command: 'python3 -c "$code"', args: ['$(id)', 7, true] };
    const outcome = await dockerExecutor.execute(docker(parameters, { code: 'x; id' }), contextOf({ runner }));
    expect(outcome).toEqual({ ok: true, output: { rows: 3 } });
    expect(runner.jobs).toMatchObject([
      {
        kind: 'docker',
        image: 'library/python:3.13',
        code: 'python3 -c "$code"',
        args: ['$(id)', '7', 'true'],
        inputs: { code: 'x; id' },
        movable: false,
      },
    ]);
  });

  test.each([
    [{ command: 'ls' }, 'image'],
    [{ image: '../../etc', command: 'ls' }, 'image'],
    [{ image: 'a'.repeat(300), command: 'ls' }, 'image'],
    [{ image: 'busybox', command: ' ' }, 'command'],
    [{ image: 'busybox', command: ['ls'] }, 'command'],
    [{ image: 'busybox', command: 'ls', args: 'a' }, 'args'],
    [{ image: 'busybox', command: 'ls', args: [{}] }, 'args'],
  ])('[P6] %j is refused before dispatch: %s', async (parameters, field) => {
    const runner = fakeRunner({});
    expect(errorOf(await dockerExecutor.execute(docker(parameters), contextOf({ runner })))).toMatchObject({
      code: 'invalid_parameters',
      message: expect.stringContaining(`parameters.${field}:`) as string,
      beforeDispatch: true,
    });
    expect(runner.jobs).toEqual([]);
  });

  test('[M3] a tool with an image runs under the contract of tools', async () => {
    const runner = fakeRunner({ stdout: '{"success": false, "error": "no"}' });
    const tool = toolOf(
      { type: 'container', image: 'tools/stats:1', build: null, memoryMb: 128, cpus: 2 },
      { effects: 'pure' },
    );
    const call = callOf({ text: 'x' }, { tool, action: { name: 'stats' } });
    expect(errorOf(await toolExecutor.execute(call, contextOf({ runner })))).toMatchObject({ code: 'tool_failed' });
    expect(runner.jobs).toMatchObject([
      {
        kind: 'tool',
        image: 'tools/stats:1',
        inputs: { text: 'x' },
        limits: { memoryMb: 128, cpus: 2 },
        movable: true,
      },
    ]);
  });
});

test.each([
  ['pure', 'lost', true],
  ['idempotent', 'lost', true],
  ['unsafe', 'outcome_unknown', false],
] as const)('[J2] a lost job of a tool that is %s: %s', async (effects, code, retryable) => {
  const call = callOf({}, { tool: { ...script, effects } });
  const context = contextOf({ runner: fakeRunner({ end: 'lost', exitCode: null }) });
  expect(errorOf(await toolExecutor.execute(call, context))).toMatchObject({ code, retryable });
});

describe('after a crash of the session', () => {
  const known = (result: Partial<JobResult> | null): RunnerClient & { readonly asked: unknown[] } => {
    const asked: unknown[] = [];
    return {
      ...fakeRunner({}),
      asked,
      lookup: (job, { output }) => {
        asked.push(job);
        if (result === null) return Promise.resolve(null);
        const full: JobResult = { end: 'exited', exitCode: 0, stdout: '', stderr: '', truncated: false, ...result };
        output('stdout', full.stdout);
        return Promise.resolve(full);
      },
    };
  };

  test.each([
    ['python', pythonExecutor],
    ['shell', shellExecutor],
    ['docker', dockerExecutor],
  ] as const)('[J2] %s looks up its job by the key and attempt of the first dispatch', async (type, executor) => {
    const runner = known({ stdout: '7' });
    const context = contextOf({ runner });
    const call = callOf({}, { runtimeKey: 'ses_9/2/1/3', attempt: 2, action: { type } });
    expect(await executor.recover?.(call, context)).toEqual({ ok: true, output: 7 });
    expect(runner.asked).toEqual([{ id: 'ses_9/2/1/3/2', session: 'ses_1' }]);
    expect(context.seen).toEqual([{ stream: 'stdout', text: '7' }]);
    expect(await executor.recover?.(call, contextOf({ runner: known(null) }))).toBeNull();
    expect(await executor.recover?.(call, contextOf())).toBeNull();
  });

  test('[J2] a script that reported a failure has failed; a built-in has no lookup', async () => {
    const said = known({ stdout: '{"success": false, "error": "no"}' });
    expect(await toolExecutor.recover?.(callOf({}, { tool: script }), contextOf({ runner: said }))).toMatchObject({
      ok: false,
      error: { code: 'tool_failed' },
    });
    const builtin = toolOf({ type: 'builtin', entrypoint: 'echo' });
    expect(await toolExecutor.recover?.(callOf({}, { tool: builtin }), contextOf({ runner: said }))).toBeNull();
  });

  test('[J2] code that its runner lost has an unknown outcome', async () => {
    const call = callOf({}, { action: { type: 'python' } });
    const context = contextOf({ runner: known({ end: 'lost', exitCode: null }) });
    expect(await pythonExecutor.recover?.(call, context)).toMatchObject({
      ok: false,
      error: { code: 'outcome_unknown' },
    });
  });
});

test('[M3] a stored tool of a type that this version does not run fails with the reason', async () => {
  const stored = { type: 'telepathy', url: 'https://example.com/' } as unknown as ToolImplementation;
  expect(errorOf(await toolExecutor.execute(callOf({}, { tool: toolOf(stored) }), contextOf()))).toMatchObject({
    code: 'unsupported_implementation',
    message: expect.stringContaining('is of type telepathy, which this runtime does not support'),
    retryable: false,
    beforeDispatch: true,
  });
});

test('[H1] the list of executors shows which are available, and why the others are not', () => {
  const available = (runner: Parameters<typeof executorList>[0]) =>
    executorList(runner)
      .filter((entry) => entry['available'] === true)
      .map((entry) => entry['type']);
  const runner = { status: 'healthy', sandbox: { active: { python3: 'wasm', node: null, shell: 'bubblewrap' } } };
  expect(available(runner)).toEqual(['tool', 'agent', 'relic', 'workflow', 'llm', 'internal', 'python', 'shell']);
  expect(executorList(runner).find((entry) => entry['type'] === 'shell')).toMatchObject({ sandbox: 'bubblewrap' });
  expect(available({ ...runner, executors: ['python', 'docker'] })).toContain('docker');
  expect(executorList(runner).find((entry) => entry['type'] === 'docker')).toMatchObject({
    needs_runner: true,
    reason: 'the runner has no Docker engine',
  });
  expect(available({ sandbox: { active: { python3: 'wasm', shell: null } } })).toEqual([
    'tool',
    'agent',
    'relic',
    'workflow',
    'llm',
    'internal',
    'python',
  ]);
  // Edge relics need no runner.
  expect(available(null)).toEqual(['tool', 'agent', 'relic', 'workflow', 'llm', 'internal']);
  expect(executorList(null).find((entry) => entry['type'] === 'python')).toMatchObject({
    needs_runner: true,
    reason: 'the runner does not answer',
  });
});
